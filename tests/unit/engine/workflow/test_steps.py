"""Workflows written as functions: what they compile to, and every fault that they can have."""

import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import Field

from development.business import packages
from development.servicebus_config import ROOT
from engine.declarations.business import PASSING
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import (
    LONGEST_TIMEOUT,
    MOST_VERSION,
    DeclarationError,
    StepDefaults,
    StepDefinition,
)
from engine.domain.errors import InvalidError
from engine.domain.messages import OPERATION, STEP_NAME
from engine.domain.submitted_order import ERASED, Order
from engine.words.faults import text_of
from engine.workflow import (
    COOLDOWN,
    UNDO,
    Agent,
    Key,
    Model,
    Operation,
    OrderEndpoint,
    Owner,
    Personal,
    Workflow,
    application,
)
from engine.workflow.examples import example_of
from tests.support.builders import ORDER_ID, orders
from tests.support.by_hand import SAME
from tests.support.faults import without_lines


def order_of(payload):
    placed_at = datetime(2026, 1, 1, tzinfo=UTC)
    return orders.new(placed_at=placed_at, payload=payload).submitted


@pytest.mark.parametrize("name", SAME)
def test_a_flow_compiles_to_the_workflow_that_is_written_by_hand(name):
    """Field by field, and so to the same fingerprints: an order in flight notices nothing."""
    made_for, by_hand, *_ = SAME[name]
    compiled = made_for.workflows.find(by_hand.name, by_hand.version)
    compared = [
        field.name
        for field in fields(StepDefinition)
        if field.name not in ("title", "request", "read_answer")
    ]
    for written, step in zip(by_hand.steps, compiled.steps, strict=True):
        assert {attribute: getattr(step, attribute) for attribute in compared} == {
            attribute: getattr(written, attribute) for attribute in compared
        }
        assert step.fingerprint == written.fingerprint


@pytest.mark.parametrize("reference", ["r-1", None])
@pytest.mark.parametrize("name", SAME)
def test_a_flow_makes_the_requests_that_are_written_by_hand(name, reference):
    """Of what is recorded, with the answers of other steps and without, erased or not."""
    made_for, by_hand, payload, _ = SAME[name]
    compiled = made_for.workflows.find(by_hand.name, by_hand.version)
    results = {step.name: {"reference": reference} if reference else {} for step in by_hand.steps}
    for recorded in (payload, made_for.payload.erased(payload), payload | {"of": "a new version"}):
        for written, step in zip(by_hand.steps, compiled.steps, strict=True):
            request = step.request(order_of(recorded), results)
            assert request == written.request(order_of(recorded), results)


@pytest.mark.parametrize("name", SAME)
def test_a_model_erases_shows_and_finds_what_functions_by_hand_do(name):
    """Of a payload as it came, of an erased one, and of one with a field of a newer version."""
    made_for, _, came, by_hand = SAME[name]
    ours = made_for.payload
    for payload in (came, by_hand.erased(came), came | {"of": "a new version"}):
        assert ours.erased(payload) == by_hand.erased(payload)
        assert list(ours.personal(payload)) == by_hand.personal(payload)
        assert list(ours.keys(payload)) == by_hand.keys(payload)
        for email in ("ADA@example.com", "grace@example.com"):
            assert ours.belongs_to(payload, email) == by_hand.belongs_to(payload, email)


# The payload


class Pet(Model):
    """Nothing personal, but what the owner calls it."""

    called: Personal[str]
    legs: int


class Keeper(Model):
    """A person."""

    mail: Owner[Annotated[str, Field(min_length=8)]]
    born: Personal[date | None] = None
    friends: Personal[tuple[str, ...]] = ()
    aliases: tuple[Owner[str], ...] = ()


class Stay(Model):
    """A payload with models in models."""

    keeper: Keeper
    other: Keeper | None = None
    pets: tuple[Pet, ...]
    nights: int


class Reference(Model):
    """An answer."""

    reference: str = ""


class Wish(Model):
    """A request."""

    nights: int


class Numbered(Model):
    """An answer of which nobody can guess an example."""

    number: Annotated[str, Field(pattern="^R-[0-9]{3}$")]


class Hotel(Agent):
    """A service."""

    book_suite = Operation(Wish, Reference)
    number = Operation(Wish, Numbered)
    cancel = Operation(Wish)


class Staying(Model):
    """An answer whose marks nobody would find."""

    keepers: tuple[Keeper, ...] = ()
    suite: Key[str] = ""


class Front(Agent):
    """One that answers who stays."""

    ask = Operation(Wish, Staying)


