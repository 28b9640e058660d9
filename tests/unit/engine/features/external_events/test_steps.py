"""Steps that an external event completes, and services that answer over a callback URL (ANS)."""

from dataclasses import replace

import pytest

from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import Answered, Done, InDoubt, NothingSent, Reverted, UndoInDoubt
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    CoolingDown,
    Deferred,
    Failed,
    RequestCancelled,
    Running,
    Undone,
    Waiting,
)
from engine.domain.steps import Counts
from engine.domain.submitted_order import ERASED
from engine.features.external_events import steps as events
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOW,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    step,
)

LATER = NOW + HOUR
UP = NOW + TIMEOUT
FIRST, SECOND = "first", "second"
RESULT = {"decision": "yes"}


def awaited(**changes):
    return events.await_event(external(**changes), UP, callback_token=FIRST)


def test_an_awaited_event_is_an_attempt_without_a_request():
    """ANS-1: nothing is sent, so nothing can be in doubt; its callback has a secret."""
    step_ = awaited()
    assert step_.state == AwaitingExternalEvent(UP)
    assert step_.effect == NothingSent()
    assert step_.counts == Counts(attempts=1)
    assert (step_.agent, step_.callback_token) == ("outside", FIRST)
    assert not step_.may_be_done


def test_an_event_completes_the_step_also_before_its_turn():
    """ANS-2."""
    for before in (awaited(), external()):
        completed = events.complete_by_event(before, RESULT)
        assert (completed.state, completed.effect) == (Completed(), Answered(result=RESULT))
        assert completed.result == RESULT


def test_a_service_may_answer_over_its_callback_url():
    """ANS-6: its key stays, for the undo; that ends the doubt and the row of pauses."""
    owes = InDoubt(key=KEY, unanswered=False, answer_by=LATER)
    deferred = step(Deferred(LATER), effect=owes, counts=Counts(attempts=2, uncounted=2))
    completed = events.complete_by_callback(deferred, RESULT)
    assert completed.effect == Done(key=KEY, result=RESULT)
    assert completed.counts == Counts(attempts=2)
    assert events.complete_by_callback(in_doubt(Running(UP)), RESULT).state == Completed()


def test_an_event_that_does_not_come_counts_and_is_awaited_again():
    """ANS-2: nothing is in doubt."""
    missed = events.expire_event(awaited(), NOW)
    assert missed.state == Waiting(Cause(Code.NO_EXTERNAL_EVENT), retry_by=UP)
    assert missed.counts == Counts(attempts=1, failures=1)
    assert missed.effect == NothingSent()


def test_a_step_whose_event_never_comes_fails_at_its_threshold():
    """ANS-2; or cools down before, if its rule says so."""
    failed = events.expire_event(awaited(threshold=1), NOW)
    cause = Cause(Code.EXTERNAL_EVENT_MISSING, {"step": "approve", "failures": 1})
    assert failed.state == Failed(cause)
    cooling = events.expire_event(awaited(threshold=1, cooldown=HOUR, max_cooldowns=1), NOW)
    assert cooling.state == CoolingDown(
        LATER, Cause(Code.NO_EXTERNAL_EVENT), retry_by=LATER + TIMEOUT
    )
    assert cooling.counts == Counts(attempts=1, cooldowns=1)


def test_somebody_outside_may_refuse():
    """ANS-3: the rule of the step decides what follows."""
    failed = verbs.refuse(awaited(), DECLINED)
    assert (failed.state, failed.effect) == (Failed(DECLINED), NothingSent())


def test_a_request_that_is_cancelled_is_sent_again_after_a_resubmit():
    """SCH-12: so is one that waited to be asked again; nobody who was never asked is."""
    cancelled = events.cancel_request(awaited())
    assert cancelled.state == RequestCancelled()
    assert events.is_awaited_again(cancelled)
    assert verbs.reset(cancelled).state == Waiting()
    assert verbs.reset(cancelled).callback_token is None
    assert events.is_awaited_again(events.expire_event(awaited(), NOW))
    assert not events.is_awaited_again(external())
    assert not events.is_awaited_again(in_doubt(Waiting(TIMED_OUT)))
    assert not events.is_awaited_again(events.complete_by_event(awaited(), RESULT))


def test_the_deadline_of_an_event_moves():
    """ANS-7, OPR-7: by the time of a hold, which never moves it back (engine 24)."""
    assert events.move_deadline(awaited(), LATER).complete_by == LATER
    assert events.move_deadline_by(awaited(), HOUR).complete_by == UP + HOUR
    assert events.move_deadline_by(awaited(), -HOUR).complete_by == UP
    with pytest.raises(verbs.InvalidTransitionError):
        events.move_deadline(external(), LATER)


def test_a_new_secret_ends_the_former_url():
    """ANS-6."""
    assert events.with_callback_token(awaited(), SECOND).callback_token == SECOND


PERSONAL = {"iban": "DE1", "names": ["Ada", "Bo"], "none": [], "unset": None, "ok": True}


@pytest.mark.parametrize(
    "effect",
    [
        Answered(result=PERSONAL),
        Done(key=KEY, result=PERSONAL),
        UndoInDoubt(key=KEY, result=PERSONAL),
        Reverted(key=KEY, result=PERSONAL),
    ],
    ids=lambda effect: type(effect).__name__,
)
def test_the_personal_data_of_a_result_is_erased(effect):
    """ANS-5: the rest stays; of a list one part stands for all."""
    own = step(Completed(), effect=effect, personal=("iban", "names", "none", "unset"))
    erased = events.without_personal_data(own)
    expected = {"iban": ERASED, "names": [ERASED], "none": [], "unset": None, "ok": True}
    assert erased.result == expected
    assert replace(erased, effect=effect) == own


def test_a_step_without_personal_data_stays_as_it_is():
    """Nothing of it is erased."""
    plain = step(Completed(), effect=Done(key=KEY, result=PERSONAL))
    assert events.without_personal_data(plain) is plain
    unknown = step(Undone(), effect=Reverted(key=KEY), personal=("iban",))
    assert events.without_personal_data(unknown) is unknown
    waiting = step(personal=("iban",))
    assert events.without_personal_data(waiting) is waiting
