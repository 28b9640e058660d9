"""By how much longer than configured steps and calls may take."""

from pathlib import Path


def slowdown_in(path: Path | None) -> float:
    """Return the factor that the embedded run has written for now; 1 if there is no file.

    It is read each time: the machine of the embedded run may become busy at any moment.
    """
    if path is None:
        return 1.0
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return 1.0