class Kitchen(Agent):
    """Another one."""

    cook = Operation(Wish)


hotel, kitchen = Hotel("hotel"), Kitchen("kitchen")
GUESTS = {
    "keeper": {"mail": "ada@example.com", "born": "1815-12-10", "friends": ["Mary", "Charles"]},
    "other": None,
    "pets": [{"called": "Puff", "legs": 4}, {"called": "Polly", "legs": 2}],
    "nights": 3,
}


def stays(*more, payload=Stay, agents=(hotel, kitchen), name="stay", version=1, endpoint=None):
    """Return a flow of one step."""
    flow = Workflow(name, payload, version=version, endpoint=endpoint)

    @flow.step(hotel.book_suite, undo=hotel.cancel)
    def suite(stay: payload) -> Wish:
        """Book the suite."""
        return Wish(nights=stay.nights)

    return flow


PETS = application(stays(), agents=[hotel, kitchen]).payload


def test_what_is_marked_is_erased_and_nothing_else():
    """Shapes stay; what no model knows goes too, since it may be personal."""
    erased = PETS.erased(GUESTS | {"note": ["by Ada"], "codes": {"door": 1}})
    assert erased == {
        "keeper": {"mail": ERASED, "born": ERASED, "friends": [ERASED]},
        "other": None,
        "pets": [{"called": ERASED, "legs": 4}, {"called": ERASED, "legs": 2}],
        "nights": 3,
        "note": [ERASED],
        "codes": {"door": ERASED},
    }
    assert PETS.erased(erased) == erased


def test_every_marked_value_is_personal_and_the_owner_is_found_in_any_case():
    """Also in lists, and in parts of which there are several."""
    personal = ["ada@example.com", "1815-12-10", "Mary", "Charles", "Puff", "Polly"]
    assert list(PETS.personal(GUESTS)) == personal
    assert PETS.belongs_to(GUESTS, "ADA@example.com")
    assert not PETS.belongs_to(GUESTS, "Puff")
    other = GUESTS | {"other": {"mail": "grace@example.com"}}
    assert PETS.belongs_to(other, "grace@example.com")
    several = GUESTS | {"keeper": GUESTS["keeper"] | {"aliases": ["a@b.example", "c@d.example"]}}
    assert PETS.belongs_to(several, "C@D.example")
    assert PETS.erased(several)["keeper"]["aliases"] == [ERASED]


class Rows(Model):
    """A payload with lists of lists."""

    rows: tuple[tuple[Keeper, ...], ...]
    suites: tuple[tuple["Suite", ...], ...] = ()


def test_marks_hold_at_any_depth_of_lists():
    """Who is named there is found, and kept out of texts; a key is a key (engine 16)."""

    class Suites(Rows):
        """The same, once its parts are known."""

    payload = application(stays(payload=Suites), agents=[hotel, kitchen]).payload
    came = {"rows": [[{"mail": "ada@example.com"}], []], "suites": [[{"number": 7}], 3]}
    assert payload.belongs_to(came, "ada@example.com")
    assert list(payload.personal(came)) == ["ada@example.com"]
    assert payload.distinct_keys(came) == ["7"]
    assert payload.erased(came)["rows"] == [[{"mail": ERASED}], []]


@pytest.mark.parametrize(
    "recorded", [{}, {"keeper": "Ada"}, {"keeper": [{}]}, {"pets": {"called": 1}}, {"pets": 1}]
)
def test_a_payload_of_any_shape_can_be_erased(recorded):
    """It was recorded by another version; nothing that a model asks of is left in it."""
    PETS.personal(recorded)
    assert not PETS.belongs_to(recorded, "ada@example.com")
    assert "Ada" not in str(PETS.erased(recorded))


def test_a_submission_may_not_pass_for_an_erased_one():
    """Only in what is recorded `erased` stands for a value that the model would refuse."""
    with pytest.raises(InvalidError) as raised:
        PETS.check(PETS.erased(GUESTS))
    assert [str(fault).partition(":")[0] for fault in raised.value.faults] == [
        "keeper.mail",
        "keeper.born",
    ]
    PETS.check(GUESTS)


class Suite(Model):
    """Known by its number."""

    number: Key[int]
    view: str = ""


class Booking(Model):
    """A payload with keys at every depth, and beside what is personal."""

    code: Key[Annotated[str, Field(pattern="^B-[0-9]+$")]]
    agency: Key[str] | None = None
    vouchers: tuple[Key[str], ...] = ()
    suites: tuple[Suite, ...] = ()
    guest: Personal[str] = ""


