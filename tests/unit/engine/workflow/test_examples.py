"""The answers of simulated services, which follow from the models of a business."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import Field, PlainValidator

from engine.declarations.business import REFERENCE
from engine.domain.errors import InvalidError
from engine.workflow import Agent, Model, Operation, Personal, Text, Workflow, application
from engine.workflow.examples import example_of
from testkit import WorkflowTestEnvironment


class Size(StrEnum):
    """Of a car."""

    SMALL = "small"
    VAN = "van"


class Key(Model):
    """A part of an answer."""

    code: str


class Everything(Model):
    """An answer with a field of each kind."""

    plate: str
    owner: Personal[Text]
    size: Size
    fuel: Literal["petrol", "diesel"]
    seats: Annotated[int, Field(ge=2, le=9)]
    endpoints: Annotated[int, Field(lt=1)]
    price: Decimal
    share: float
    clean: bool
    ready: datetime
    built: date
    keys: Annotated[tuple[Key, ...], Field(min_length=2)]
    spare: Key | None
    place: tuple[int, str]
    number: Annotated[str, Field(pattern="^[A-Z]+-[0-9]+$", examples=["B-42"])]
    pin: Annotated[str, Field(min_length=4, max_length=4)]
    note: str = "none"
    note_of: dict[str, str]


def test_an_answer_has_every_field_that_has_no_default():
    """As JSON that the model allows: of a text about which nothing is said, each call has its own."""
    example = example_of(Everything)
    assert example["plate"] == REFERENCE
    assert (example["size"], example["fuel"], example["clean"]) == ("small", "petrol", True)
    assert (example["seats"], example["number"], example["pin"]) == (2, "B-42", "aaaa")
    assert example["keys"] == [{"code": REFERENCE}, {"code": REFERENCE}]
    assert example["place"] == [1, REFERENCE]
    assert "note" not in example


class Unheard(Model):
    """With a type that no JSON schema tells."""

    anything: Annotated[object, PlainValidator(int)]


@pytest.mark.parametrize("extra", [{}, {"examples": [7]}])
def test_what_has_no_example_can_be_given_one(extra):
    """The author's own comes first, and has to be valid too."""

    class Bounded(Model):
        number: Annotated[str, Field(pattern="^[A-Z]+-[0-9]+$", json_schema_extra=dict(extra))]

    with pytest.raises(InvalidError, match="number: "):
        example_of(Bounded)
    with pytest.raises(InvalidError):
        example_of(Unheard)


class Wish(Model):
    """A request, and the payload."""

    size: Size


class Fleet(Agent):
    """A service."""

    reserve = Operation(Wish, Everything)


class Found(Model):
    """What is asked of a car that was reserved."""

    plate: str
    seats: int
    number: str


class Garage(Agent):
    """Another one."""

    wash = Operation(Found)


fleet, garage = Fleet("fleet"), Garage("garage")
rentals = Workflow("rental", Wish)


@rentals.step(fleet.reserve)
def car(rental: Wish) -> Wish:
    """Reserve a car."""
    return rental


@rentals.step(garage.wash)
def wash(car: Everything) -> Found:
    """Wash it."""
    return Found(plate=car.plate, seats=car.seats, number=car.number)


RENTAL = application(rentals, agents=[fleet, garage], sample=Wish(size=Size.VAN))


def test_a_business_with_rich_answers_runs_on_simulated_services():
    """In a test environment, whose services follow the rules of the simulated ones, and in an exploration."""
    environment = WorkflowTestEnvironment(RENTAL)
    order = environment.submit(Wish(size=Size.SMALL))
    assert (order.state, order.reason) == ("Processed", None)
    assert environment.explore(faults=0).ends.keys() == {"Processed"}
