"""What the rules decide about an answer from outside, and what they say of it."""

from dataclasses import replace

import pytest

from engine.decisions.errors import ActionRefusedError
from engine.domain import states
from engine.domain.causes import Code
from engine.domain.effects import Answered, Done
from engine.domain.errors import RefusedError
from engine.domain.events import ExternalRequestCancelled
from engine.domain.orders import Pending
from engine.domain.states import Completed, Waiting
from engine.domain.statuses import Outcome
from engine.domain.steps import Counts, StepKind
from engine.features.external_events import decide
from engine.features.external_events.content import question, read
from engine.features.external_events.decide import ExternalEvent, external_step
from engine.features.external_events.steps import without_personal_data
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from testkit import WorkflowTestEnvironment
from tests.support.acting import cancel, is_refused, resubmit
from tests.support.asking import ADA, ASKING, SENT
from tests.support.builders import NOW, orders, refusal, steps

GRACE = OperatorRequest(operator="grace", note="they called")
WORKFLOWS = ASKING.workflows


@pytest.fixture
def order():
    """An order that awaits the pictures."""
    environment = WorkflowTestEnvironment(ASKING)
    placed = environment.submit(ADA)
    return environment._world.run(environment._world.engine.store.load(placed.id))


def yes(order):
    return ExternalEvent(step="pictures", result=SENT.model_dump(mode="json"))


@pytest.mark.proves("ANS-1")
def test_a_step_that_is_answered_keeps_nothing_of_what_it_waited_for(order):
    """Neither a reason, nor a date, nor a time by which a service has to answer over its link."""
    before = order.step("pictures")
    rests = steps.cooling_down(before, until=NOW, reason="nobody has answered in time")
    asked = steps.with_rules(before, kind=StepKind.SERVICE, capability="office")
    sent = steps.in_doubt(asked)
    accepted = steps.accepted_by_service(sent, ask_again_at=NOW, finish_by=NOW)
    for waiting, effect in ((rests, Answered), (accepted, Done)):
        now = orders.with_steps(order, waiting)
        step = decide.recorded(now, yes(order), "grace", NOW).after.step("pictures")
        assert step.state == Completed()
        assert isinstance(step.effect, effect)


def test_a_refusal_of_a_step_that_failed_for_another_reason_is_no_repetition(order):
    """The very same one is."""
    refused = ExternalEvent(step="pictures", refusal="no camera")
    failed = decide.recorded(order, refused, "grace", NOW).after
    assert decide.recorded(failed, refused, "grace", NOW) is None
    with is_refused(Code.EVENT_AFTER_FAILURE, step="pictures"):
        decide.recorded(failed, replace(refused, refusal="no time"), "grace", NOW)


@pytest.mark.proves("ANS-1")
def test_the_history_says_which_time_of_asking_was_answered_and_why_another_was_not(order):
    """An answer by its attempt; a refusal by its words."""
    again = orders.with_steps(order, steps.with_counts(order.step("pictures"), attempts=2))
    change = decide.recorded(again, yes(order), "grace", NOW)
    assert [event.attempt for event in change.entry.events] == [2]
    refused = ExternalEvent(step="pictures", refusal="no camera")
    change = decide.recorded(order, refused, "grace", NOW)
    assert "no camera" in in_words(change.entry.events)
    assert change.entry.events[0].cause == refusal("no camera")


def test_a_step_that_cannot_be_answered_is_named_with_those_that_can(order):
    """Several of them, or none; one that the order does not have too."""
    without = orders.having(order, steps=order.steps[:1])
    for known, names in ((order, ["pictures", "approval"]), (without, [])):
        with pytest.raises(ActionRefusedError) as refused:
            external_step(known, "check")
        assert refused.value.cause.facts["steps"] == names
    with is_refused(Code.EVENT_FOR_UNKNOWN_STEP, step="other"):
        decide.recorded(order, ExternalEvent(step="other", result={}), "grace", NOW)


def test_a_question_is_made_from_the_answers_that_its_step_uses(order):
    """Here from how many pictures there are."""
    seen = decide.recorded(order, yes(order), "grace", NOW).after
    definition = WORKFLOWS.find("asking", 1).definition("approval")
    assert question(seen, definition) == {"text": "1 pictures"}


@pytest.mark.proves("ANS-5")
@pytest.mark.parametrize(("urls", "left"), [(["a", "b"], ["erased"]), ([], []), (None, None)])
def test_of_a_personal_list_one_part_stays_and_of_an_empty_one_none(order, urls, left):
    """How many there were is personal too; that there were none is not."""
    step = steps.completed(order.step("pictures"), result={"urls": urls, "by": "Ada"})
    step = steps.with_rules(step, personal=("urls",))
    assert without_personal_data(step).result == {"urls": left, "by": "Ada"}


