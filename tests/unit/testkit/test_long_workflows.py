"""A workflow of as many steps as one can have, each after all those above it."""

import time
from contextlib import contextmanager
from dataclasses import replace
from inspect import Parameter, Signature

import pytest

from engine.declarations.workflow import MAX_STEPS
from engine.workflow import Agent, Model, Operation, Workflow, application
from testkit.exploration import turns


class Parcel(Model):
    """A payload and a request."""

    weight: int = 1


class Receipt(Model):
    """An answer."""

    number: int = 1


class Carrier(Agent):
    """A service."""

    carry = Operation(Parcel, Receipt)


CARRIER = Carrier("carrier")
NAMES = [f"step_{number:02}" for number in range(MAX_STEPS)]
STEPS = [name.replace("_", "-") for name in NAMES]


def function(name, answers):
    """Return a step's function that takes the answers of these steps."""

    def make(parcel, **_):
        return parcel

    kinds = {"parcel": Parcel, **dict.fromkeys(answers, Receipt)}
    parameters = [
        Parameter(argument, Parameter.KEYWORD_ONLY, annotation=kinds[argument])
        for argument in kinds
    ]
    make.__name__, make.__signature__ = name, Signature(parameters, return_annotation=Parcel)
    return make


def taking_answers():
    """Return a flow, each step of which takes the answers of all steps above it."""
    flow = Workflow("long", Parcel)
    for number, name in enumerate(NAMES):
        flow.step(CARRIER.carry)(function(name, NAMES[:number]))
    return flow


def naming_steps():
    """Return a flow, each step of which names all steps above it."""
    flow, made = Workflow("long", Parcel), []
    for name in NAMES:
        made.append(flow.step(CARRIER.carry, after=list(made))(function(name, ())))
    return flow


@contextmanager
def within_a_second():
    """Fail if the block takes more than a second of this process's CPU."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 1


@pytest.mark.parametrize("written", [taking_answers, naming_steps])
def test_a_long_workflow_starts_within_a_second(written):
    """(bugs 21) It is compiled and checked at each start of each process."""
    with within_a_second():
        (made,) = application(written(), agents=[CARRIER]).workflows.all
    assert [step.after for step in made.steps] == [(), *((name,) for name in STEPS[:-1])]


@pytest.mark.parametrize("written", [taking_answers, naming_steps])
def test_a_long_workflow_is_drawn_within_a_second(written):
    """(bugs 21) By `python -m engine.workflow draw`."""
    with within_a_second():
        drawn = written().mermaid()
    assert drawn.count("-->") == MAX_STEPS - 1


def of_the_engine():
    """Return a workflow each step of which comes after all above it, also where others imply it."""
    (made,) = application(taking_answers(), agents=[CARRIER]).workflows.all
    steps = (replace(step, after=tuple(STEPS[:number])) for number, step in enumerate(made.steps))
    return replace(made, steps=tuple(steps))


def test_an_exploration_walks_a_long_workflow_within_a_second():
    """(bugs 21) It asks this at each state of an order."""
    workflow = of_the_engine()
    with within_a_second():
        assert turns.before(workflow, STEPS[-1]) == set(STEPS[:-1])
        assert turns.dependents(workflow, STEPS[0]) == set(STEPS[1:])
    assert turns.before(workflow, STEPS[0]) == turns.dependents(workflow, STEPS[-1]) == set()
