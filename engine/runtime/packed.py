"""Checks the Python version for which `infra/hooks/prepackage.py` packed the packages."""

import platform
import sys
from pathlib import Path

NOTE = Path(__file__).parents[2] / ".python_packages/packed-for.txt"


def check(note: Path = NOTE) -> None:
    """Raise `RuntimeError` if the packages are for another Python or machine than this one.

    Otherwise the first compiled module would fail with an error that names neither. Without the
    note, nothing was packed, as on a developer's machine.
    """
    if not note.exists():
        return
    packed = note.read_text().partition("\n")[0]
    here = f"{sys.version_info.major}.{sys.version_info.minor} {sys.platform} {platform.machine()}"
    if packed != here:
        raise RuntimeError(
            f"the packages are for Python {packed}, and this is Python {here}: "
            "set pythonVersion in infra/options/app.json and run `azd up`, which packs them anew"
        )
