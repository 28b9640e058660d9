"""Digests: the messages to people about alerts that are new, changed or resolved.

The texts have no personal data, no control characters and no line breaks.
"""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DigestStatus(StrEnum):
    """The change of an alert that a digest reports."""

    NEW = "new"
    CHANGED = "changed"
    RESOLVED = "resolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class DigestEntry:
    """One alert in a digest."""

    status: DigestStatus
    needs_action: bool
    """Whether an operator has to act. Otherwise the entry is information only."""
    title: str
    """The event in words."""
    about: str
    """The order, agent or part of the system that is affected."""
    reason: str
    advice: str
    """The recommended action, or empty if none is needed."""
    count: int
    """The number of orders concerned."""
    at: datetime
    """The time at which the alert began."""
    link: str = ""
    """The address of the order or list in the console, or empty if the app has no address."""
    runbook: str = ""
    """The address of the section in the runbooks, or empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """One message to a channel. A repeated message has the same id."""

    id: str
    """A UUID."""
    at: datetime
    entries: tuple[DigestEntry, ...]
    """At least one entry. Entries that need an action come first."""
    others: int = 0
    """The number of further alerts that are not listed."""
    link: str = ""
    """The address of the alerts in the console, or empty if the app has no address."""


def clean(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, without control characters."""
    shown = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character
        for character in text
    )
    words = " ".join(shown.split())  # which ends lines and paragraphs too
    return words if len(words) <= limit else f"{words[: limit - 1]}…"