BOOKED = {
    "code": "B-1",
    "agency": "Sun & Sea",
    "vouchers": ["V1", "V2", "V1"],
    "suites": [{"number": 7, "view": "sea"}, {"number": 8}],
    "guest": "Ada",
}
BOOKINGS = application(stays(payload=Booking), agents=[hotel, kitchen]).payload


def test_keys_are_found_wherever_the_business_marks_them():
    """In models, lists and unions, as text; each once, and nothing that is not marked."""
    assert BOOKINGS.distinct_keys(BOOKED) == ["B-1", "Sun & Sea", "V1", "V2", "7", "8"]
    assert BOOKINGS.distinct_keys({"code": "B-1", "agency": None}) == ["B-1"]
    assert PETS.distinct_keys(GUESTS) == []


def test_an_erasure_changes_no_key():
    """It is not personal, so operators find the order by it for as long as it is there."""
    erased = BOOKINGS.erased(BOOKED)
    assert erased["guest"] == ERASED
    assert BOOKINGS.distinct_keys(erased) == BOOKINGS.distinct_keys(BOOKED)


@pytest.mark.parametrize(
    "recorded",
    [{}, {"code": {"a": [1]}}, {"suites": 7}, {"suites": [[1], "x", {}]}, {"code": None}],
)
def test_keys_of_a_payload_of_any_shape_can_be_read(recorded):
    """It was recorded by another version."""
    assert all(isinstance(key, str) for key in BOOKINGS.distinct_keys(recorded))


# Declarations


def test_names_of_python_become_names_of_messages():
    """And settings follow from the names of the agents."""

    class LateCheckOut(Agent):
        """A service of two words."""

        ask_for_it = Operation(Wish)
        other = Operation(Wish, name="as-it-is")

    desk = LateCheckOut("front-desk")
    assert (desk.ask_for_it.name, desk.other.name) == ("ask-for-it", "as-it-is")
    declared = desk.declaration()
    assert (declared.offers, declared.address) == ("late-check-out", "FRONT_DESK_URL")


def test_a_class_that_inherits_operations_offers_them_by_itself():
    """A step of a tenant's service never goes to an agent of the common one."""

    class TenantKitchen(Kitchen):
        """The kitchen of another tenant."""

    class SharedKitchen(Kitchen, capability="kitchen"):
        """Another agent of the same service."""

    assert Kitchen("kitchen").cook.capability == "kitchen"
    assert TenantKitchen("tenant").cook.capability == "tenant-kitchen"
    assert TenantKitchen("tenant").declaration().offers == "tenant-kitchen"
    assert SharedKitchen("shared").cook.capability == "kitchen"


def test_operators_read_the_first_line_of_a_function():
    """An order keeps it; it is cut nowhere, so it may not be long."""
    flow = stays()
    (step,) = flow.workflow().initial_steps(StepDefaults())
    assert step.rules.title == "Book the suite"

    @flow.step(kitchen.cook)
    def supper(stay: Stay) -> Wish:
        return Wish(nights=stay.nights)

    supper.__doc__ = "x" * 81
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[hotel, kitchen])
    assert without_lines(raised.value.faults) == [
        in_supper(FaultCode.TITLE_TOO_LONG, length=81, limit=80)
    ]


def test_a_step_comes_after_what_it_uses_and_after_what_it_names():
    """But is not told twice that it comes after the steps before those."""
    flow = stays()

    @flow.step(kitchen.cook)
    def supper(stay: Stay) -> Wish:
        return Wish(nights=stay.nights)

    @flow.step(kitchen.cook, after=[supper])
    def break_fast(stay: Stay, suite: Reference, order: Order) -> Wish:
        return Wish(nights=len(suite.reference) + len(order.order_id))

    @flow.step(hotel.cancel, after=[break_fast])
    def leave(suite: Reference) -> Wish:
        return Wish(nights=len(suite.reference))

    (made,) = application(flow, agents=[hotel, kitchen]).workflows.all
    steps = {step.name: step for step in made.steps}
    assert steps["break-fast"].after == ("suite", "supper")
    assert (steps["leave"].after, steps["leave"].uses) == (("break-fast",), ("suite",))
    request = steps["break-fast"].request(order_of(GUESTS), {"suite": {"reference": "r-1"}})
    assert request == {"nights": 3 + len(ORDER_ID)}


