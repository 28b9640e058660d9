"""The file of a copy: who can read it, what it says, and what is wrong with a broken one."""

import asyncio
import json
import stat

import httpx2
import pytest
from click.testing import CliRunner

from engine.domain.errors import AppError
from engine.http.responses import problem_of
from engine.words.catalogue import text
from operations.api.requests import ExportRequest, OperatorRequest, RestoreRequest
from operations.cli import copies, main
from operations.cli.client import Api, ApiError, UnreachableError, WrongUsageError
from operations.cli.copies import MOST_BYTES, Copier, check, ids_in, parts
from tests.support.builders import NOW, ORDER_ID
from tests.support.memory_world import World

SIGNED = {"operator": "grace", "note": "every night"}
ROWS = [{"RowKey": f"{ORDER_ID}|{kind}"} for kind in ("history|000001", "order", "state")]
LINE = {
    "table": "orders",
    "partition": "b03",
    "order": ORDER_ID,
    "at": NOW.isoformat(),
    "rows": ROWS,
}
ONE_ORDER = text("cli.copy.orders", count=1)
FIRST = {"copy": "a" * 32, "format": 1, "at": NOW.isoformat()}
END = {"end": 1, "orders": 1}


class Service:
    """The operators' API of an app in memory, which may be away for some calls."""

    def __init__(self, world, away=0):
        self.world, self.away, self.requests, self.output = world, away, [], []

    def answer(self, request):
        self.requests.append(request.url.path)
        if self.away:
            self.away -= 1
            return httpx2.Response(503, json={"title": "away"})
        try:
            view = asyncio.run(self._answer(request.url.path.split("/")[3:], request.content))
        except AppError as error:
            refusal = problem_of(error)
            return httpx2.Response(refusal.status_code, content=refusal.get_body())
        return httpx2.Response(200, content=view.model_dump_json(by_alias=True))

    async def _answer(self, path, body):
        desk = self.world.app.operations.services.copies
        match path:
            case ["export"]:
                return await desk.export(ExportRequest.model_validate_json(body))
            case ["restore", copy]:
                return await desk.restore(copy, RestoreRequest.model_validate_json(body))
            case ["restore", copy, "end"]:
                return await desk.end(copy, OperatorRequest.model_validate_json(body))
            case ["orders", order_id, "erase"]:
                request = OperatorRequest.model_validate_json(body)
                return await self.world.app.operations.services.retention.erase(order_id, request)
        pytest.fail(f"nobody answers {path}")

    def copier(self):
        api = Api("http://app", "key", None, httpx2.MockTransport(self.answer))
        return Copier(api=api, signature=SIGNED, say=self.output.append, sleep=lambda _: None)


def with_an_order():
    world = World()
    asyncio.run(world.submitted())
    return Service(world)


def restored_of(*, orders, left_out=0, erased=0):
    counts = {"orders": orders, "left-out": left_out, "erased": erased}
    return ", ".join(text(f"cli.copy.{key}", count=count) for key, count in counts.items())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "orders.jsonl"


def written(file, *lines):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


@pytest.mark.proves("OPR-11")
def test_a_copy_goes_through_a_file_that_only_its_owner_can_read(file):
    """It is JSON that a person can read; what was exported is there after the restoring."""
    there = with_an_order()
    assert there.copier().export(file) == f"{ONE_ORDER}, {text('cli.copy.lines', count=1)}"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line.get("order") for line in lines] == [None, ORDER_ID, None]
    empty = Service(World())
    assert empty.copier().restore(file, [], leave_out=False) == restored_of(orders=1)
    restored, copied = (asyncio.run(place.world.order()) for place in (empty, there))
    assert restored.submitted == copied.submitted
    assert there.output[-1] == empty.output[-1] == ONE_ORDER


def test_no_file_is_overwritten_and_nothing_goes_to_the_output(file):
    """Neither a file nor a device: a new one is needed."""
    file.write_text("precious")
    with pytest.raises(WrongUsageError):
        with_an_order().copier().export(file)
    assert file.read_text() == "precious"
    with pytest.raises(WrongUsageError):
        with_an_order().copier().export(copies.Path("/dev/stdout"))
    with pytest.raises(WrongUsageError):
        with_an_order().copier().export(copies.Path("-"))


def test_a_copy_that_was_not_finished_is_removed(file):
    """It has personal data, and would not be restored anyway."""
    there = with_an_order()
    there.away = 100
    with pytest.raises(UnreachableError):
        there.copier().export(file)
    assert not file.exists()


def test_an_app_that_is_away_for_a_moment_is_called_again(file):
    """A long copy does not fail with it."""
    there = with_an_order()
    there.away = 2
    there.copier().export(file)
    assert check(file)
    tried_again = text("cli.another-try", why="", seconds=2)
    assert any(line.endswith(tried_again) for line in there.output)


@pytest.mark.proves("OPR-11")
def test_orders_that_were_erased_since_are_erased_again(file, tmp_path):
    """Before the restoring ends; one that the copy does not have is told, and stops nothing."""
    there = with_an_order()
    there.copier().export(file)
    empty = Service(World())
    empty.copier().restore(file, [ORDER_ID], leave_out=False)
    order = asyncio.run(empty.world.order())
    assert "ada@example.com" not in json.dumps(dict(order.submitted.payload))
    assert empty.requests[-1].endswith("/end")


