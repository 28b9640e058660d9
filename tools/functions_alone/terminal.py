"""Lines for people, written in a thread, so that a terminal that nobody reads delays nothing."""

import logging
import os
import queue
import re
import threading
import time
from typing import Self

WAITING_LINES = 1000
"""How many lines wait for a terminal that takes none. Further lines are counted and left out."""
LAST_SECONDS = 1.0
"""How long the end waits for lines that are still to be written."""
AGAIN_SECONDS = 60.0
"""For how long a line that says nothing new is not shown again."""
_RECORD = re.compile(r"(?:(?P<host>[\w-]+) \| )?\S+ \S+ (?P<level>[A-Z]+) (?P<what>.*)", re.DOTALL)
"""A line of a host's log."""
_COLOURS = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31"}


class Terminal:
    """Writes lines to a file descriptor, in its own thread. All methods but the exit return at once.

    An INFO record of a host is left out if the same message was shown in the last minute. The log has all records. If
    the descriptor is a terminal, warnings, errors and the stack's own lines are in colour.
    """

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd
        self._colours = os.isatty(fd) and "NO_COLOR" not in os.environ
        self._shown_at: dict[str, float] = {}
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING_LINES)
        self._left_out = 0
        self._logged = _Shows(self)
        self._thread = threading.Thread(target=self._write_all, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        logging.root.addHandler(self._logged)
        return self

    def __exit__(self, *_: object) -> None:
        logging.root.removeHandler(self._logged)
        try:
            self._lines.put(None, timeout=LAST_SECONDS)
        except queue.Full:
            return
        self._thread.join(LAST_SECONDS)

    def show(self, line: str) -> None:
        """Queue a line for writing. It is left out if too many wait."""
        record = _RECORD.fullmatch(line)
        if record and record["level"] == "INFO" and self._is_known(record["what"]):
            return
        try:
            if self._left_out:
                self._lines.put_nowait(f"[stack] {self._left_out} lines are in the logs alone")
                self._left_out = 0
            self._lines.put_nowait(self._coloured(line, record["level"] if record else ""))
        except queue.Full:
            self._left_out += 1

    def _is_known(self, what: str) -> bool:
        now = time.monotonic()
        if now < self._shown_at.get(what, -AGAIN_SECONDS) + AGAIN_SECONDS:
            return True
        self._shown_at = {
            text: at for text, at in self._shown_at.items() if now < at + AGAIN_SECONDS
        }
        self._shown_at[what] = now
        return False

    def _coloured(self, line: str, level: str) -> str:
        colour = "36" if line.startswith("[stack]") else _COLOURS.get(level)
        return f"\x1b[{colour}m{line}\x1b[0m" if self._colours and colour else line

    def _write_all(self) -> None:
        """Write until the end. After a failed write, take further lines and do nothing with them."""
        readable = True
        while (line := self._lines.get()) is not None:
            readable = readable and self._write(f"{line}\n".encode(errors="replace"))

    def _write(self, text: bytes) -> bool:
        try:
            while text:
                text = text[os.write(self._fd, text) :]
        except OSError:  # nobody reads any more
            return False
        return True


class _Shows(logging.Handler):
    """Also shows the log records of libraries in this process."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        self._terminal.show(self.format(record))
