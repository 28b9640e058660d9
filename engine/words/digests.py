"""The words of the messages about alerts that people get."""

from engine.alerts.digests import Digest, DigestEntry, DigestStatus
from engine.words.catalogue import text


def subject_of(digest: Digest) -> str:
    """Return what a reader sees first: the first alert, and the number of the others."""
    first, others = digest.entries[0], len(digest.entries) + digest.others - 1
    return text(
        "digest.subject",
        status=text(f"digest.status.{first.status}"),
        title=first.title,
        about=first.about,
        more=text("digest.more", others=others) if others else "",
    )


def heading_of(entry: DigestEntry) -> str:
    """Return the heading of an entry."""
    is_open = entry.needs_action and entry.status is not DigestStatus.RESOLVED
    key = "digest.heading.action" if is_open else "digest.heading"
    return text(key, label=text(f"digest.label.{entry.status}"), title=entry.title)


def others_of(digest: Digest) -> str:
    """Return how many alerts the message does not list; empty if it lists all."""
    return text("digest.others", count=digest.others) if digest.others else ""