def at(number, key, **values):
    return text("cli.copy.line", number=number, fault=text(f"cli.copy.{key}", **values))


COUNTS = {"lines": 1, "orders": 1, "noted_lines": 2, "noted_orders": 1}
BROKEN = {
    text("cli.copy.no-end"): (FIRST, LINE),
    at(3, "after-the-end"): (FIRST, {"end": 0, "orders": 0}, LINE),
    text("cli.copy.other-counts", **COUNTS): (FIRST, LINE, {"end": 2, "orders": 1}),
    at(2, "not-json", why=""): (FIRST, "{", END),
    at(2, "not-an-object"): (FIRST, "[]", END),
    at(2, "wrong-fields", fields="at, rows"): (FIRST, {"table": "orders", "partition": "b03"}, END),
    at(1, "other-format", format=1): ({**FIRST, "format": 2}, LINE, END),
}


@pytest.mark.proves("OPR-11")
@pytest.mark.parametrize(("fault", "lines"), BROKEN.items(), ids=BROKEN)
def test_a_broken_file_names_its_faults_and_nothing_of_it_is_sent(file, fault, lines):
    """It is read to its end before the first call."""
    there = Service(World())
    with pytest.raises(ApiError) as refused:
        there.copier().restore(written(file, *lines), [], leave_out=False)
    assert fault in str(refused.value)
    assert there.requests == []


def test_every_fault_of_a_file_is_named(file):
    """Not the first alone."""
    with pytest.raises(WrongUsageError) as refused:
        check(written(file, FIRST, "{", "[]"))
    faults = [at(2, "not-json", why=""), at(3, "not-an-object"), text("cli.copy.no-end")]
    assert [fault for fault in faults if fault not in str(refused.value)] == []


def test_a_file_that_is_missing_or_no_text_is_reported(file):
    """Without a traceback."""
    with pytest.raises(WrongUsageError):
        check(file)
    file.write_bytes(b"\xff")
    with pytest.raises(WrongUsageError):
        check(file)


def test_files_may_have_a_byte_order_mark(file, tmp_path):
    """Bugs2 45: some editors write one, and some end lines with two characters."""
    file.write_text("\ufeff" + written(file, FIRST, LINE, END).read_text(), encoding="utf-8")
    assert check(file) == FIRST["copy"]
    ids = tmp_path / "ids.txt"
    ids.write_bytes(b"\xef\xbb\xbfb03-1\r\nb03-2\r\n")
    assert ids_in(ids) == ["b03-1", "b03-2"]


def test_a_restoring_with_refused_lines_does_not_end_unless_they_are_left_out(file):
    """The rest is there; the command goes on once the cause is mended."""
    torn = {**LINE, "rows": ROWS[1:2]}
    written(file, FIRST, torn, END)
    there = Service(World())
    with pytest.raises(ApiError, match=ORDER_ID):
        there.copier().restore(file, [], leave_out=False)
    assert not there.requests[-1].endswith("/end")
    assert there.copier().restore(file, [], leave_out=True) == restored_of(orders=0, left_out=1)


def test_lines_go_in_calls_of_bounded_length_and_an_order_comes_after_its_history(file):
    """One that is longer than a call is divided; its own two rows stay together."""
    note = {"RowKey": f"{ORDER_ID}|history|000001|x", "Detail": "x" * (MOST_BYTES // 3)}
    long = {**LINE, "rows": [*[note] * 5, *ROWS[1:]]}
    sent = list(parts(written(file, FIRST, LINE, long, END)))
    assert all(len(json.dumps(part)) <= MOST_BYTES + 1000 for part in sent)
    rows = [row for part in sent for line in part for row in line["rows"]]
    assert rows == [*ROWS, *long["rows"]]
    assert sent[-1][-1]["rows"] == ROWS[1:]


def test_a_row_that_no_call_takes_is_reported(file):
    """The rest is restored."""
    long = {**LINE, "rows": [{**ROWS[2], "Steps": "x" * 300_000}]}
    written(file, FIRST, long, END)
    there = Service(World())
    with pytest.raises(ApiError, match=text("cli.copy.too-long", row=ORDER_ID)):
        there.copier().restore(file, [], leave_out=False)


def test_the_commands_copy_and_restore(file, tmp_path, monkeypatch):
    """The progress goes beside the output; what was not erased does not count (bugs2 53)."""
    there, empty = with_an_order(), Service(World())
    erased = tmp_path / "erased"
    erased.write_text(f"{ORDER_ID}\nb03-01JCX4T9Q8ZK7M2N5P6R3S1V0X\n")

    def run(service, *words):
        monkeypatch.setattr(main, "Api", lambda *_: service.copier().api)
        words = ["--key", "k", *words, "--operator", "grace", "-m", "why"]
        return CliRunner().invoke(main.main, words, catch_exceptions=False)

    ran = run(there, "export", str(file))
    assert (ran.exit_code, ran.stdout) == (
        0,
        f"{file}: {ONE_ORDER}, {text('cli.copy.lines', count=1)}\n",
    )
    ran = run(empty, "restore", str(file), "--erased", str(erased))
    assert ran.stdout == f"{file}: {restored_of(orders=1, erased=1)}\n"
    assert "No such order is recorded" in ran.stderr
    assert run(empty, "restore", str(file), "--erased", str(tmp_path / "none")).exit_code == 2
