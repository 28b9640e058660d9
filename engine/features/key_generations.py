"""How long an idempotency key counts, and the key under which a step is done again (AGT-3, AGT-12).

A service that forgets keys would do the work of a step in doubt a second time. So its key's end is
kept, and an operator finds out at the service whether the step was done.
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
    """Let the step be done under its next key, since an operator found that it was not done."""
    effect = NotDone(key=next_generation(key_of(step)))
    fresh = replace(step, counts=step.counts.afresh(), callback_token=None)
    return replace(fresh, state=Waiting(), effect=effect)


def is_undone_by_key(step: Step) -> bool:
    """Whether the step is being undone, and its service knows only by the key what to undo."""
    kept = (step.result or {}).values()
    is_undo = isinstance(step.state, UndoPending | Undoing)
    return is_undo and all(value is None for value in kept)


def is_forgotten(step: Step, now: datetime) -> bool:
    """Whether an attempt that starts now needs the key, and could come too late for it (AGT-12).

    A step in doubt needs the key, and so does an undo if nothing of the result is kept.
    """
    known_until = step.key.known_until if step.key else None
    if known_until is None or not (isinstance(step.effect, Doubt) or is_undone_by_key(step)):
        return False
    return now + step.rules.timeout >= known_until


def known_until(step: Step, keys_last: timedelta | None, now: datetime) -> datetime | None:
    """Return until when the service knows the key of an attempt that starts now; None for ever.

    `keys_last` is how long the service remembers a key. If the effect is in doubt, the service may
    have the key from an earlier attempt. If the step is undone by its key alone, the service has
    had the key since the step was done.
    """
    before = step.key.known_until if step.key else None
    if isinstance(step.effect, Doubt) or (is_undone_by_key(step) and before):
        return before
    return now + keys_last if keys_last else None