def test_an_answer_that_its_model_does_not_allow_is_named_without_its_value():
    """The step that uses it fails with this reason."""
    flow = stays()

    @flow.step(kitchen.cook)
    def supper(suite: Reference) -> Wish:
        return Wish(nights=len(suite.reference))

    with pytest.raises(InvalidError, match=r"^reference: Input should be a valid string$"):
        flow.workflow().steps[1].request(order_of(GUESTS), {"suite": {"reference": 7}})


def test_a_workflow_is_drawn():
    """A box for each step and an arrow for each order in time."""
    (drawn,) = (flow.mermaid() for flow in [stays()])
    assert drawn.splitlines() == [
        "flowchart LR",
        '  suite["<b>suite</b><br/>hotel: book-suite<br/>undo: cancel"]',
    ]


# Faults


def anything(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


def unknown_parameter(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay, rom: Reference) -> Wish:
        return Wish(nights=stay.nights)


def of_a_step_below(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay, supper: Reference) -> Wish:
        return Wish(nights=stay.nights)


def another_answer(flow):
    @flow.step(kitchen.cook)
    def supper(suite: Wish) -> Wish:
        return suite


def no_answer(flow):
    flow.step(kitchen.cook)(anything)

    @flow.step(kitchen.cook)
    def supper(anything: Reference) -> Wish:
        return Wish(nights=1)


def no_type(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay, suite) -> Wish:
        return Wish(nights=1)


def unknown_type(flow):
    @flow.step(kitchen.cook)
    def supper(stay: "Stey") -> Wish:  # noqa: F821
        return Wish(nights=1)


def another_request(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay) -> Reference:
        return Reference()


def returns_nothing_declared(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay):
        return Wish(nights=1)


def any_parameters(flow):
    @flow.step(kitchen.cook)
    def supper(*stay: Stay, **more: Any) -> Wish:
        return Wish(nights=1)


def by_place_only(flow):
    @flow.step(kitchen.cook)
    def supper(stay: Stay, /) -> Wish:
        return Wish(nights=1)


def asynchronous(flow):
    @flow.step(kitchen.cook)
    async def supper(stay: Stay) -> Wish:
        return Wish(nights=1)


def undone_elsewhere(flow):
    flow.step(kitchen.cook, undo=hotel.cancel)(anything)


def of_no_agent(flow):
    flow.step(Operation(Wish, name="cook"))(anything)


def after_a_stranger(flow):
    flow.step(kitchen.cook, after=[no_type])(anything)


def twice(flow):
    flow.step(kitchen.cook)(anything)
    flow.step(kitchen.cook)(anything)


def too_long(flow):
    flow.step(kitchen.cook, timeout=timedelta(hours=1))(anything)


def no_tries(flow):
    flow.step(kitchen.cook, threshold=0)(anything)


def undo_needs_what_is_not_kept(flow):
    flow.step(hotel.book_suite, undo=hotel.cancel, undo_needs=["bill"])(anything)


def a_name_that_no_key_can_bear(flow):
    @flow.step(kitchen.cook)
    def ünder_way(stay: Stay) -> Wish:  # noqa: PLC2401
        return Wish(nights=1)


def no_example(flow):
    @flow.step(hotel.number)
    def anything(stay: Stay) -> Wish:
        return Wish(nights=1)


def a_timeout_without_unit(flow):
    flow.step(kitchen.cook, timeout=30)(anything)


def a_policy_as_text(flow):
    flow.step(kitchen.cook, on_failure="undo")(anything)


def an_unknown_option(flow):
    flow.step(kitchen.cook, onfailure=UNDO)(anything)


def after_a_name(flow):
    flow.step(kitchen.cook, after=["suit"])(anything)


def after_one(flow):
    flow.step(kitchen.cook, after="suite")(anything)


def waits_for_a_number(flow):
    flow.wait_for(Reference, within=30)(anything)


def waits_with_an_unknown_option(flow):
    flow.wait_for(Reference, within=timedelta(days=1), attemps=2)(anything)


class Exam(Model):
    """A request with a field that an undo has for itself."""

    result: str = ""


class Exams(Agent):
    """A service that asks for it."""

    note = Operation(Exam)
    unnote = Operation(Exam)


def a_request_with_a_result(flow):
    @flow.step(Exams("exams").note, undo=Exams("exams").unnote)
    def anything(stay: Stay) -> Exam:
        return Exam()


def an_undo_after_a_pivot(flow):
    @flow.step(kitchen.cook, pivot=True)
    def supper(stay: Stay) -> Wish:
        return Wish(nights=1)

    flow.step(hotel.book_suite, undo=hotel.cancel, after=[supper])(anything)


def an_undo_of_a_pivot(flow):
    flow.step(hotel.book_suite, undo=hotel.cancel, pivot=True)(anything)


def personal_data_inside_an_answer(flow):
    flow.step(Front("front").ask)(anything)


def a_key_in_an_answer(flow):
    flow.step(Front("front").ask)(anything)


def too_many(flow):
    for number in range(20):

        def more(stay: Stay) -> Wish:
            return Wish(nights=1)

        more.__name__ = f"more_{number}"
        flow.step(kitchen.cook)(more)


def no_example_of(model):
    with pytest.raises(InvalidError) as raised:
        example_of(model)
    (message,) = raised.value.faults
    return message


def in_flow(code, place, **facts):
    return Fault(code, f"stay version 1: {place}", **facts).within("test_steps.py:N")


def in_supper(code, place="", **facts):
    return Fault(code, place, **facts).within("test_steps.py:N: stay version 1: step supper")


def in_anything(code, place="", **facts):
    return Fault(code, place, **facts).within("test_steps.py:N: stay version 1: step anything")


IN_A_STEP = {
    unknown_parameter: in_supper(FaultCode.PARAMETER_UNKNOWN, "parameter rom", payload="Stay"),
    of_a_step_below: in_supper(FaultCode.PARAMETER_UNKNOWN, "parameter supper", payload="Stay"),
    another_answer: in_supper(
        FaultCode.PARAMETER_TYPE,
        "parameter suite",
        step="suite",
        expected="Reference",
        declared="Wish",
    ),
    no_answer: in_supper(FaultCode.PARAMETER_OF_NOTHING, "parameter anything", step="anything"),
    no_type: in_supper(
        FaultCode.PARAMETER_TYPE,
        "parameter suite",
        step="suite",
        expected="Reference",
        declared=None,
    ),
    unknown_type: in_supper(FaultCode.TYPES_UNREADABLE, message="name 'Stey' is not defined"),
    another_request: in_supper(FaultCode.OPERATION_REQUEST, expected="Wish", returned="Reference"),
    returns_nothing_declared: in_supper(
        FaultCode.OPERATION_REQUEST, expected="Wish", returned=None
    ),
    any_parameters: in_supper(FaultCode.PARAMETER_WITHOUT_NAME, "parameter stay"),
    by_place_only: in_supper(FaultCode.PARAMETER_WITHOUT_NAME, "parameter stay"),
    asynchronous: in_supper(FaultCode.NOT_PLAIN_FUNCTION),
    undone_elsewhere: in_anything(FaultCode.UNDO_BY_OTHER_SERVICE, "undo", capability="hotel"),
    of_no_agent: in_anything(FaultCode.OPERATION_WITHOUT_CLASS),
    after_a_stranger: in_anything(FaultCode.NOT_ABOVE, step="no_type"),
    twice: Fault(FaultCode.DUPLICATE_STEP, "stay version 1", step="anything"),
    too_long: in_anything(
        FaultCode.TOO_HIGH, field="timeout", value=timedelta(hours=1), limit=LONGEST_TIMEOUT
    ),
    no_tries: in_anything(FaultCode.NOT_POSITIVE, field="threshold", value=0),
    undo_needs_what_is_not_kept: in_anything(FaultCode.UNDO_NEEDS_NOT_KEPT, fields=("bill",)),
    a_name_that_no_key_can_bear: in_flow(
        FaultCode.PATTERN_MISMATCH,
        "step ünder-way",
        field="name",
        value="ünder-way",
        pattern=STEP_NAME,
    ),
    no_example: in_anything(
        FaultCode.EXAMPLE_MISSING,
        operation="number",
        model="Numbered",
        message=str(no_example_of(Numbered)),
    ),
    # newcomer A
    a_timeout_without_unit: in_anything(
        FaultCode.OPTION_TYPE, option="timeout", expected="timedelta", given="int"
    ),
    a_policy_as_text: in_anything(
        FaultCode.OPTION_TYPE, option="on_failure", expected="OnFailure", given="str"
    ),
    an_unknown_option: in_anything(FaultCode.OPTION_UNKNOWN, option="onfailure"),
    after_a_name: in_anything(FaultCode.AFTER_NOT_A_FUNCTION, step="suit"),
    after_one: in_anything(FaultCode.OPTION_TYPE, option="after", expected="list", given="str"),
    waits_for_a_number: in_anything(
        FaultCode.OPTION_TYPE, option="within", expected="timedelta", given="int"
    ),
    waits_with_an_unknown_option: in_anything(FaultCode.OPTION_UNKNOWN, option="attemps"),
    an_undo_after_a_pivot: in_anything(FaultCode.UNDO_NEVER_REACHED, step="supper"),
    an_undo_of_a_pivot: in_anything(FaultCode.UNDO_NEVER_REACHED, step="anything"),
    # bugs2 62
    a_request_with_a_result: in_anything(
        FaultCode.REQUEST_FIELD_RESERVED, "undo", model="Exam", field="result"
    ),
    # engine 16
    personal_data_inside_an_answer: in_anything(
        FaultCode.PERSONAL_INSIDE_FIELD, "answer: field keepers"
    ),
    a_key_in_an_answer: in_anything(FaultCode.KEY_IN_ANSWER, "answer: field suite"),
    too_many: Fault(FaultCode.TOO_MANY_STEPS, "stay version 1", steps=21, limit=20),
}


@pytest.mark.parametrize("plant", IN_A_STEP)
def test_a_fault_of_a_step_is_named_with_its_place_when_the_app_starts(plant):
    """And not when the first order reaches the step."""
    flow = stays()
    plant(flow)
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[hotel, kitchen])
    assert without_lines(raised.value.faults).count(IN_A_STEP[plant]) == 1


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("keys_last", 30, "timedelta"),
        ("answer_within", "1h", "timedelta"),
        ("calls_in_flight", True, "int"),
        ("refusals", 402, "list"),
        ("reads", "BANK_KEY", "list"),
        ("headers", {"X-Zone": 1}, "str"),
        ("auth", "a key", "ApiKey or EntraToken or ClientCredentials or ClientCertificate"),
    ],
)
def test_a_value_of_an_agent_that_has_another_type_is_one_fault(option, value, expected):
    """Newcomer A: `timeout=30` was a TypeError of Python's, without a place."""
    with pytest.raises(DeclarationError) as raised:
        application(stays(), agents=[Hotel("hotel", **{option: value})])
    given = type(value["X-Zone"] if option == "headers" else value).__name__
    facts = {"option": option, "expected": expected, "given": given}
    assert raised.value.faults == [Fault(FaultCode.OPTION_TYPE, "agent hotel", **facts)]


