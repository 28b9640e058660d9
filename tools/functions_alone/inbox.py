"""The messages that the stand-ins for channels have received, and how each channel fails on demand."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

KEPT_MESSAGES = 100


class StandInChannel(StrEnum):
    """The channels that have a stand-in."""

    SMTP = "smtp"
    TEAMS = "teams"
    SLACK = "slack"


class Mode(StrEnum):
    """How a channel treats the messages that it gets."""

    NONE = "none"
    """Keeps and confirms each message."""
    THROTTLE = "429"
    """Answers that it takes no messages for now."""
    HANG = "hang"
    """Does not answer until it gets another mode. Then it closes the connection."""
    CUT = "cut"
    """Keeps each message, but closes the connection instead of answering. The sender cannot know the result."""
    REFUSE = "refuse"
    """Answers that it will never take the message."""


class ChannelFault(BaseModel):
    """A mode, as the body of a request sets it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode
    retry_after: Annotated[int, Field(ge=0)] | None = Field(None, alias="retryAfter")
    """The header `Retry-After` of the mode `429`, in seconds. SMTP has no such header."""

    @property
    def closes(self) -> bool:
        """Whether the connection is closed without an answer."""
        return self.mode in (Mode.HANG, Mode.CUT)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentMessage:
    """A message that a channel has received."""

    channel: StandInChannel
    id: str | None = None
    """The `Message-ID` of a mail. None for a chat, whose messages have none."""
    subject: str
    text: str
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


class ChannelInbox:
    """The last messages of all channels, in memory."""

    def __init__(self) -> None:
        self._messages = deque[SentMessage](maxlen=KEPT_MESSAGES)
        self._faults = dict.fromkeys(StandInChannel, ChannelFault(mode=Mode.NONE))
        self._released = asyncio.Event()

    @property
    def messages(self) -> Sequence[SentMessage]:
        """The messages that were kept, the oldest first."""
        return list(self._messages)

    def set_fault(self, channel: StandInChannel, fault: ChannelFault) -> None:
        """Make a channel fail like this from now on."""
        self._faults[channel] = fault
        self.release()

    def release(self) -> None:
        """End the calls that hang."""
        self._released.set()
        self._released = asyncio.Event()

    async def take(self, message: SentMessage) -> ChannelFault:
        """Keep a message unless its channel fails. Return how the channel must answer."""
        fault = self._faults[message.channel]
        if fault.mode is Mode.HANG:
            await self._released.wait()
        if fault.mode in (Mode.NONE, Mode.CUT):
            self._messages.append(message)
        return fault
