"""The environment of a machine whose proxy is away, as a laptop's is outside of its company."""

from collections.abc import Mapping

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
DEAD = dict.fromkeys(NAMES, "http://127.0.0.1:9") | {"NO_PROXY": ""}
DEAD_PROXY: Mapping[str, str] = DEAD | {name.lower(): value for name, value in DEAD.items()}
