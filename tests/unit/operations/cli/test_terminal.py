"""What the command line shows of text that others wrote."""

import json
import time
from datetime import UTC, datetime, timedelta

import click
import pytest

from operations.cli.client import ApiError, UnreachableError
from operations.cli.commands.options import given_time
from operations.cli.formatting import alerts_table, orders_table, out_of_reach, poison_table
from operations.cli.terminal import IN_UTC, as_json, in_zone, printable, show, table, verbatim

OBEYED = {
    "an escape sequence": "\x1b[2J\x1b]0;title\x07",
    "a line of its own": "harmless\nERROR: pay at once\r\n",
    "text that runs backwards": "\u202egnitirw\u2066",
    "what is not seen": "a\u200bb\u00adc\ufeff",
    "half a character": "\ud800",
    "control characters of the second row": "\x85\x9b31m",
}


@pytest.mark.parametrize("label", OBEYED)
def test_nothing_is_shown_that_a_terminal_obeys(label):
    """It is escaped, in tables and in JSON; what is left can be printed, and is on one line."""
    text = OBEYED[label]
    assert printable(text).isprintable()
    assert printable(text) != text
    shown = table(("A", "B"), [(text, "x")])
    assert len(shown.split("\n")) == 2
    assert shown.replace("\n", "").isprintable()
    assert as_json({"text": text}).isascii()
    assert json.loads(as_json({"text": text})) == {"text": text}


def test_other_languages_are_shown_as_they_are():
    """What can be printed needs no escape."""
    assert printable("Zoë 茶 🍵 ok") == "Zoë 茶 🍵 ok"


LONG = "the bank says: " + "insufficient funds, " * 9
ID = "b03-01M8K1ZFTDPPTN1STVFFQRGZ9K"
ALERT = {
    "at": "2026-01-31T08:15:00.123456Z",
    "closed": None,
    "type": "OrderProcessing.OrderFailed",
    "subject": f"orders/{ID}",
    "reason": LONG,
    "acknowledged": {"by": "grace"},
    "key": f"998204064055075644|{ID}:4",
}
ORDER = {
    "orderId": ID,
    "situation": "undo-incomplete",
    "failedSteps": ["supplier-wholesale-request", "supplier-factory-request"],
    "completeBy": "2026-01-31T08:15:00.123456Z",
    "updatedAt": "2026-01-31T08:14:00.123456Z",
    "reason": LONG,
}
POISON = {
    "queue": "supplier-wholesale-responses",
    "id": "20260131T081500.000000Z-aa72e19ead5840242f150992eeb33f60",
    "reason": LONG,
    "body": json.dumps({"text": "x" * 5000}),
}


@pytest.mark.parametrize(
    ("draw", "row", "whole"),
    [
        (alerts_table, ALERT, ["key", "subject", "type"]),
        (orders_table, ORDER, ["orderId", "situation"]),
        (poison_table, POISON, ["queue", "id"]),
    ],
)
@pytest.mark.parametrize("columns", [None, 120, 300])
def test_a_table_is_no_wider_than_the_terminal(monkeypatch, draw, row, whole, columns):
    """Without one it has 100 columns (newcomer D); names and ids, which commands take, stay whole."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    drawn = draw([row, row])
    assert max(map(len, drawn.splitlines())) <= (columns or 100)
    for name in whole:
        assert drawn.count(row[name]) == 2
    assert " ".join(drawn.split()).count("insufficient") == 2 * LONG.count("insufficient")


@pytest.fixture
def berlin(monkeypatch):
    """This machine is in Berlin, an hour before UTC in January."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(text, *, utc=False):
    """The text as a command shows it."""
    with click.Context(click.Command("list")) as context:
        context.meta[IN_UTC] = utc
        return in_zone(text)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "local", "utc"),
    [
        ("2026-01-31T08:15:00.123456Z", "2026-01-31 09:15:00", "2026-01-31 08:15:00Z"),
        ("2026-07-31T22:15:00+00:00", "2026-08-01 00:15:00", "2026-07-31 22:15:00Z"),
        ("due 2026-01-31 08:15 UTC.", "due 2026-01-31 09:15:00.", "due 2026-01-31 08:15 UTC."),
        ("2026-01-31", "2026-01-31", "2026-01-31"),
    ],
)
def test_times_are_this_machines_or_utc(text, local, utc):
    """Without fractions of seconds (newcomer D)."""
    assert shown(text) == local
    assert shown(text, utc=True) == utc
    assert shown(verbatim(text)) == local
    assert text in table(("A",), [(verbatim(text),)])


@pytest.mark.usefixtures("berlin")
def test_a_time_of_today_has_no_date():
    """Today is a day of the zone that is shown."""
    now = datetime.now(UTC)
    assert shown(now.isoformat(), utc=True) == f"{now:%H:%M:%S}Z"
    assert shown(now.isoformat()) == f"{now.astimezone():%H:%M:%S}"


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("given", "local", "utc"),
    [
        ("2026-01-31 10:00", "2026-01-31T09:00:00+00:00", "2026-01-31T10:00:00+00:00"),
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("2026-01-31T10:00+02:00", "2026-01-31T10:00+02:00", "2026-01-31T10:00+02:00"),
        ("tomorrow", "tomorrow", "tomorrow"),
    ],
)
def test_a_time_that_names_no_zone_is_one_of_the_zone_that_is_shown(given, local, utc):
    """So what a table shows can be given back; what is no time is left to the API (newcomer D)."""
    for in_utc, expected in ((False, local), (True, utc)):
        with click.Context(click.Command("bulk")) as context:
            context.meta[IN_UTC] = in_utc
            assert given_time(given) == expected


@pytest.mark.usefixtures("berlin")
def test_a_time_of_day_is_one_of_today():
    """In either zone, as the tables show it."""
    with click.Context(click.Command("bulk")) as context:
        context.meta[IN_UTC] = False
        local = datetime.fromisoformat(given_time("10:00:05")).astimezone()
        assert f"{local:%H:%M:%S}" == "10:00:05"
        assert abs(local - datetime.now(UTC)) < timedelta(days=1)
        in_utc = datetime.fromisoformat(given_time("10:00:05Z"))
        assert (in_utc.utcoffset(), f"{in_utc:%H:%M:%S}") == (timedelta(), "10:00:05")


def test_a_watched_command_waits_for_an_app_that_is_away(monkeypatch, capsys):
    """From its beginning on, until something else is wrong (newcomer C, `--watch`)."""
    answers = [
        UnreachableError("away"),
        ({}, "it is back"),
        UnreachableError("away"),
        ApiError("gone"),
    ]
    pauses = []

    def draw():
        answer = answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    monkeypatch.setattr("operations.cli.terminal.time.sleep", pauses.append)
    with pytest.raises(ApiError, match="gone"):
        show(draw, in_json=False, every=2)
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("it is back\n", 2)
    assert pauses == [2, 2, 2]
    answers.append(UnreachableError("away"))
    with pytest.raises(UnreachableError):
        show(draw, in_json=False, every=None)


def test_what_erasing_cannot_reach_is_listed():
    """Poison messages that may hold the address, and orders that nobody can read."""
    lines = out_of_reach([{"queue": "order-submissions", "id": "1"}], ["b00-1"])
    commands = [line.rpartition(": ")[2] for line in lines]
    assert commands == ["poison drop order-submissions 1", "explain b00-1"]
