"""The message to a Slack webhook: a text for the notification, and blocks."""

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
"""The longest escaped text or address of an entry, in characters. A block may have 3,000."""
CUT = "…"
MAX_CHARACTERS = 12_000
"""The most characters of all blocks. Slack answers `msg_blocks_too_long` at about 13,200 (bolt-js
2509)."""
MOST_ENTRIES = MOST_BLOCKS - 2
"""The most entries. A heading and a last block need two more blocks."""
SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""The characters of links and mentions. An unescaped `<!channel>` would notify everybody."""

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
    """Escape the text for mrkdwn, and cut it at `MOST_OF_TEXT` characters outside of entities."""
    shown = ""
    for character in text:
        shown += SPECIAL.get(character, character)
        if len(shown) > MOST_OF_TEXT - len(CUT):
            return shown + CUT
    return shown
