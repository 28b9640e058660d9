"""The message to a Teams workflow, as an Adaptive Card.

Texts from orders and services are only in `TextRun`s. These have no Markdown, so no links and no
mentions.
"""

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

MAX_BYTES = 20_000
"""The longest body, in bytes. About 21 KB are safe. A longer one fails after the 202, unnoticed."""
MOST_ENTRIES = 50

Element = dict[str, Any]


def teams_body(digest: Digest) -> bytes:
    """Return the body of the request, with as many entries as fit."""
    return _encoded(
        fitted(digest, MOST_ENTRIES, lambda shortened: len(_encoded(shortened)) <= MAX_BYTES)
    )


def _encoded(digest: Digest) -> bytes:
    return json.dumps(_message(digest), ensure_ascii=False, separators=(",", ":")).encode()


def _message(digest: Digest) -> Element:
    card = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": list(_elements(digest)),
        "actions": _actions(console_of(digest)),
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _elements(digest: Digest) -> Iterator[Element]:
    yield _block(_run(subject_of(digest), weight="Bolder", size="Medium"))
    for entry in digest.entries:
        yield {
            "type": "Container",
            "separator": True,
            "items": list(_items(section_of(entry))),
        }
    if others := others_of(digest):
        yield _block(_run(others))


def _items(section: Section) -> Iterator[Element]:
    yield _block(_run(section.heading, weight="Bolder"))
    yield _block(_run(section.about))
    for label, value in section.facts:
        yield _block(_run(f"{label}: ", weight="Bolder"), _run(value))
    if section.links:
        yield {"type": "ActionSet", "actions": _actions(section.links)}


def _block(*runs: Element) -> Element:
    return {"type": "RichTextBlock", "inlines": list(runs)}


def _run(text: str, **style: str) -> Element:
    return {"type": "TextRun", "text": text, **style}


def _actions(links: list[tuple[str, str]]) -> list[Element]:
    return [{"type": "Action.OpenUrl", "title": label, "url": url} for label, url in links]
