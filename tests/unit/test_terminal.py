"""What the command line shows of text that others wrote."""

import json

import pytest

from operators.cli.formatting import out_of_reach
from operators.cli.terminal import as_json, printable, table

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


def test_columns_are_as_wide_as_what_stands_in_them():
    """And nothing is left at the end of a line."""
    assert table(("A", "LONG"), [("longer", None), ("b", 3)]) == "A       LONG\nlonger\nb       3"


def test_what_erasing_cannot_reach_is_listed():
    """Poison messages with the address, however it is spelt; the queue, always."""
    bodies = {
        "1": '{"email": "Ada@Example.com"}',
        "2": "grace@example.com",
        "3": r"{broken \u00fcda@example.com",
    }
    messages = [
        {"queue": "order-submissions", "id": name, "body": body} for name, body in bodies.items()
    ]
    waiting = "not looked at: submissions that wait on their queue; ask again later"
    unknown = "order that cannot be read, whosever it is: explain b00-1"
    drop = "poison message of that name: poison drop order-submissions"
    assert out_of_reach("ada@example.com", messages, ["b00-1"]).splitlines() == [
        f"{drop} 1",
        unknown,
        waiting,
    ]
    assert out_of_reach("üda@example.com", messages, []).splitlines() == [f"{drop} 3", waiting]
    assert out_of_reach("nobody@example.com", messages, []) == waiting
