"""The folder with a stack's data: one stack at a time may use it, if it can read the data's layout."""

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
    """The layouts of data that an app can read, from `oldest` to `newest`. It writes the newest."""

    oldest: int = 1
    newest: int = 1
    remedy: str = "empty the folder"
    """What a person must do to start without the data of another layout."""


class DataFolder:
    """The folder is held from `claim` to `release`. If the process dies, the folder is released too."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path, self._layout = path, layout
        self._lock: int | None = None

    def claim(self) -> None:
        """Make the folder and take it.

        Raises `StackError` if another stack holds it or it cannot be made.
        """
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
        """Refuse data that this version of the app cannot read. Data without a mark have layout 1."""
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
        """Make the files readable for this user only, even if the folder itself is open.

        The files hold what customers sent.
        """
        for name in FOLDERS:
            (self._path / name).mkdir(exist_ok=True)
            (self._path / name).chmod(OWNER_ALONE)

    def release(self) -> None:
        """Release the folder for another stack."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
