"""What an answer over HTTP means for a message.

No error contains the text or the recipients of the message.
"""

import re
from datetime import datetime, timedelta

from engine.azure.answers import ServiceAnswer
from engine.domain.errors import ChannelAwayError

LONGEST_WAIT = timedelta(hours=1)
"""The longest pause that a channel may request."""
PASSING = {408, 425, 429}
"""The statuses below 500 after which a later attempt may succeed."""
CODE = re.compile("[A-Za-z][A-Za-z_]{1,59}")
"""A code such as `invalid_payload`. Any other text of an answer could repeat the message."""


def is_passing(status: int) -> bool:
    """Whether a later attempt may succeed."""
    return status in PASSING or status >= 500


def why(host: str, status: int, code: str) -> str:
    """Return the text of an error: the host, its status, and its code if it has a valid one."""
    answered = f"{host} {status}"
    return f"{answered} {code}" if CODE.fullmatch(code) else answered


def pause(answer: ServiceAnswer, now: datetime, least: timedelta = timedelta()) -> timedelta:
    """Return the pause that the channel requests, between `least` and an hour."""
    return max(answer.asks_to_wait(now, LONGEST_WAIT) or timedelta(), least)


def no_answer(host: str, error: BaseException) -> ChannelAwayError:
    """Return the error for a message that may have arrived.

    It names only the error's type, because its text may contain addresses.
    """
    return ChannelAwayError(f"{host} {type(error).__name__}")
