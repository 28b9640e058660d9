"""The folder with the data of a stack, which only one stack may use at a time, and only one that can read them."""

import fcntl
import os
from pathlib import Path

from core.keys import OLDEST_ORDERS, SCHEMA_VERSION
from local.ports import StackError


class DataFolder:
    """Held from `claim` to `release`; a process that dies releases it too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None

    def claim(self) -> None:
        """Make the folder and take it; raises `StackError` when another stack has it or it cannot be made."""
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._path / "lock", os.O_CREAT | os.O_RDWR, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check_layout()
        except BlockingIOError as error:
            self.release()
            raise StackError(
                f"another stack uses the data in {self._path}: set DATA_DIR to another folder"
            ) from error
        except OSError as error:
            raise StackError(
                f"the data folder {self._path} cannot be used ({error}): set DATA_DIR"
            ) from error

    def _check_layout(self) -> None:
        """Refuse rows that this version of the app cannot read; those without a mark are older than the mark."""
        mark = self._path / "layout"
        former = "1" if (self._path / "azurite").exists() else ""
        known = (mark.read_text() if mark.exists() else "") or former
        if known and known not in map(str, range(OLDEST_ORDERS, SCHEMA_VERSION + 1)):
            self.release()
            raise StackError(
                f"the data in {self._path} are of layout {known}, and this app reads {OLDEST_ORDERS} to"
                f" {SCHEMA_VERSION}: empty the folder with `make clean`, or set DATA_DIR to another one"
            )
        mark.write_text(str(SCHEMA_VERSION))

    def release(self) -> None:
        """Let another stack have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
