"""Callback URLs: a service or a person completes a step at such an address, without a key (ANS-6).

The token in the URL is random. It is kept only with the step, and never in a history, a view or a
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


@dataclass(frozen=True, kw_only=True, slots=True)
class CallbackUrls:
    """Makes the URLs at which a step is completed without a key of the app (ANS-6)."""

    address: str
    """The public address of the app, without a slash at its end."""
    new_token: Callable[[], str]
    """Returns 128 random bits as text that may be part of an address."""

    def token_for(self, step: Step) -> str:
        """Return the token of the step's next attempt: the existing token, or a new one."""
        return step.callback_token or self.new_token()

    def of(self, order_id: str, step: Step) -> str | None:
        """Return the callback URL of the step, or None if the step has no token."""
        return url_of(self.address, order_id, step)


def url_of(address: str | None, order_id: str, step: Step) -> str | None:
    """Return the callback URL of the step, or None without an address or a token."""
    if address is None or step.callback_token is None:
        return None
    return callback_url(address, order_id, step.name, step.callback_token)


def callback_url(address: str, order_id: str, step: str, token: str) -> str:
    """Return the URL at which this token completes the step.

    `address` is the public address of the app.
    """
    return f"{address}/api/answers/{order_id}/{step}?token={token}"


def step_of(order: OrderAggregate, name: str, token: str) -> Step:
    """Return the step to which this token belongs.

    Raises `InvalidCallbackUrlError` if it belongs to none.
    """
    step = order.step(name)
    kept = step.callback_token if step else None
    # The comparison takes the same time for every token.
    matches = hmac.compare_digest((kept or "").encode(), token.encode("utf-8", "replace"))
    if step is None or kept is None or not matches:
        raise InvalidCallbackUrlError
    return step


def masked(text: str) -> str:
    """Return the text with the tokens of its callback URLs replaced."""
    return TOKEN.sub(r"\1...", text)
