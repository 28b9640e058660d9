"""The words of the messages about alerts to people."""

from engine.alerts.digests import Digest, DigestEntry, DigestStatus
from engine.words.catalogue import text


def subject_of(digest: Digest) -> str:
    """Return the first alert and the number of the others, as in the subject of a mail."""
    first, others = digest.entries[0], len(digest.entries) + digest.others - 1
    return text(
        "digest.subject",
        status=text(f"digest.status.{first.status}"),
        title=first.title,
        about=first.about,
        more=text("digest.more", others=others) if others else "",
    )


def heading_of(entry: DigestEntry) -> str:
    is_open = entry.needs_action and entry.status is not DigestStatus.RESOLVED
    key = "digest.heading.action" if is_open else "digest.heading"
    return text(key, label=text(f"digest.label.{entry.status}"), title=entry.title)


def others_of(digest: Digest) -> str:
    """Return the number of unlisted alerts in words, or empty if the message lists all."""
    return text("digest.others", count=digest.others) if digest.others else ""