def test_a_capability_or_step_that_is_nearly_right_is_named_beside_its_fault():
    """Newcomer A: did you mean ...?"""
    for made, nearest in (
        (lambda: application(stays(), agents=[type("Hotels", (Hotel,), {})("inn")]), "hotels"),
        (
            lambda: application(stays(endpoint=OrderEndpoint(cancel_until="suit")), agents=[hotel]),
            "suite",
        ),
    ):
        with pytest.raises(DeclarationError) as raised:
            made()
        assert [fault.nearest for fault in raised.value.faults] == [nearest]


MEANT = {
    unknown_parameter: None,
    an_unknown_option: "on_failure",
    after_a_name: "suite",
    waits_with_an_unknown_option: "attempts",
}


@pytest.mark.parametrize("plant", MEANT)
def test_a_name_that_is_nearly_right_is_named_beside_its_fault(plant):
    """Did you mean ...? One fault for one mistake (newcomer A)."""
    flow = stays()
    plant(flow)
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[hotel, kitchen])
    (fault,) = raised.value.faults
    assert fault.nearest == MEANT[plant]
    assert (fault.nearest is not None) == (f" {fault.nearest}?" in text_of(fault))


@pytest.mark.parametrize("plant", [a_timeout_without_unit, after_one, waits_for_a_number])
def test_one_mistake_is_one_fault_however_many_versions_share_the_step(plant):
    """The first version names it, for all (newcomer A)."""
    flows = [stays(version=version) for version in (1, 2)]
    for flow in flows:
        plant(flow)
    with pytest.raises(DeclarationError) as raised:
        application(*flows, agents=[hotel, kitchen])
    assert without_lines(raised.value.faults) == [IN_A_STEP[plant]]


