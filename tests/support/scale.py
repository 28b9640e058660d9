"""How large the large tests are: enough to see what they look for, or, with `make soak`, as large as it gets."""

import os

FULL = os.environ.get("SCALE") == "full"


def scaled(usual: int, full: int) -> int:
    """Return one of the two: what `make test` takes, or `make soak`."""
    return full if FULL else usual
