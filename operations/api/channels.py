"""The channels to people, as operators see them: what was sent, and what waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.concurrency import run_all
from engine.http.models import View
from engine.storage.notifications import Notifications, known
from engine.storage.tables import Stored

MAX_COUNTED = 1000
"""The most waiting events of a channel that are counted."""


class MessageView(View):
    """A digest that was sent or refused."""

    id: str
    at: datetime
    subject: str
    entries: int
    """How many alerts it reported."""
    outcome: str
    """`sent` or `refused`."""


class ChannelView(View):
    """A channel with its last messages."""

    channel: str
    waiting: int
    """How many events wait for the next message, up to a thousand."""
    last_sent_at: datetime | None
    paused_until: datetime | None
    """The end of the pause after a failed attempt."""
    failure: str | None
    """Why the last attempt failed."""
    messages: list[MessageView]
    """The messages, newest first."""


class ChannelList(View):
    """The configured channels."""

    channels: list[ChannelView]


@dataclass(frozen=True, kw_only=True)
class ChannelService:
    """Shows the channels."""

    channels: Sequence[str]
    notifications: Notifications

    async def list(self) -> ChannelList:
        """List the channels over which alerts reach people, and the messages sent over each."""
        rows = await self.notifications.rows()
        return ChannelList(
            channels=await run_all(self._channel(name, rows.get(name)) for name in self.channels)
        )

    async def _channel(self, name: str, row: Stored | None) -> ChannelView:
        state, _ = known(name, row)
        waiting = await self.notifications.waiting(name, MAX_COUNTED)
        messages = [MessageView.model_validate(message) for message in state.messages]
        return ChannelView(
            channel=name,
            waiting=len(waiting),
            last_sent_at=next(
                (message.at for message in messages if message.outcome == "sent"), None
            ),
            paused_until=state.not_before,
            failure=state.failure,
            messages=messages,
        )
