"""The message to an incoming webhook of Slack: a text for the notification, and blocks."""

import json
from collections.abc import Iterator
from typing import Any

from engine.alerts.digests import Digest
from engine.azure.channels.message_texts import (
    Section,
    console_of,
    fitted,
    section_of,
    subject_of,
)
from engine.words.digests import others_of

MOST_BLOCKS = 50
MOST_OF_TEXT = 460
"""Of each text or address of an entry, when escaped: a block takes 3,000 characters."""
CUT = "…"
MAX_CHARACTERS = 12_000
"""In all blocks together: at about 13,200 Slack answers `msg_blocks_too_long` (bolt-js 2509)."""
MOST_ENTRIES = MOST_BLOCKS - 2
"""Besides them there are a heading and a last block."""
SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""The characters of links and mentions: `<!channel>` in a text would call everybody."""

Element = dict[str, Any]


def slack_body(digest: Digest) -> bytes:
    """Return the body of the request, with as many entries as fit."""
    shown = fitted(
        digest, MOST_ENTRIES, lambda shortened: sum(map(len, _texts(shortened))) <= MAX_CHARACTERS
    )
    message = {
        "text": _escaped(subject_of(shown)),
        "blocks": [_block(text) for text in _texts(shown)],
        "unfurl_links": False,
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _block(text: str) -> Element:
    # Verbatim: plain texts are searched neither for addresses nor for names of channels.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _texts(digest: Digest) -> Iterator[str]:
    yield f"*{_escaped(subject_of(digest))}*"
    for entry in digest.entries:
        yield _section(section_of(entry))
    last = [others_of(digest), _links(console_of(digest))]
    if any(last):
        yield " ".join(filter(None, last))


def _section(section: Section) -> str:
    lines = [f"*{_escaped(section.heading)}*", _escaped(section.about)]
    lines += [f"*{label}:* {_escaped(value)}" for label, value in section.facts]
    return "\n".join(filter(None, [*lines, _links(section.links)]))


def _links(links: list[tuple[str, str]]) -> str:
    urls = [(label, _escaped(url).replace("|", "%7C")) for label, url in links]
    return " · ".join(f"<{url}|{label}>" for label, url in urls if not url.endswith(CUT))


def _escaped(text: str) -> str:
    """Return the text for mrkdwn, cut to `MOST_OF_TEXT` characters, never inside of an entity."""
    shown = ""
    for character in text:
        shown += SPECIAL.get(character, character)
        if len(shown) > MOST_OF_TEXT - len(CUT):
            return shown + CUT
    return shown
