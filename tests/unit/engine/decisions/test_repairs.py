"""What operators do to an order in `Error`: whether it makes sense, and how the order goes on."""

from dataclasses import replace
from datetime import timedelta

from engine_records import (
    DECLINED,
    KEY,
    NOW,
    TIMEOUT,
    external,
    order,
    refused,
    step,
)
from engine_scheduling import only_step

from core.life import Direction, Outcome
from engine.decisions.actions import resubmit
from engine.domain import events as e
from engine.domain.causes import Code
from engine.domain.effects import Done, InDoubt, NotDone, UndoInDoubt
from engine.domain.orders import InError, Pending, Processed
from engine.domain.states import (
    Completed,
    Failed,
    NothingToUndo,
    RequestCancelled,
    UndoFailed,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.steps import Counts
from engine.features.external_events import with_callback_token

NOTE = "looked there"
FAILED = Failed(DECLINED)
TRIED = Counts(attempts=3, failures=2, cooldowns=1)
KNOWN = replace(KEY, known_until=NOW + TIMEOUT + timedelta(seconds=1))
FORGOTTEN = replace(KEY, known_until=NOW + TIMEOUT)


def failed_order(*steps, **changes):
    own = {"state": InError(Outcome.FAILED), "cause": DECLINED, "failures": 2}
    return order(*steps, **own | changes)


def stuck(*steps):
    """An order that could not be undone."""
    return failed_order(*steps, state=InError(Outcome.UNDO_INCOMPLETE), direction=Direction.UNDO)


def code_of(cause):
    return cause and cause.code


OVER = failed_order(step(Undone()), state=InError(Outcome.UNDONE), direction=Direction.UNDO)

# Resubmit


def test_a_resubmitted_order_starts_its_failed_steps_afresh():
    """OPR-3: its attempts go on counting, and what is completed stays so."""
    done = step(Completed(), "a", effect=Done(key=KEY))
    failed = step(FAILED, "b", effect=NotDone(key=KEY), counts=TRIED)
    it = failed_order(done, failed)
    assert resubmit.refusal(it, NOW) is None
    again = resubmit.decide(it, NOTE, NOW)
    assert again.after.state == Pending()
    assert (again.after.cause, again.after.failures) == (None, 0)
    assert again.after.step("a") == done
    assert again.after.step("b").state == Waiting()
    assert again.after.step("b").counts == Counts(attempts=3)
    assert again.events == (e.ActionTaken(action=e.Action.RESUBMIT, note=NOTE),)
    assert len(again.messages) == 1


def test_a_resubmit_gives_a_refused_key_its_next_generation():
    """AGT-3."""
    failed = step(FAILED, effect=NotDone(key=KEY, refused_for_good=True))
    assert only_step(resubmit.decide(failed_order(failed), NOTE, NOW)).key.generation == 1


def test_a_resubmit_asks_somebody_outside_again():
    """SCH-12: the answer that they had been asked for is awaited again."""
    asked = with_callback_token(replace(external(RequestCancelled()), counts=TRIED), "t")
    again = resubmit.decide(failed_order(refused(FAILED), asked), NOTE, NOW)
    assert again.after.step("approve").state == Waiting()
    assert again.after.step("approve").callback_token is None


def test_a_resubmit_lets_an_undo_go_on():
    """UND-4: only what may stand is undone again, and nobody outside is asked."""
    may_stand = step(UndoFailed(DECLINED), "a", effect=UndoInDoubt(key=KEY))
    nothing = refused(NothingToUndo(DECLINED), name="b")
    asked = replace(external(RequestCancelled()), counts=TRIED)
    again = resubmit.decide(stuck(may_stand, nothing, asked), NOTE, NOW).after
    assert again.step("a").state == UndoPending()
    assert (again.step("b"), again.step("approve")) == (nothing, asked)
    assert again.direction is Direction.UNDO


def test_an_order_is_resubmitted_only_in_error():
    """OPR-3: and not once it is over."""
    assert code_of(resubmit.refusal(order(step()), NOW)) is Code.NOT_IN_ERROR
    processed = resubmit.refusal(order(state=Processed()), NOW)
    assert processed.facts == {"action": e.Action.RESUBMIT, "state": "Processed"}
    assert code_of(resubmit.refusal(OVER, NOW)) is Code.NOTHING_TO_RESUME


def test_no_step_in_doubt_is_resubmitted_whose_key_may_be_forgotten():
    """AGT-12: it could be done twice. Of a step that was certainly not done, nothing is known to forget."""
    old = step(FAILED, "a", effect=InDoubt(key=FORGOTTEN))
    fresh = step(FAILED, "b", effect=InDoubt(key=KNOWN))
    certain = step(FAILED, "c", effect=NotDone(key=FORGOTTEN))
    assert resubmit.refusal(failed_order(fresh, certain), NOW) is None
    cause = resubmit.refusal(failed_order(old, fresh, certain), NOW)
    assert (cause.code, cause.facts) == (
        Code.KEYS_FORGOTTEN,
        {"steps": ["a"], "is_undo": False},
    )
    back = stuck(step(UndoFailed(DECLINED), effect=UndoInDoubt(key=FORGOTTEN)))
    assert resubmit.refusal(back, NOW).facts["is_undo"]
