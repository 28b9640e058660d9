"""Links that carry their own right: whoever has one answers its step, without a key (ANS-6).

A right is random and kept with the step, and stands nowhere else: in no history, view or log.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.domain.errors import InvalidLinkError
from engine.domain.orders import Order
from engine.domain.steps import Step

RIGHT = re.compile(r"(\?right=)[\w-]+")
"""The right in a link."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """Makes the links of this deployment."""

    address: str
    """The public address of the app, without a slash at its end."""
    new_right: Callable[[], str]
    """Returns 128 random bits as text that may stand in an address."""

    def with_right(self, step: Step) -> Step:
        """Return the step with a right; one that it has stays as it is."""
        if step.callback_token:
            return step
        return replace(step, callback_token=self.new_right())

    def of(self, order_id: str, step: Step) -> str | None:
        """Return the link by which the step is answered; None if it has no right."""
        return link(self.address, order_id, step)


def link(address: str | None, order_id: str, step: Step) -> str | None:
    """Return the link by which the step is answered at the app's address; None without a right."""
    if address is None or step.callback_token is None:
        return None
    return f"{address}/api/answers/{order_id}/{step.name}?right={step.callback_token}"


def step_of(order: Order, name: str, right: str) -> Step:
    """Return the step that this right is for; raises `InvalidLinkError`.

    The comparison takes the same time whatever the right is.
    """
    step = order.step(name)
    kept = step.callback_token if step else None
    is_right = hmac.compare_digest((kept or "").encode(), right.encode("utf-8", "replace"))
    if step is None or kept is None or not is_right:
        raise InvalidLinkError
    return step


def masked(text: str) -> str:
    """Return the text without the rights of the links in it."""
    return RIGHT.sub(r"\1...", text)
