"""The settings of the agents: names from `infra/agents.json`, values from azd's environment.

azd passes all of them to the template as one parameter, the JSON object `SERVICE_SETTINGS`. The
preprovision hook writes it from the variables of the agents. A workflow has only this object. The
workflow runs this module as a program, which makes GitHub hide the secrets in its log.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping

from faults import HookError, HookFault, run
from programs import ROOT, azd

AGENTS = "infra/agents.json"
ALL = "SERVICE_SETTINGS"
"""The variable that azd passes to the template."""


def agents_file() -> Mapping[str, Any]:
    """Return `infra/agents.json`. Raises `HookError` if it cannot be read."""
    try:
        content = json.loads((ROOT / AGENTS).read_text(encoding="utf-8"))
        return {name: content[name] for name in ("agents", "queues", "settings")}
    except (OSError, ValueError, LookupError, TypeError) as error:
        facts = {"reason": error, "command": "make declared ARGS=--write"}
        raise HookError(HookFault("file-unreadable", AGENTS, facts)) from error


def declared() -> List[Mapping[str, Any]]:
    """Return the settings that the agents declare, each once."""
    settings: List[Mapping[str, Any]] = agents_file()["settings"]
    return settings


def given(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the values that are not empty, by name.

    If any variable of an agent is set, even to an empty value, the variables count. Otherwise the
    stored object counts. Raises `HookError` if that cannot be read.
    """
    names = [setting["name"] for setting in declared()]
    values: Mapping[str, str] = environment
    if not any(name in environment for name in names):
        values = _stored(environment.get(ALL) or "{}")
    return {name: values[name] for name in names if values.get(name)}


def _stored(text: str) -> Mapping[str, str]:
    """Return the content of the variable.

    An error does not show it, because it may hold secrets.
    """
    for decode in (json.loads, _without_escapes):
        try:
            values = decode(text)
        except ValueError:
            continue
        if isinstance(values, dict) and all(isinstance(value, str) for value in values.values()):
            return values
    raise HookError(HookFault("settings-unreadable", ALL))


def _without_escapes(text: str) -> Any:
    """Decode the form that `azd pipeline config` stores, with a backslash before each quote."""
    return json.loads(json.loads('"' + text + '"'))


def store(environment: Mapping[str, str]) -> None:
    """Store the settings in azd as one variable, if they differ.

    Raises `HookError` if this fails.
    """
    text = json.dumps(given(environment), separators=(",", ":")).replace("'", "\\u0027")
    if text == (environment.get(ALL) or "{}"):
        return
    # In a file: other users of this machine see the arguments of a command.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "settings")
        path.write_text("{}='{}'\n".format(ALL, text), encoding="utf-8")
        azd("env", "set", "--file", str(path))


def hide(environment: Mapping[str, str]) -> None:
    """Print the commands by which a log of GitHub hides each secret, line by line."""
    values = given(environment)
    for setting in declared():
        if setting["secret"]:
            for line in values.get(setting["name"], "").splitlines():
                print("::add-mask::" + line)


if __name__ == "__main__":
    run("The settings of the agents cannot be used:", hide)
