"""The lifetime of an idempotency key, and the next key of a step (AGT-3, AGT-12).

A service that forgets keys would do the work of a step in doubt a second time. So the end of the
key is kept. After that time, an operator finds out at the service whether the step was done.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.domain.effects import Doubt, NotDone, next_generation
from engine.domain.states import Undoing, UndoPending, Waiting
from engine.domain.steps import Step
from engine.domain.table import TableEvent
from engine.domain.verbs import key_of, verb


@verb(TableEvent.RETRY_WITH_NEW_KEY)
def retry_with_new_key(step: Step) -> Step:
    """Let the step be done with its next key, because an operator found that it was not done."""
    effect = NotDone(key=next_generation(key_of(step)))
    fresh = replace(step, counts=step.counts.afresh(), callback_token=None)
    return replace(fresh, state=Waiting(), effect=effect)


def is_undone_by_key(step: Step) -> bool:
    """Return whether the step is being undone, and only the key tells its service what to undo."""
    kept = (step.result or {}).values()
    is_undo = isinstance(step.state, UndoPending | Undoing)
    return is_undo and all(value is None for value in kept)


def is_forgotten(step: Step, now: datetime) -> bool:
    """Return whether an attempt that starts now could need a forgotten key (AGT-12).

    A step in doubt needs the key. An undo needs the key if nothing of the result is kept.
    """
    known_until = step.key.known_until if step.key else None
    if known_until is None or not (isinstance(step.effect, Doubt) or is_undone_by_key(step)):
        return False
    return now + step.rules.timeout >= known_until


def known_until(step: Step, keys_last: timedelta | None, now: datetime) -> datetime | None:
    """Return the end of the key of an attempt that starts now, or None if it has no end.

    `keys_last` is how long the service remembers a key. If the effect is in doubt, the service may
    have the key from an earlier attempt. If the step is undone by its key alone, the service has
    had the key since the step was done.
    """
    before = step.key.known_until if step.key else None
    if isinstance(step.effect, Doubt) or (is_undone_by_key(step) and before):
        return before
    return now + keys_last if keys_last else None
