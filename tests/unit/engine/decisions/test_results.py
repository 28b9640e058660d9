"""Results of steps that did not come by an agent's reply."""

from dataclasses import replace

import pytest

from engine.decisions.results import definition_of, kept
from engine.declarations.workflow import Workflows
from engine.domain.causes import Code
from engine.domain.errors import InputFault, InvalidError
from engine.domain.submitted_order import MAX_KEPT
from testkit import WorkflowTestEnvironment
from tests.support.acting import is_refused
from tests.support.asking import ADA, ASKING

WORKFLOWS = ASKING.workflows


@pytest.fixture
def order():
    """An order that awaits the pictures."""
    environment = WorkflowTestEnvironment(ASKING)
    placed = environment.submit(ADA)
    return environment._world.run(environment._world.engine.store.load(placed.id))


def test_a_workflow_that_is_gone_or_lacks_the_step_is_named(order):
    """The one has a newer version, the other was changed in place."""
    retired = Workflows(replace(WORKFLOWS.find("asking", 1), version=2))
    for known, step in ((retired, "pictures"), (WORKFLOWS, "films")):
        with is_refused(Code.STEP_NOT_IN_APP, workflow="asking", version=1, step=step):
            definition_of(order, step, known)


def test_an_answer_of_a_step_without_a_model_is_kept_as_it_is(order):
    """Its fields are those that the step declares."""
    definition = replace(WORKFLOWS.find("asking", 1).definition("pictures"), read_answer=None)
    content = {"urls": ["https://pictures.example/1"], "other": 1}
    assert kept(definition, content) == {"urls": content["urls"]}


@pytest.mark.parametrize("more", [0, 1])
def test_an_answer_may_be_as_long_as_what_a_row_keeps(order, more):
    """In characters of its JSON."""
    definition = replace(WORKFLOWS.find("asking", 1).definition("pictures"), read_answer=None)
    content = {"urls": "x" * (MAX_KEPT - len('{"urls":""}') + more)}
    if not more:
        assert kept(definition, content) == content
        return
    with pytest.raises(InvalidError) as refused:
        kept(definition, content)
    facts = {"length": MAX_KEPT + 1, "limit": MAX_KEPT}
    assert refused.value.faults == [InputFault("answer", "answer-too-long", facts)]
