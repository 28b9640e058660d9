"""What operators do to an order, as functions."""

from contextlib import contextmanager
from functools import partial

import pytest

from engine.alerts import events as alerts
from engine.decisions.actions.action import OperatorCommand
from engine.decisions.operator_actions import BY_NAME
from engine.domain.errors import RefusedError
from engine.words.causes import words_of


@contextmanager
def is_refused(code, **facts):
    """What is done within is refused by a cause of this code, which has these facts."""
    with pytest.raises(RefusedError) as refusal:
        yield
    cause = refusal.value.cause
    assert cause.code == code
    assert facts.items() <= cause.facts.items()


def act(name, order, signed, now, **arguments):
    """The change by which an operator does this; raises `RefusedError`.

    `signed` says who acts, and why.
    """
    action = BY_NAME[name]
    command = OperatorCommand(
        operator=signed.operator, note=signed.note, arguments=action.asks(**arguments)
    )
    return action.act(order, command, now)


def refusal(name, order, now):
    """Why the action makes no sense for the order, in words; empty if it does."""
    cause = BY_NAME[name].why_not(order, now)
    return words_of(cause) if cause else ""


resubmit, skip, cancel, hold, release, expedite = (
    partial(act, name) for name in ("resubmit", "skip", "cancel", "hold", "release", "expedite")
)


def alerts_of(change):
    """What operators are told of a change."""
    return [*alerts.of(change.after, change.entry)]