def test_a_policy_that_undoes_nothing_is_a_fault():
    """Where no step of the workflow has an undo (newcomer A)."""
    flow = Workflow("stay", Stay)
    flow.step(kitchen.cook, on_failure=UNDO)(anything)
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[kitchen])
    assert without_lines(raised.value.faults) == [in_anything(FaultCode.NOTHING_TO_UNDO)]


@pytest.mark.parametrize("given", [{"within": 30}, {"witihn": timedelta(days=1)}], ids=str)
def test_a_deadline_that_cannot_be_used_is_a_fault_of_its_workflow(given):
    """Not an error of Python's from the depths of the engine (newcomer A)."""
    flow = Workflow("stay", Stay, **given)
    flow.step(kitchen.cook)(anything)
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[kitchen])
    (fault,) = raised.value.faults
    assert fault.code in (FaultCode.OPTION_TYPE, FaultCode.OPTION_UNKNOWN)
    assert fault.place == "stay version 1"


class Clashing(Stay):
    """With a field of the submission itself."""

    order_id: str


class Mapped(Stay):
    """With models where no mark would be found."""

    by_name: dict[str, Pet]


class Whole(Stay):
    """With a mark on a model."""

    first: Personal[Pet]


class Rounded(Stay):
    """With an amount of money that a float would round."""

    room_price: float | None


