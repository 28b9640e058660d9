"""What an answer over HTTP means for a message; no error says what was sent, or to whom."""

import re
from datetime import datetime, timedelta

from engine.azure.answers import ServiceAnswer
from engine.domain.errors import ChannelAwayError

LONGEST_WAIT = timedelta(hours=1)
"""The longest pause that a channel may ask for."""
PASSING = {408, 425, 429}
"""The statuses below 500 after which a later try may succeed."""
CODE = re.compile("[A-Za-z][A-Za-z_]{1,59}")
"""A code such as `invalid_payload`. Other texts of an answer could repeat what was sent."""


def is_passing(status: int) -> bool:
    """Whether a later try may succeed."""
    return status in PASSING or status >= 500


def why(host: str, status: int, code: str) -> str:
    """Return the text of an error, without words: the host, its status, and its code if any."""
    answered = f"{host} {status}"
    return f"{answered} {code}" if CODE.fullmatch(code) else answered


def pause(answer: ServiceAnswer, now: datetime, least: timedelta = timedelta()) -> timedelta:
    """Return how long the channel asks to wait, between `least` and an hour."""
    return max(answer.asks_to_wait(now, LONGEST_WAIT) or timedelta(), least)


def no_answer(host: str, error: BaseException) -> ChannelAwayError:
    """Return the error of a message that perhaps arrived; other texts may name addresses."""
    return ChannelAwayError(f"{host} {type(error).__name__}")
