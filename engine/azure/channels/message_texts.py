"""The parts of a message that all channels share, and the two texts of an email."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from html import escape

from engine.alerts.digests import Digest, DigestEntry, clean
from engine.urls import URL
from engine.words import digests
from engine.words.catalogue import LOCALE, text, texts
from engine.words.digests import others_of
from engine.words.values import TO_THE_MINUTE

SUBJECT, TITLE, ABOUT, REASON, ADVICE = 200, 150, 200, 500, 500
"""The longest texts, in characters. With these, one entry always fits into a message."""
MAX_LINK_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """An entry of a digest as plain text. Each channel escapes the texts in its own way."""

    heading: str
    about: str
    facts: list[tuple[str, str]]
    """Labels and values."""
    links: list[tuple[str, str]]
    """Labels and addresses."""


def subject_of(digest: Digest) -> str:
    """Return the subject as one line for a header."""
    # An encoded word could be decoded to a line break and another header.
    return clean(digests.subject_of(digest).replace("=?", "= ?"), SUBJECT)


def section_of(entry: DigestEntry) -> Section:
    """Return the texts of an entry. An address that is not http or https is left out."""
    facts = [
        (text("digest.reason"), clean(entry.reason, REASON)),
        (text("digest.advice"), clean(entry.advice, ADVICE)),
        (text("digest.orders"), str(entry.count) if entry.count > 1 else ""),
        (text("digest.since"), f"{entry.at.astimezone(UTC):{TO_THE_MINUTE}}"),
    ]
    return Section(
        heading=digests.heading_of(replace(entry, title=clean(entry.title, TITLE))),
        about=clean(entry.about, ABOUT),
        facts=[(name, value) for name, value in facts if value],
        links=_links([(text("digest.open"), entry.link), (text("digest.runbook"), entry.runbook)]),
    )


def console_of(digest: Digest) -> list[tuple[str, str]]:
    return _links([(text("digest.all-alerts"), digest.link)])


def _links(links: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (label, address)
        for label, address in links
        if len(address) <= MAX_LINK_CHARACTERS and URL.fullmatch(address)
    ]


def fitted(digest: Digest, most: int, fits: Callable[[Digest], bool]) -> Digest:
    """Return the digest with its first entries: as many as fit, but at most `most`.

    The first entry always stays. Entries that are left out are counted as others.
    """
    counts = range(2, min(most, len(digest.entries)) + 1)
    too_many = bisect_left(counts, True, key=lambda count: not fits(_first(digest, count)))  # noqa: FBT003 - a key, not a flag
    return _first(digest, 1 + too_many)


def _first(digest: Digest, count: int) -> Digest:
    left_out = len(digest.entries) - count
    return replace(digest, entries=digest.entries[:count], others=digest.others + left_out)


def plain_text(digest: Digest) -> str:
    return "\n\n".join("\n".join(lines) for lines in _paragraphs(digest)) + "\n"


def _paragraphs(digest: Digest) -> Iterator[list[str]]:
    for entry in digest.entries:
        section = section_of(entry)
        lines = [f"{label}: {value}" for label, value in (*section.facts, *section.links)]
        yield [section.heading, section.about, *lines]
    if others := others_of(digest):
        yield [others]
    if links := console_of(digest):
        yield [f"{label}: {address}" for label, address in links]


def html_text(digest: Digest) -> str:
    """Return the HTML of an email. All texts are escaped."""
    language = escape(texts()[LOCALE].partition("-")[0])
    parts = [f'<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8"></head><body>']
    for entry in digest.entries:
        section = section_of(entry)
        facts = "".join(
            f"<br><b>{escape(label)}:</b> {escape(value)}" for label, value in section.facts
        )
        parts += [
            f"<h3>{escape(section.heading)}</h3>",
            f"<p>{escape(section.about)}{facts}</p>{_anchors(section.links)}",
        ]
    if others := others_of(digest):
        parts.append(f"<p>{escape(others)}</p>")
    parts += [_anchors(console_of(digest)), "</body></html>"]
    return "\n".join(filter(None, parts)) + "\n"


def _anchors(links: list[tuple[str, str]]) -> str:
    shown = (f'<a href="{escape(address)}">{escape(label)}</a>' for label, address in links)
    return f"<p>{' · '.join(shown)}</p>" if links else ""
