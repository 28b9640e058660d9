"""Pure rules for digests: what a digest says about its events, and when a channel may send."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engine.alerts.digests import Digest, DigestEntry, DigestStatus, clean
from engine.alerts.events import (
    HELD,
    OVERDUE,
    SUBMISSION_REJECTED,
    WAITING,
)
from engine.decisions.transitions import OperatorEvent
from engine.domain.keys import ABOUT_ORDER
from engine.storage.alert_log import revision_of
from engine.storage.notifications import ChannelState
from engine.words.alerts import advice_of, title_of
from engine.words.digests import subject_of

MAX_ENTRIES = 20
"""The most alerts that a digest lists. Of the others it gives the number."""
MAX_CHARACTERS = 30_000
"""The most characters of the keys of a digest's rows, because one column holds them."""
MAX_MESSAGES = 10
"""How many of its last messages the row of a channel keeps."""
SENDING = timedelta(seconds=30)
"""The longest time that a channel may take to send (`engine.ports.Channel.send`)."""
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=15), timedelta(hours=1)
MAX_TEXT, MAX_NAME = 300, 100
"""The longest reason or advice, and the longest name, in characters."""

LISTS: Mapping[str, str] = {WAITING: "Pending", OVERDUE: "Processing", HELD: "Held"}
"""The list of the console with the orders of a condition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The addresses of links in messages."""

    app: str = ""
    """The app's own address, without a slash at its end. Empty if there is none."""
    runbook: Mapping[str, str] = field(default_factory=dict)
    """The section of the runbook for each type of alert."""

    def page(self, path: str) -> str:
        return f"{self.app}/console#{path}" if self.app else ""

    def about(self, event: OperatorEvent) -> str:
        """Return the address of the order, list or page that an event is about."""
        if event.type == SUBMISSION_REJECTED:
            return self.page("/poison")
        if event.subject.startswith(ABOUT_ORDER):
            return self.page(f"/{event.subject}")
        orders = LISTS.get(event.subject.partition("/")[0])
        return self.page(f"/orders?state={orders}" if orders else "/alerts")


def keys_of_digest(waiting: Mapping[str, OperatorEvent]) -> tuple[str, ...]:
    """Return the keys of the rows that the next digest reports: as many as fit."""
    found: list[str] = []
    space = MAX_CHARACTERS
    for key in waiting:
        space -= len(key) + 3
        if space < 0:
            break
        found.append(key)
    return tuple(found)


def digest_of(
    digest_id: str, at: datetime, events: Mapping[str, OperatorEvent], places: Places
) -> Digest | None:
    """Return the digest of these events, or None if there are none.

    Only the latest event of a condition counts. A condition that began and ended meanwhile is
    listed as resolved. Entries that need an action come first. Conditions come before other alerts.
    """
    latest: dict[str, tuple[int, OperatorEvent]] = {}
    for event in events.values():
        revision = revision_of(event.data)
        name, number = (revision.alert, revision.revision) if revision else (event.event_id, 0)
        if name not in latest or latest[name][0] < number:
            latest[name] = (number, event)
    by_time = sorted((event for _, event in latest.values()), key=lambda event: event.at)
    by_time.sort(key=lambda event: (is_of_condition(event), needs_action(event)))
    entries = [_entry(event, places) for event in reversed(by_time)]
    if not entries:
        return None
    # Many orders that failed leave out none of the conditions, of which one may be their cause.
    listed = sorted(entries[:MAX_ENTRIES], key=lambda entry: not entry.needs_action)
    return Digest(
        id=digest_id,
        at=at,
        entries=tuple(listed),
        others=len(entries[MAX_ENTRIES:]),
        link=places.page("/alerts"),
    )


def _entry(event: OperatorEvent, places: Places) -> DigestEntry:
    data = event.data
    actions = data.get("actions")
    advice = ", ".join(map(advice_of, actions)) if isinstance(actions, list) else ""
    count = data.get("count")
    status = data.get("status")
    return DigestEntry(
        status=DigestStatus(status)
        if isinstance(status, str) and status in {*DigestStatus}
        else DigestStatus.NEW,
        needs_action=needs_action(event),
        title=clean(title_of(event.type), MAX_NAME),
        about=clean(event.subject, MAX_NAME),
        reason=clean(str(data.get("reason") or ""), MAX_TEXT),
        advice=clean(advice, MAX_TEXT),
        count=count if isinstance(count, int) else 1,
        at=event.at,
        link=places.about(event),
        runbook=places.runbook.get(event.type, ""),
    )


def is_of_condition(event: OperatorEvent) -> bool:
    return revision_of(event.data) is not None


def needs_action(event: OperatorEvent) -> bool:
    return event.data.get("actionRequired") is True


def may_begin(state: ChannelState, now: datetime, interval: timedelta) -> bool:
    """Whether a new digest may be sent: the first immediately, the next after the interval."""
    # A clock that was ahead for a while does not silence the channel until then.
    return state.ended_at is None or abs(now - state.ended_at) >= interval


def is_paused(state: ChannelState, now: datetime) -> bool:
    """Whether the pause after a failed attempt lasts, or another run sends the digest.

    A time that is further away than its limit is ignored, because a clock that was ahead wrote it.
    """
    ends = ((state.not_before, LONGEST_PAUSE), (state.sending_until, SENDING))
    return any(end and timedelta() < end - now <= longest for end, longest in ends)


def sending(state: ChannelState, now: datetime) -> ChannelState:
    """Return the state in which only this run sends the digest."""
    return replace(state, sending_until=now + SENDING)


def begun(
    state: ChannelState, digest_id: str, keys: tuple[str, ...], now: datetime
) -> ChannelState:
    """Return the state in which a digest is to be sent."""
    return replace(
        state, digest_id=digest_id, digest_at=now, keys=keys, outcome=None, tries=0, not_before=None
    )


def after_failed_try(
    state: ChannelState, why: str, retry_after: timedelta, now: datetime
) -> ChannelState:
    """Return the state after a failed attempt.

    The pause grows with each attempt, and is at least as long as the channel requests.
    """
    pause = min(SHORTEST_PAUSE * 2 ** min(state.tries, 10), LONGEST_PAUSE)
    until = now + max(pause, retry_after)
    return replace(
        state,
        sending_until=None,
        tries=state.tries + 1,
        not_before=until,
        failure=clean(why, MAX_TEXT),
    )


def ended(
    state: ChannelState, digest: Digest | None, outcome: str, now: datetime, why: str | None = None
) -> ChannelState:
    """Return the state after the digest was sent or refused. Its rows are still to be removed."""
    messages = state.messages
    if digest:
        message = {
            "id": digest.id,
            "at": now.isoformat(),
            "subject": subject_of(digest),
            "entries": len(digest.entries) + digest.others,
            "outcome": outcome,
        }
        messages = (message, *messages)[:MAX_MESSAGES]
    return replace(
        state,
        sending_until=None,
        outcome=outcome,
        tries=0,
        not_before=None,
        failure=clean(why, MAX_TEXT) if why else None,
        ended_at=now,
        messages=messages,
    )


def at_rest(state: ChannelState) -> ChannelState:
    return replace(state, digest_id=None, digest_at=None, keys=(), outcome=None)