class Both(Stay):
    """With a mark too many."""

    passport: Key[Personal[str]]


class WholeKey(Stay):
    """With a key that is a model."""

    first: Key[Pet]


class Sparse(Agent):
    """A service whose operation has a name that no request can bear."""

    tidy_up = Operation(Wish, name="Tidy up")


def tidied():
    flow = stays()
    flow.step(Sparse("sparse").tidy_up)(anything)
    return flow


IN_A_BUSINESS = {
    "no workflow": (lambda: application(agents=[hotel]), Fault(FaultCode.NO_WORKFLOW)),
    "no agent of the capability": (
        lambda: application(stays(), agents=[kitchen]),
        in_flow(FaultCode.CAPABILITY_NOT_OFFERED, "step suite", capability="hotel"),
    ),
    "an agent twice": (
        lambda: application(stays(), agents=[hotel, hotel]),
        Fault(FaultCode.DUPLICATE_AGENT, "agent hotel"),
    ),
    "a status that is not a refusal": (
        lambda: application(stays(), agents=[hotel, Hotel("inn", refusals=(500,))]),
        Fault(FaultCode.NOT_A_REFUSAL, "agent inn", status=500, excluded=PASSING),
    ),
    "a status that is a text": (
        lambda: application(stays(), agents=[Hotel("hotel", refusals=("402",))]),
        Fault(FaultCode.OPTION_TYPE, "agent hotel", option="refusals", expected="int", given="str"),
    ),
    "a version twice": (
        lambda: application(stays(), stays(), agents=[hotel]),
        Fault(FaultCode.DUPLICATE_WORKFLOW, "stay version 1"),
    ),
    "two payloads": (
        lambda: application(stays(), stays(payload=Whole, version=2), agents=[hotel]),
        Fault(FaultCode.PAYLOAD_DIFFERS, "stay version 2", payload="Whole", expected="Stay"),
    ),
    "a field of submissions": (
        lambda: application(stays(payload=Clashing), agents=[hotel]),
        Fault(FaultCode.FIELD_RESERVED, "payload Clashing: field order_id", field="orderId"),
    ),
    "a mapping": (
        lambda: application(stays(payload=Mapped), agents=[hotel]),
        Fault(FaultCode.MODEL_IN_MAPPING, "payload Mapped: field by_name", model="Pet"),
    ),
    "a personal model": (
        lambda: application(stays(payload=Whole), agents=[hotel]),
        Fault(FaultCode.MARK_ON_MODEL, "payload Whole: field first", model="Pet"),
    ),
    "a float for money": (
        lambda: application(stays(payload=Rounded), agents=[hotel]),
        Fault(FaultCode.FLOAT_FOR_MONEY, "payload Rounded: field room_price"),
    ),
    "a personal key": (
        lambda: application(stays(payload=Both), agents=[hotel]),
        Fault(FaultCode.PERSONAL_KEY, "payload Both: field passport"),
    ),
    "a model as a key": (
        lambda: application(stays(payload=WholeKey), agents=[hotel]),
        Fault(FaultCode.MARK_ON_MODEL, "payload WholeKey: field first", model="Pet"),
    ),
    "a name with a space": (
        lambda: application(stays(name="A stay"), agents=[hotel]),
        Fault(
            FaultCode.PATTERN_MISMATCH,
            "A stay version 1",
            field="name",
            value="A stay",
            pattern=STEP_NAME,
        ),
    ),
    "version 0": (
        lambda: application(stays(version=0), agents=[hotel]),
        Fault(
            FaultCode.OUT_OF_RANGE,
            "stay version 0",
            field="version",
            value=0,
            least=1,
            most=MOST_VERSION,
        ),
    ),
    "an operation with a space": (
        lambda: application(tidied(), agents=[hotel, Sparse("sparse")]),
        in_anything(
            FaultCode.PATTERN_MISMATCH,
            field="operation",
            value="Tidy up",
            pattern=OPERATION.pattern,
        ),
    ),
    "a sample of another model": (
        lambda: application(stays(), agents=[hotel], sample=Reference(reference="r")),
        Fault(FaultCode.SAMPLE_INVALID, "sample", message="nights: Field required"),
    ),
}


