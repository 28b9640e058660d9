"""What submission makes of a message that comes again."""

from dataclasses import replace

import pytest
from builders import NOW, REST, new_order, seconds
from memory_world import MESSAGE, World

import workflows
from core.messages import Submission
from core.orders import Policy, Priority
from submission.rules import new_order as order_of
from submission.rules import refusal_of, same_submission


def with_order(**changes):
    order = new_order()
    return replace(order, order=replace(order.order, **changes))


@pytest.mark.proves("SUB-3")
def test_a_message_that_comes_again_after_its_customer_was_erased_says_nothing_new():
    """It is no other order, which would be refused, and kept with the very data that was erased."""
    new = new_order()
    erased = replace(new, order=new.order.without_customer())
    assert same_submission(erased, new)
    assert not same_submission(erased, with_order(items=()))
    assert not same_submission(new, with_order(customer_name="Grace"))


@pytest.mark.proves("SUB-3")
@pytest.mark.parametrize(
    "other",
    [{"workflow": "order"}, {"priority": Priority.HIGH}, {"reply_to": "status-a"}],
    ids=lambda other: next(iter(other)),
)
def test_a_message_that_asks_for_something_else_is_another_submission(other):
    """Whoever sent it would believe that it is done so."""
    assert not same_submission(new_order(), new_order().with_state(**other))


@pytest.mark.proves("SUB-3", "SUB-4", "ALR-1")
def test_each_message_that_would_have_overwritten_an_order_is_told_of():
    """Once, however often it comes."""
    notes = [refusal_of(new_order(), body, NOW, NOW, "submission/i") for body in (b"one", b"other", b"one")]
    for ids in ([note.note_id for note in notes], [note.events[0].event_id for note in notes]):
        assert len(set(ids)) == 2
        assert ids[0] == ids[2]


@pytest.mark.proves("SUP-3")
def test_a_step_rests_as_long_as_the_terms_say_unless_its_workflow_does():
    """So it is recorded with the order."""
    message, workflow = Submission.model_validate_json(MESSAGE % ""), workflows.ALL.latest("payment-only")
    own = seconds(7)
    resting = [replace(workflow.steps[0], policy=Policy.REST, rest=rest, settling=own) for rest in (None, own)]
    steps = order_of(message, replace(workflow, steps=tuple(resting)), World().terms, NOW, "t").after.steps
    assert [step.rest for step in steps] == [REST, own]
    assert {step.settling for step in steps} == {own}
