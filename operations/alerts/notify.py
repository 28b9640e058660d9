"""Sends digests of the alerts to people, on its own timer, independently for each channel.

A digest's id and contents are written before it is sent. So after a crash, at most one message of
each channel is repeated, under the same id, and none is lost.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from engine.alerts.digests import Digest
from engine.concurrency import run_all
from engine.domain.errors import (
    ChannelAwayError,
    ChannelRefusedError,
    ConflictError,
    OutOfTimeError,
)
from engine.ports import Channel, Clock
from engine.storage.notifications import ChannelState, Notifications, known
from engine.storage.tables import Stored
from operations.alerts import digests
from operations.alerts.digests import Places

log = logging.getLogger(__name__)

AT_MOST = 1000
"""How many waiting events are read together."""
TOO_MANY_TRIES = 5
"""After this many failed attempts, a channel counts as unavailable, which is logged as an error."""


@dataclass(frozen=True, kw_only=True)
class Notifier:
    """Sends the messages that are waiting in the channels."""

    channels: Sequence[Channel]
    notifications: Notifications
    clock: Clock
    new_id: Callable[[], str]
    interval: timedelta
    """The shortest time between two digests of a channel."""
    places: Places

    async def send(self) -> None:
        """Send one digest to each channel that may send. No channel waits for another.

        Raises the failures of the store at the end, as an `ExceptionGroup`.
        """
        # Most runs find nothing to send, so they cost one query, not some for each channel.
        if not await self.notifications.any_waiting():
            return
        rows = await self.notifications.rows()
        await run_all(
            self._to_channel(channel, rows.get(channel.name)) for channel in self.channels
        )

    async def _to_channel(self, channel: Channel, row: Stored | None) -> None:
        state, etag = known(channel.name, row)
        now = self.clock()
        if digests.is_paused(state, now):
            return
        with suppress(ConflictError):  # another instance sends to this channel
            if state.digest_id is None:
                if not digests.may_begin(state, now, self.interval):
                    return
                waiting = await self.notifications.waiting(channel.name, AT_MOST)
                if not waiting:
                    return
                keys = digests.keys_of_digest(waiting)
                state = digests.begun(state, self.new_id(), keys, now)
            if state.outcome is None:
                state = digests.sending(state, now)
                etag = await self.notifications.put(state, etag)
            await self._finish(channel, state, etag)

    async def _finish(self, channel: Channel, state: ChannelState, etag: str | None) -> None:
        """Send the digest unless it was sent before. Then remove its rows."""
        if state.outcome is None:
            state = await self._tried(channel, state)
            etag = await self.notifications.put(state, etag)
            if state.outcome is None:
                return
        await self.notifications.remove(state.keys)
        await self.notifications.put(digests.at_rest(state), etag)

    async def _tried(self, channel: Channel, state: ChannelState) -> ChannelState:
        """Try to send the digest, and return the new state."""
        digest = await self._digest(state)
        about = {"channel": channel.name, "digest": state.digest_id}
        try:
            if digest:
                await channel.send(digest)
        except ChannelRefusedError as refusal:
            log.error("channel.refused", extra=about | {"why": str(refusal)})  # noqa: TRY400
            return digests.ended(state, digest, "refused", self.clock(), str(refusal))
        except ChannelAwayError as away:
            about |= {"why": str(away)}
            if state.tries + 1 < TOO_MANY_TRIES:
                log.warning("channel.not_sent", extra=about)
            else:
                log.error("channel.away", extra=about)  # noqa: TRY400 - it names what it needs to
            return digests.after_failed_try(state, str(away), away.retry_after, self.clock())
        except OutOfTimeError:
            raise
        except Exception as fault:
            log.exception("channel.failed", extra=about)
            return digests.after_failed_try(state, type(fault).__name__, timedelta(), self.clock())
        log.info("channel.sent", extra=about)
        return digests.ended(state, digest, "sent", self.clock())

    async def _digest(self, state: ChannelState) -> Digest | None:
        """Return the digest as it was begun. None if none of its events is left."""
        events = await self.notifications.among(state.keys)
        at = state.digest_at or self.clock()
        return digests.digest_of(state.digest_id or "", at, events, self.places)
