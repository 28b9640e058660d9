"""The texts of digests, which come from outside and go to people."""

from dataclasses import replace

import pytest

from engine.alerts.digests import Digest, DigestEntry, DigestStatus, clean
from engine.words.digests import subject_of
from tests.support.builders import NOW

FAILED = DigestEntry(
    status=DigestStatus.NEW,
    needs_action=True,
    title="An order failed",
    about="order b01-1",
    reason="the card was declined",
    advice="resubmit or cancel it",
    count=1,
    at=NOW,
)


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("as it is", 8, "as it is"),
        ("too long", 7, "too lo…"),
        ("a\r\nBcc: b@example.com", 50, "a Bcc: b@example.com"),
        ("a\x00b\x1b[31m\u2028c\u2029d\u200ee\ud800f", 50, "a b [31m c d e f"),
        ("  a \t b ", 3, "a b"),
        ("", 5, ""),
    ],
)
def test_a_text_is_one_line_without_control_characters(text, limit, shown):
    """What it would do to a header, a terminal or the direction of reading, it does to none."""
    assert clean(text, limit) == shown


@pytest.mark.parametrize(
    ("entries", "others", "subject"),
    [
        (1, 0, "[new] An order failed: order b01-1"),
        (1, 2, "[new] An order failed: order b01-1 and 2 more"),
        (3, 1, "[new] An order failed: order b01-1 and 3 more"),
    ],
)
def test_the_subject_counts_what_else_there_is(entries, others, subject):
    """Those that are listed, and those that are not."""
    listed = tuple(replace(FAILED, count=number + 1) for number in range(entries))
    assert subject_of(Digest(id="d", at=NOW, entries=listed, others=others)) == subject
