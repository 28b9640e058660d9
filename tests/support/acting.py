"""What operators do to an order, as functions."""

from functools import partial

from core import alerts
from core.actions import BY_NAME


def act(name, order, asked, now):
    """The change by which an operator does this; raises `RefusedError`."""
    return BY_NAME[name].act(order, asked, now)


resubmit, skip, cancel, hold, release, hurry = (
    partial(act, name) for name in ("resubmit", "skip", "cancel", "hold", "release", "hurry")
)


def told(change):
    """What operators are told of a change."""
    return [*alerts.of(change.after, change.entry)]
