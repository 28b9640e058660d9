"""What people are sent about alerts: a digest lists what is new, has changed, or is resolved.

Its texts hold no personal data, no control characters and no line breaks.
"""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DigestStatus(StrEnum):
    """What a digest reports of an alert."""

    NEW = "new"
    CHANGED = "changed"
    RESOLVED = "resolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class DigestEntry:
    """One alert in a digest."""

    status: DigestStatus
    needs_action: bool
    """Whether an operator has to act; else the entry only informs."""
    title: str
    """What happened."""
    about: str
    """To which order, agent or part of the system."""
    reason: str
    advice: str
    """What to do; empty if there is nothing to do."""
    count: int
    """How many orders it concerns."""
    at: datetime
    """When it began."""
    link: str = ""
    """The address of the order or list in the console; empty if the app has no address."""
    runbook: str = ""
    """The address of the section of the operators' page; empty for nowhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """One message to a channel; a repeat of it has the same id."""

    id: str
    """A UUID."""
    at: datetime
    entries: tuple[DigestEntry, ...]
    """Not empty; those that need an action come first."""
    others: int = 0
    """How many further alerts there are, which are not listed."""
    link: str = ""
    """The address of the console's alerts; empty if the app has no address."""


def clean(text: str, limit: int) -> str:
    """Return the text in one line of at most `limit` characters, without control characters."""
    shown = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character
        for character in text
    )
    words = " ".join(shown.split())  # which ends lines and paragraphs too
    return words if len(words) <= limit else f"{words[: limit - 1]}…"
