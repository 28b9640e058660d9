"""The folder with the data of a stack, which only one stack may use at a time, and only one that can read them."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import StackError

FOLDERS = ("azurite", "broker", "logs")
OWNER_ALONE = 0o700


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """What an app can read: data of the `oldest` layout to the `newest`, which it writes."""

    oldest: int = 1
    newest: int = 1
    remedy: str = "empty the folder"
    """What a person does who wants to start without data of another layout."""


class DataFolder:
    """Held from `claim` to `release`; a process that dies releases it too."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path, self._layout = path, layout
        self._lock: int | None = None

    def claim(self) -> None:
        """Make the folder and take it; raises `StackError` when another stack has it or it cannot be made."""
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=OWNER_ALONE)
            self._lock = os.open(self._path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check_layout()
            self._close_to_others()
        except BlockingIOError as error:
            self.release()
            raise StackError(StackFault(LocalCode.DATA_IN_USE, str(self._path))) from error
        except OSError as error:
            raise StackError(
                StackFault(LocalCode.DATA_UNUSABLE, str(self._path), {"reason": str(error)})
            ) from error

    def _check_layout(self) -> None:
        """Refuse data that this version of the app cannot read; those without a mark are of layout 1."""
        mark, layout = self._path / "layout", self._layout
        unmarked = "1" if (self._path / "azurite").exists() else ""
        known = (mark.read_text() if mark.exists() else "") or unmarked
        if known and known not in map(str, range(layout.oldest, layout.newest + 1)):
            self.release()
            raise StackError(
                StackFault(
                    LocalCode.DATA_LAYOUT,
                    str(self._path),
                    {
                        "layout": known,
                        "oldest": layout.oldest,
                        "newest": layout.newest,
                        "remedy": layout.remedy,
                    },
                )
            )
        mark.write_text(str(layout.newest))

    def _close_to_others(self) -> None:
        """Let nobody else on the machine read what customers have sent, also where the folder itself is open."""
        for name in FOLDERS:
            (self._path / name).mkdir(exist_ok=True)
            (self._path / name).chmod(OWNER_ALONE)

    def release(self) -> None:
        """Let another stack have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
