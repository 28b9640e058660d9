"""`operators export` and `operators restore`: a copy of all orders in a file of JSON lines.

The first line names the copy, and the last line marks the end. An incomplete file is removed during
the export, and is not restored.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from uuid import uuid4

import simplejson

from engine.domain import exact_json
from engine.words.catalogue import text
from operations.cli.client import Api, ApiError, Json, UnreachableError, WrongUsageError

FORMAT = 1
"""The version of the file format."""

MOST_BYTES = 200_000
"""The most bytes of the lines in one call. The app accepts 256 KiB."""

LONGEST = 250_000
"""The longest line, in bytes. A longer line contains a row that no call can carry."""

MOST_FAULTS = 20
"""The most faults of a file that are listed."""

TRIES = 6
"""How often a call is made while the app is unavailable, after 1, 2, 4, 8 and 16 seconds."""

LINE = {"table": str, "partition": str, "at": str, "rows": list}

Say = Callable[[str], None]


@dataclass(kw_only=True)
class Copier:
    """Writes copies to files, restores them, and reports its progress."""

    api: Api
    signature: Mapping[str, str]
    say: Say
    sleep: Callable[[float], None] = time.sleep

    def export(self, path: Path) -> str:
        """Write a copy to a new file that only its owner can read. Return a summary.

        Raises `ApiError` if the file exists or cannot be written. Then an incomplete file is
        removed.
        """
        if str(path) == "-":
            raise WrongUsageError(text("cli.copy.no-output"))
        try:
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise WrongUsageError(
                text("cli.copy.no-new-file", file=path, why=error.strerror)
            ) from error
        try:
            with os.fdopen(opened, "w", encoding="utf-8") as file:
                return self._write(lambda line: print(simplejson.dumps(line), file=file))
        except BaseException as error:
            with suppress(OSError):
                path.unlink()
            if isinstance(error, OSError):
                raise WrongUsageError(f"{path}: {error.strerror}") from error
            raise

    def _write(self, write: Callable[[Json], None]) -> str:
        write({"copy": uuid4().hex, "format": FORMAT, "at": datetime.now(UTC).isoformat()})
        lines = orders = 0
        for page in self._pages():
            for line in page:
                write(line)
                lines += 1
                orders += line["table"] == "orders"
            self.say(text("cli.copy.orders", count=orders))
        write({"end": lines, "orders": orders})
        return _listed({"orders": orders, "lines": lines})

    def _pages(self) -> Iterator[list[Json]]:
        continuation: str | None = None
        while True:
            body = {**self.signature, "continuation": continuation}
            page = self._post("export", body=body)
            yield page["lines"]
            continuation = page["continuation"]
            if continuation is None:
                return

    def restore(self, path: Path, erased: list[str], *, leave_out: bool) -> str:
        """Restore a copy into an empty store. Return how many orders it had.

        Nothing is sent unless the whole file is valid. The same command continues a restore that
        was interrupted. Raises `ApiError` with the reason for each refused line, unless these lines
        are to be left out.
        """
        copy = check(path)
        restored, refused = 0, list[str]()
        for part in parts(path):
            if _length(part[0]) > LONGEST:
                row = part[0].get("order") or part[0]["partition"]
                refused.append(text("cli.copy.too-long", row=row))
                continue
            answer = self._post("restore", copy, body={**self.signature, "lines": part})
            restored += answer["restored"] + answer["present"]
            refused += [f"{refusal['what']}: {refusal['why']}" for refusal in answer["refused"]]
            self.say(text("cli.copy.orders", count=restored))
        erased_again = sum(map(self._erase, erased))
        if refused and not leave_out:
            raise ApiError(_not_ended(refused))
        self._post("restore", copy, "end", body=self.signature)
        return _listed({"orders": restored, "left-out": len(refused), "erased": erased_again})

    def _erase(self, order_id: str) -> bool:
        """Erase an order that was erased before. Return whether there was something to erase.

        An order that does not exist or is already erased is no error.
        """
        try:
            self._post("orders", order_id, "erase", body=self.signature)
        except ApiError as error:
            if error.exit_code != ApiError.exit_code:
                raise
            self.say(f"{order_id}: {error}")
            return False
        return True

    def _post(self, *path: str, body: Mapping[str, object]) -> Json:
        """Call the app, with several attempts while it is unavailable."""
        for number in range(TRIES - 1):
            try:
                return self.api.post(*path, body=body)
            except UnreachableError as away:
                seconds = 2**number
                self.say(text("cli.another-try", why=away, seconds=seconds))
                self.sleep(seconds)
        return self.api.post(*path, body=body)


def _listed(counts: Mapping[str, int]) -> str:
    """Return the words for these counts, such as "2 orders, 7 lines"."""
    return ", ".join(text(f"cli.copy.{key}", count=count) for key, count in counts.items())


def _not_ended(refused: list[str]) -> str:
    shown = "; ".join(refused[:MOST_FAULTS])
    return text("cli.copy.refused", count=len(refused), refused=shown)


@dataclass(kw_only=True)
class _Found:
    """The contents of a file, and its faults."""

    copy: str = ""
    lines: int = 0
    orders: int = 0
    ended: Json | None = None
    faults: list[str] = field(default_factory=list)


def check(path: Path) -> str:
    """Read a whole file, and return the id of its copy. Raises `ApiError` with its faults."""
    found = _Found()
    try:
        for number, line in _numbered(path):
            fault = _note(found, number, line)
            if fault:
                found.faults.append(text("cli.copy.line", number=number, fault=fault))
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    if found.ended is None:
        found.faults.append(text("cli.copy.no-end"))
    elif (found.ended["end"], found.ended.get("orders")) != (found.lines, found.orders):
        counted = {"lines": found.lines, "orders": found.orders}
        noted = {"noted_lines": found.ended["end"], "noted_orders": found.ended.get("orders")}
        found.faults.append(text("cli.copy.other-counts", **counted, **noted))
    if found.faults:
        shown = "; ".join(found.faults[:MOST_FAULTS])
        raise WrongUsageError(text("cli.copy.broken", file=path, faults=shown))
    return found.copy


def _unreadable(path: Path, error: Exception) -> WrongUsageError:
    return WrongUsageError(text("cli.copy.unreadable", file=path, why=error))


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8-sig") as file:
        yield from enumerate(file, start=1)


def _note(found: _Found, number: int, raw: str) -> str:
    """Record the kind of a line. Return its fault, or an empty text."""
    try:
        line = exact_json.read(raw)
    except ValueError as error:
        return text("cli.copy.not-json", why=error)
    if not isinstance(line, dict):
        return text("cli.copy.not-an-object")
    if number == 1:
        found.copy = str(line.get("copy"))
        known = line.get("format") == FORMAT
        return "" if known else text("cli.copy.other-format", format=FORMAT)
    if found.ended is not None:
        return text("cli.copy.after-the-end")
    if "end" in line:
        found.ended = line
        return ""
    found.lines += 1
    found.orders += line.get("table") == "orders"
    wrong = [name for name, kind in LINE.items() if not isinstance(line.get(name), kind)]
    return text("cli.copy.wrong-fields", fields=", ".join(wrong)) if wrong else ""


def parts(path: Path) -> Iterator[list[Json]]:
    """Yield the lines of a checked file, as many at a time as one call accepts."""
    part: list[Json] = []
    size = 0
    for line in chain.from_iterable(map(_divided, _lines(path))):
        length = _length(line)
        if part and size + length > MOST_BYTES:
            yield part
            part, size = [], 0
        part.append(line)
        size += length
    if part:
        yield part


def _lines(path: Path) -> Iterator[Json]:
    for number, raw in _numbered(path):
        line = exact_json.read(raw)
        if number > 1 and "end" not in line:
            yield line


def _divided(line: Json) -> Iterator[Json]:
    """Split a line into parts that a call accepts. The part with the order itself comes last."""
    if _length(line) <= MOST_BYTES:
        yield line
        return
    for row in line["rows"][:-2]:
        yield {**line, "rows": [row]}
    # Rows are in the order of their keys, so the two rows of an order follow its history.
    yield {**line, "rows": line["rows"][-2:]}


def _length(line: Json) -> int:
    return len(simplejson.dumps(line, ensure_ascii=False).encode())


def ids_in(path: Path) -> list[str]:
    """Return the order ids in a file with one id per line. Raises `ApiError`."""
    try:
        return path.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