@pytest.mark.parametrize("label", IN_A_BUSINESS)
def test_a_fault_of_a_business_is_named_when_the_app_starts(label):
    """Whatever of it is wrong, by code, place and facts."""
    declare, fault = IN_A_BUSINESS[label]
    with pytest.raises(DeclarationError) as raised:
        declare()
    assert fault in without_lines(raised.value.faults)


@pytest.mark.proves("AGT-12")
def test_a_cooldown_that_outlasts_the_keys_of_its_service_is_named_with_its_place():
    """By the step that rests, since that is where it is mended."""
    flow = stays()
    flow.step(kitchen.cook, on_failure=COOLDOWN, cooldown=timedelta(days=2))(anything)
    forgets = Kitchen("kitchen", keys_last=timedelta(days=1))
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[hotel, forgets])
    days = {"time": timedelta(days=2), "keys_last": timedelta(days=1)}
    expected = in_anything(FaultCode.COOLDOWN_OUTLASTS_KEY, agent="kitchen", **days)
    assert without_lines(raised.value.faults) == [expected]


def test_all_faults_are_named_at_once():
    """Those of the functions, of the agents and of the definitions."""
    flow = stays()
    for plant in (unknown_parameter, too_long, after_a_stranger):
        plant(flow)
    with pytest.raises(DeclarationError) as raised:
        application(flow, agents=[hotel, Kitchen("kitchen", refusals=(500,))])
    assert len(raised.value.faults) >= 5


# What a type checker finds

TYPED = """
from engine.workflow import UNDO, Agent, Workflow, Model, Operation


class Stay(Model):
    nights: int


class Wish(Model):
    nights: int


class Room(Model):
    number: str | None = None


class Hotel(Agent):
    book = Operation(Wish, Room)
    cancel = Operation(Wish)
    clean = Operation(Room)


hotel = Hotel("hotel")
stays = Workflow("stay", Stay)


@stays.step(hotel.book, undo=hotel.cancel, on_failure=UNDO)
def book(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.step(hotel.clean, after=[book])
def clean(book: Room) -> Room:
    return Room(number=book.number)


@stays.step(hotel.book)  # wrong
def another_request(stay: Stay) -> Room:
    return Room()


@stays.step(hotel.book, undo=hotel.clean)  # wrong
def an_undo_that_asks_something_else(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.step(hotel.book)
def a_field_that_no_payload_has(stay: Stay) -> Wish:
    return Wish(nights=stay.days)  # wrong


@stays.step(hotel.clean)
def a_field_that_no_answer_has(book: Room) -> Room:
    return Room(number=book.numbre)  # wrong


@stays.step(hotel.clean)
def a_field_that_no_request_has(book: Room) -> Room:
    return Room(numbre=book.number)  # wrong


@stays.step(hotel.book)
def an_answer_that_may_be_missing(book: Room) -> Wish:
    return Wish(nights=len(book.number))  # wrong


@stays.step(hotel.book, treshold=1)  # wrong
def a_rule_that_no_step_has(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.step(hotel.bok)  # wrong
def an_operation_that_no_agent_has(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.step(hotel.book, after=["book"])  # wrong
def after_a_name(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)
"""


@pytest.mark.soak
def test_a_type_checker_finds_what_the_start_cannot(tmp_path):
    """In each of the wrong lines, and nowhere else: what is right needs no word for it."""
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [*command, str(tmp_path / "typed.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {int(line) for line in re.findall(r"typed\.py:(\d+): error", ran.stdout)}
    lines = enumerate(TYPED.splitlines(), 1)
    assert found == {number for number, line in lines if line.endswith("# wrong")}, ran.stdout


def test_no_business_asks_a_type_checker_to_look_away():
    """Neither in a line nor in the configuration, which is strict for each of them."""
    for package in packages(ROOT):
        for file in (ROOT / package.replace(".", "/")).rglob("*.py"):
            assert "type: ignore" not in file.read_text(), file
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    relaxed = [override["module"] for override in settings.get("overrides", [])]
    assert [name for name in relaxed if not name.startswith("testkit.")] == []