@pytest.mark.proves("ANS-3", "ANS-5")
def test_the_same_answer_is_known_after_it_was_erased(order):
    """Otherwise it would be kept as poison, with the very data that was erased (engine 30)."""
    pictures = steps.with_rules(order.step("pictures"), personal=("urls",))
    personal = orders.with_steps(order, pictures)
    recorded = decide.recorded(personal, yes(order), "grace", NOW).after
    erased = orders.with_steps(recorded, without_personal_data(recorded.step("pictures")))
    assert erased != recorded
    assert decide.recorded(erased, yes(order), "grace", NOW) is None
    with pytest.raises(RefusedError):
        decide.recorded(erased, ExternalEvent(step="pictures", result={"urls": []}), "grace", NOW)


@pytest.mark.proves("ANS-3")
@pytest.mark.parametrize("recorded", [{"urls": 5}, {}], ids=["of another model", "incomplete"])
def test_an_answer_is_read_although_the_recorded_one_cannot_be_read_any_more(order, recorded):
    """It is another one, and is refused for that (engine 29 b)."""
    done = orders.with_steps(order, steps.completed(order.step("pictures"), result=recorded))
    answer = read(done, "pictures", WORKFLOWS, SENT.model_dump(mode="json"), None)
    assert answer == yes(order)
    with pytest.raises(RefusedError):
        decide.recorded(done, answer, "grace", NOW)


def test_an_answer_to_a_step_that_the_order_does_not_have_is_refused(order):
    """Its workflow has it now: it was changed in place."""
    shorter = orders.having(order, steps=order.steps[:1])
    answer = read(shorter, "pictures", WORKFLOWS, SENT.model_dump(mode="json"), None)
    with pytest.raises(RefusedError):
        decide.recorded(shorter, answer, "grace", NOW)


@pytest.mark.proves("ANS-3")
@pytest.mark.parametrize("state", [steps.undo_pending, steps.undone, steps.undo_failed])
def test_the_answer_of_a_service_is_known_after_its_step_was_undone(order, state):
    """What came of the order since is no reason to refuse what it has recorded (engine 30)."""
    recorded = decide.recorded(order, yes(order), "grace", NOW).after
    by_link = steps.with_rules(recorded.step("pictures"), capability="office", undoable=True)
    by_link = steps.completed(by_link, result=by_link.result)
    undone = orders.undoing(orders.with_steps(recorded, state(by_link)))
    assert decide.recorded(undone, yes(order), "grace", NOW) is None
    other = ExternalEvent(step="pictures", result={"urls": []})
    with pytest.raises(RefusedError):
        decide.recorded(undone, other, "grace", NOW)


@pytest.mark.proves("SCH-12")
def test_what_is_withdrawn_has_no_deadline_any_more(order):
    """Its attempt is named, so that the pages end its bar."""
    change = cancel(order, GRACE, NOW)
    assert change.after.step("pictures").state == states.RequestCancelled()
    assert ExternalRequestCancelled(step="pictures", attempt=1) in change.entry.events


# What operators decide about an order that has such a step


def went_wrong(order, question):
    """The order after it has failed, with its question as it stands then."""
    failed = steps.failed(order.step("approval"))
    return orders.in_error(orders.with_steps(order, question, failed))


@pytest.mark.proves("OPR-3", "SCH-12")
def test_a_resubmit_requests_a_withdrawn_answer_anew_and_keeps_the_date_of_a_later_one(
    order,
):
    """One try is enough to have been asked; during an undo nothing is asked."""

    def resubmitted(failed):
        return resubmit(failed, GRACE, NOW).after.step("pictures")

    counted = steps.with_counts(order.step("pictures"), failures=2)
    cancelled = steps.withdrawn(steps.with_counts(counted, attempts=1))
    anew = resubmitted(went_wrong(order, cancelled))
    assert (anew.state, anew.counts) == (Waiting(), Counts(attempts=1))
    unasked = steps.scheduled(steps.with_counts(counted, attempts=0), at=NOW)
    assert resubmitted(went_wrong(order, unasked)) == unasked
    back = orders.in_error(orders.with_steps(order, cancelled), outcome=Outcome.UNDO_INCOMPLETE)
    assert resubmitted(back) == cancelled


@pytest.mark.proves("OPR-4", "SCH-12")
def test_an_order_that_awaited_only_an_answer_is_nobodys_once_it_is_cancelled(order):
    """Nobody outside has to answer first."""
    cancelled = cancel(order, GRACE, NOW).after
    derived = cancelled.derived
    assert (cancelled.state, derived.locked_by, derived.complete_by) == (Pending(), None, None)
