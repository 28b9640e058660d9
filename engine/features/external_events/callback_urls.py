"""Callback URLs: a service or a person completes a step over one, without a key (ANS-6).

The token in it is random and kept with the step, and stands nowhere else: in no history, view or
log.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.domain.errors import InvalidCallbackUrlError
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step

TOKEN = re.compile(r"(\?token=)[\w-]+")
"""The token in a callback URL."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallbackUrls:
    """Makes the URLs over which a step is completed without a key of the app (ANS-6).

    A token is random and kept with the step, and stands nowhere else: in no history, view or log.
    """

    address: str
    """The public address of the app, without a slash at its end."""
    new_token: Callable[[], str]
    """Returns 128 random bits as text that may stand in an address."""

    def token_for(self, step: Step) -> str:
        """Return the token of the step's next attempt: the one that it has, or a new one."""
        return step.callback_token or self.new_token()

    def of(self, order_id: str, step: Step) -> str | None:
        """Return the URL by which the step is completed; None if it has no token."""
        return url_of(self.address, order_id, step)


def url_of(address: str | None, order_id: str, step: Step) -> str | None:
    """Return the URL of the step at the app's address; None without an address or a token."""
    if address is None or step.callback_token is None:
        return None
    return callback_url(address, order_id, step.name, step.callback_token)


def callback_url(address: str, order_id: str, step: str, token: str) -> str:
    """Return the URL by which this token completes the step, at the app's address."""
    return f"{address}/api/answers/{order_id}/{step}?token={token}"


def step_of(order: OrderAggregate, name: str, token: str) -> Step:
    """Return the step that this token is for; raises `InvalidCallbackUrlError`.

    The comparison takes the same time whatever the token is.
    """
    step = order.step(name)
    kept = step.callback_token if step else None
    matches = hmac.compare_digest((kept or "").encode(), token.encode("utf-8", "replace"))
    if step is None or kept is None or not matches:
        raise InvalidCallbackUrlError
    return step


def masked(text: str) -> str:
    """Return the text without the tokens of the callback URLs in it."""
    return TOKEN.sub(r"\1...", text)
