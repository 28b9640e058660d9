"""`operators export` and `operators restore`: a copy of all orders in a file of JSON lines.

The first line names the copy, the last one says that the file is whole. A file that was not written
to its end is removed, and none is restored that lacks its end.
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
from operations.cli.client import Api, ApiError, Json, UnreachableError, WrongUsageError

FORMAT = 1
"""The version of the file's form."""

MOST_BYTES = 200_000
"""How long the lines of one call are together; the app takes 256 KiB."""

LONGEST = 250_000
"""How long a line may be; a longer one has a row that no call takes."""

MOST_FAULTS = 20
"""Maximum number of a file's faults that are named."""

TRIES = 6
"""How often a call is made while the app is away, after 1, 2, 4, 8 and 16 seconds."""

TOO_LONG = "the row is too long for a call; put it into its table by hand"

LINE = {"table": str, "partition": str, "at": str, "rows": list}

Say = Callable[[str], None]


@dataclass(kw_only=True)
class Copier:
    """Writes copies to files and restores them; it tells of its progress."""

    api: Api
    signature: Mapping[str, str]
    say: Say
    sleep: Callable[[float], None] = time.sleep

    def export(self, path: Path) -> str:
        """Write a copy into a new file that only its owner can read; return what is in it.

        Raises `ApiError` if the file exists or cannot be written. What was begun is removed then.
        """
        if str(path) == "-":
            raise WrongUsageError(
                "-: name a new file, because a copy is not written to standard output"
            )
        try:
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise WrongUsageError(f"{path}: {error.strerror}; name a new file") from error
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
            self.say(f"{orders} orders")
        write({"end": lines, "orders": orders})
        return f"{orders} orders, {lines} lines"

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
        """Restore a copy into an empty store; return how many orders it had.

        Nothing is sent unless the whole file is sound. A restoring that was cut short goes on with
        the same command. Raises `ApiError`, with the reason for each line that was refused, unless
        those are to be left out.
        """
        copy = check(path)
        restored, refused = 0, list[str]()
        for part in parts(path):
            if _length(part[0]) > LONGEST:
                refused.append(f"{part[0].get('order') or part[0]['partition']}: {TOO_LONG}")
                continue
            answer = self._post("restore", copy, body={**self.signature, "lines": part})
            restored += answer["restored"] + answer["present"]
            refused += [f"{refusal['what']}: {refusal['why']}" for refusal in answer["refused"]]
            self.say(f"{restored} orders")
        erased_again = sum(map(self._erase, erased))
        if refused and not leave_out:
            raise ApiError(_not_ended(refused))
        self._post("restore", copy, "end", body=self.signature)
        return f"{restored} orders, {len(refused)} lines left out, {erased_again} erased again"

    def _erase(self, order_id: str) -> bool:
        """Erase an order that was erased before, and return whether there was something to erase.

        One that is not there, or is erased already, is fine.
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
        """Call the app, again and again for a while if it is away."""
        for number in range(TRIES - 1):
            try:
                return self.api.post(*path, body=body)
            except UnreachableError as away:
                self.say(f"{away}; trying again")
                self.sleep(2.0**number)
        return self.api.post(*path, body=body)


def _not_ended(refused: list[str]) -> str:
    shown = "; ".join(refused[:MOST_FAULTS])
    return (
        f"{len(refused)} lines were refused: {shown}. The other lines are restored. "
        "Fix the cause and repeat the command, or finish without these lines with --leave-out"
    )


@dataclass(kw_only=True)
class _Found:
    """What a file was found to hold, and its faults."""

    copy: str = ""
    lines: int = 0
    orders: int = 0
    ended: Json | None = None
    faults: list[str] = field(default_factory=list)


def check(path: Path) -> str:
    """Read a whole file; return the id of its copy. Raises `ApiError`, which names its faults."""
    found = _Found()
    try:
        for number, line in _numbered(path):
            fault = _note(found, number, line)
            if fault:
                found.faults.append(f"line {number}: {fault}")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsageError(f"{path} cannot be read: {error}") from error
    if found.ended is None:
        found.faults.append("its end is missing, so the file was cut or not written completely")
    elif (found.ended["end"], found.ended.get("orders")) != (found.lines, found.orders):
        counts = f"{found.ended['end']} lines, {found.ended.get('orders')} orders"
        found.faults.append(
            f"the file has {found.lines} lines, {found.orders} orders, but its end says {counts}"
        )
    if found.faults:
        raise WrongUsageError(f"{path} is broken: {'; '.join(found.faults[:MOST_FAULTS])}")
    return found.copy


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8-sig") as file:
        yield from enumerate(file, start=1)


def _note(found: _Found, number: int, text: str) -> str:
    """Note what a line is; return its fault, or an empty text."""
    try:
        line = exact_json.read(text)
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(line, dict):
        return "not an object"
    if number == 1:
        found.copy = str(line.get("copy"))
        known = line.get("format") == FORMAT
        return "" if known else f"not the first line of a copy of format {FORMAT}"
    if found.ended is not None:
        return "the line comes after the end of the copy"
    if "end" in line:
        found.ended = line
        return ""
    found.lines += 1
    found.orders += line.get("table") == "orders"
    wrong = [name for name, kind in LINE.items() if not isinstance(line.get(name), kind)]
    return f"wrong or missing fields: {', '.join(wrong)}" if wrong else ""


def parts(path: Path) -> Iterator[list[Json]]:
    """Yield the lines of a checked file, as many at a time as one call takes."""
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
    for number, text in _numbered(path):
        line = exact_json.read(text)
        if number > 1 and "end" not in line:
            yield line


def _divided(line: Json) -> Iterator[Json]:
    """Yield a line in parts that one call takes; those with the order itself come last.

    Rows are in the order of their keys, so the two rows of an order follow its history.
    """
    if _length(line) <= MOST_BYTES:
        yield line
        return
    for row in line["rows"][:-2]:
        yield {**line, "rows": [row]}
    yield {**line, "rows": line["rows"][-2:]}


def _length(line: Json) -> int:
    return len(simplejson.dumps(line, ensure_ascii=False).encode())


def ids_in(path: Path) -> list[str]:
    """Return the ids of orders in a file, one a line; raises `ApiError`."""
    try:
        return path.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsageError(f"{path} cannot be read: {error}") from error
