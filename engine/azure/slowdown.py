"""The factor by which steps and calls may take longer than configured."""

from pathlib import Path


def slowdown_in(path: Path | None) -> float:
    """Return the factor that the embedded run has written. 1 if there is no file."""
    if path is None:
        return 1.0
    try:
        # Read each time, because the machine of the embedded run may become busy at any moment.
        return float(path.read_text())
    except (OSError, ValueError):
        return 1.0
