"""Which fault meets a call, and what becomes of the call."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.declarations.business import REFERENCE
from engine.domain.errors import InvalidError
from engine.domain.messages import decode
from samples.claims.business import CLAIMS
from samples.simulator.rules import (
    FaultInForce,
    Plan,
    SimulatedCall,
    SimulatedFault,
    action_of,
    call_of,
    check,
    content_of,
    fault_for,
    in_force,
    plan,
    result_of,
    simulated,
)
from shop.business import SHOP
from tests.support.builders import NOW, seconds

PAYMENT = simulated(SHOP)["payment"]

CALL = SimulatedCall.model_validate(
    {"orderId": "o1", "step": "payment", "order": {"items": [{"sku": "TEA"}, {"sku": "CUP"}]}}
)


def fault(mode="down", **more) -> SimulatedFault:
    return SimulatedFault.model_validate({"mode": mode} | more)


def entry(until=None, **more) -> FaultInForce:
    return FaultInForce(**dict(fault(**more)), until=until)


def met_by(faults, call=CALL):
    return fault_for(PAYMENT, faults, "authorise", call)


FOR_ALL = entry()
FOR_TEA = entry(mode="hang", match={"sku": "TEA"})
FOR_ORDER = entry(mode="late", match={"orderId": "o1"})
FOR_ORDER_WITH_TEA = entry(mode="slow", match={"orderId": "o1", "sku": "TEA"})


UNAUTHORIZED = Plan(effect=False, status=401, reason="the token is not accepted")
TOO_LATE = Plan(
    effect_is_late=True, status=504, reason="the answer came too late", delay_seconds=10
)
TOO_MANY = Plan(effect=False, status=429, reason="too many calls", retry_after=seconds(5))


@pytest.mark.parametrize(
    ("mode", "how", "expected"),
    [
        ("none", {}, Plan()),
        ("down", {"chance": 0.9}, Plan(effect=False, status=503, reason="the service is down")),
        ("slow", {}, Plan(delay_seconds=1)),
        ("hang", {}, Plan(effect=False, status=504, reason="no answer", delay_seconds=10)),
        ("late", {}, TOO_LATE),
        ("flaky", {"chance": 0.19}, Plan(effect=False, status=503, reason="the service stumbled")),
        ("flaky", {"chance": 0.2}, Plan(status=502, reason="the answer was lost")),
        ("flaky", {"chance": 0.4}, Plan()),
        ("reject", {}, Plan(effect=False, status=422, reason="card declined")),
        ("accept", {}, Plan(done_after=seconds(1))),
        ("remember", {}, Plan(is_remembered=True, reason="card declined")),
        ("forget", {}, Plan(keys_last=seconds(10))),
        ("busy", {}, TOO_MANY),
        ("unauthorized", {}, UNAUTHORIZED),
        ("unauthorized", {"calls": 2}, Plan()),
    ],
    ids=str,
)
def test_every_mode_has_its_own_outcome(mode, how, expected):
    """A mode decides whether there is an effect, what the answer is, and when it comes."""
    assert plan(PAYMENT, fault(mode, failureRate=0.4), **{"chance": 0} | how) == expected


REMEMBERING = replace(PAYMENT, remembers_refusals=True, keys_last=seconds(7))


def test_a_service_remembers_what_its_agent_declares():
    """How long it knows a key, and whether it repeats a refusal."""
    agents = [
        replace(agent, remembers_refusals=True, keys_last=seconds(7)) for agent in SHOP.agents
    ]
    service = simulated(replace(SHOP, agents=tuple(agents)))["payment"]
    assert (service.remembers_refusals, service.keys_last) == (True, seconds(7))


@pytest.mark.parametrize(
    ("remembered", "expected"),
    [
        (None, Plan(keys_last=seconds(7))),
        (fault("none"), Plan(keys_last=seconds(7))),
        (fault("forget"), Plan(keys_last=seconds(10))),
        (
            fault("reject"),
            Plan(keys_last=seconds(7), is_remembered=True, reason="card declined"),
        ),
    ],
    ids=["no fault", "none", "forget", "reject"],
)
def test_what_a_service_remembers_shows_in_the_course_of_a_call(remembered, expected):
    """A fault says otherwise only of what it is about."""
    assert plan(REMEMBERING, remembered, 0) == expected


def test_the_content_of_a_call_is_compared_where_refusals_are_remembered():
    """By its values alone, on every host alike."""
    one, same = {"amount": "5.00", "to": {"name": "A"}}, {"to": {"name": "A"}, "amount": "5.00"}
    calls = [SimulatedCall(order_id="o", order=order) for order in (one, same, {})]
    first, second, other = (content_of(REMEMBERING, call) for call in calls)
    assert first == second == "5de4fe44e77395d6"
    assert other != first
    assert content_of(PAYMENT, calls[0]) == ""


@pytest.mark.parametrize("chance", [0.0, 0.999])
@pytest.mark.parametrize(("rate", "statuses"), [(0, {200}), (1, {502, 503})])
def test_the_failure_rate_may_be_none_or_all(rate, statuses, chance):
    """At rate 0 no call fails, at rate 1 every call does."""
    assert plan(PAYMENT, fault("flaky", failureRate=rate), chance).status in statuses


@pytest.mark.parametrize("mode", ["slow", "hang", "late"])
def test_the_latency_is_in_milliseconds(mode):
    """`latencyMs` says how long an answer is held back, zero included."""
    assert plan(PAYMENT, fault(mode, latencyMs=250), 0).delay_seconds == 0.25
    assert plan(PAYMENT, fault(mode, latencyMs=0), 0).delay_seconds == 0


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([FOR_ALL], FOR_ALL, id="for all"),
        pytest.param([FOR_ALL, FOR_TEA], FOR_TEA, id="a product before all"),
        pytest.param([FOR_TEA, FOR_ORDER, FOR_ALL], FOR_ORDER, id="an order before a product"),
        pytest.param(
            [FOR_ORDER, FOR_ORDER_WITH_TEA, FOR_TEA], FOR_ORDER_WITH_TEA, id="both before one"
        ),
        pytest.param([entry(match={"sku": "POT"})], None, id="another product"),
        pytest.param(
            [entry(match={"orderId": "o1", "sku": "POT"})],
            None,
            id="the order, but another product",
        ),
        pytest.param([entry(match={"orderId": "o10"})], None, id="an order whose id begins alike"),
    ],
)
def test_the_fault_made_for_a_call_meets_it(faults, expected):
    """The narrowest fault wins, whatever the order in which they were set."""
    assert met_by(faults) == met_by(faults[::-1]) == expected


def test_of_two_equal_faults_every_host_takes_the_same():
    """The order of the rows makes no difference."""
    faults = [entry(mode="hang", match={"sku": "TEA"}), entry(mode="late", match={"sku": "CUP"})]
    assert met_by(faults) == met_by(faults[::-1])


def test_a_fault_lapses():
    """It is in force up to its last moment, and without one for ever."""
    lapsing = entry(until=NOW + seconds(1))
    assert in_force([lapsing, FOR_ALL], NOW) == [lapsing, FOR_ALL]
    assert in_force([lapsing, FOR_ALL], NOW + seconds(1)) == [FOR_ALL]


def test_every_fault_of_a_body_is_named():
    """Unknown fields are among them."""
    body = '{"mode":"broken","latencyMs":-1,"failureRate":2,"for":0,"match":{"sku":"","orderId":1},"why":"because"}'
    with pytest.raises(InvalidError) as caught:
        decode(SimulatedFault, body)
    assert {str(text).partition(":")[0] for text in caught.value.faults} == {
        *("mode", "latencyMs", "failureRate", "for", "match.sku", "match.orderId", "why"),
    }


def test_a_fault_is_for_nothing_that_the_business_cannot_tell():
    """Each such mark is named; those that it declares are its own, and another business has others."""
    check(PAYMENT, fault(match={"sku": "TEA", "orderId": "o1", "action": "void"}))
    with pytest.raises(InvalidError) as caught:
        check(PAYMENT, fault(match={"sku": "TEA", "size": "7", "colour": "red"}))
    assert [str(text).partition(":")[0] for text in caught.value.faults] == [
        "match.colour",
        "match.size",
    ]
    with pytest.raises(InvalidError):
        check(simulated(CLAIMS)["bank"], fault(match={"sku": "TEA"}))


def test_a_fault_for_a_mark_that_only_another_version_knows_meets_nothing():
    """It was put in force by that one."""
    assert met_by([entry(match={"colour": "red"})]) is None


def test_the_same_match_is_the_same_fault_however_it_is_written():
    """The second one takes the place of the first."""
    one, other = ({"sku": "TEA", "orderId": "o1"}, {"orderId": "o1", "sku": "TEA"})
    assert (
        fault(match=one).key() == fault(match=other).key() != fault(match={"orderId": "o1"}).key()
    )


@pytest.mark.parametrize(
    "order", [{}, {"items": None}, {"items": "TEA"}, {"items": [{}, "TEA", None, {"sku": 7}]}]
)
def test_an_order_may_look_like_anything(order):
    """What names no product is met by no fault for a product."""
    call = SimulatedCall.model_validate({"orderId": "o1", "order": order})
    assert met_by([FOR_TEA], call) is None


def test_a_call_names_its_order():
    """Without an order id there is nothing to do."""
    with pytest.raises(ValidationError):
        SimulatedCall.model_validate({"step": "payment"})


def test_a_call_in_the_default_form_says_whose_it_is():
    """The path names the action; order and step stand in the body, whatever the key is."""
    assert action_of(PAYMENT, "POST", "/authorise") == "authorise"
    body = b'{"orderId": "o1", "step": "payment", "order": {"amount": "5.00"}}'
    expected = SimulatedCall(order_id="o1", step="payment", order={"amount": "5.00"})
    assert call_of(PAYMENT, "authorise", "o2:capture", body) == expected
    with pytest.raises(InvalidError):
        call_of(PAYMENT, "authorise", "o2:capture", b'{"order": {}}')


def test_results_are_the_same_for_every_repetition():
    """They follow from service, action and key; the amount is that of the order."""
    call = SimulatedCall.model_validate({"orderId": "o1", "order": {"amount": "25.00"}})
    first = result_of(PAYMENT, "authorise", "o1:payment", call)
    assert first == result_of(PAYMENT, "authorise", "o1:payment", call)
    assert first["amount"] == "25.00"
    assert first["reference"] != result_of(PAYMENT, "authorise", "o2:payment", call)["reference"]


def test_a_service_answers_what_its_agent_says_that_it_does():
    """A free text is another one for each key; the amount is that of the request, where it may be a text."""
    example = {"plate": REFERENCE, "seats": 4, "keys": [{"code": REFERENCE}], "amount": REFERENCE}
    service = replace(PAYMENT, answers={"authorise": example})
    call = SimulatedCall.model_validate({"orderId": "o1", "order": {"amount": "25.00"}})
    result = result_of(service, "authorise", "o1:payment", call)
    reference = result["reference"]
    assert result["plate"] == reference
    assert (result["seats"], result["keys"]) == (4, [{"code": reference}])
    assert result["amount"] == "25.00"
    in_cents = replace(PAYMENT, answers={"authorise": {"amount": 2500}})
    assert result_of(in_cents, "authorise", "o1:payment", call)["amount"] == 2500


def test_an_action_without_an_example_of_its_answer_has_a_result():
    """It has a reference, as every result."""
    service = replace(PAYMENT, answers={})
    result = result_of(service, "authorise", "k", SimulatedCall(order_id="o"))
    assert result == {"reference": "payment-85a1941fbe15", "action": "authorise"}


def test_every_undo_undoes_an_action_of_its_own_service():
    """Each pair belongs to one service, and every action is one half of a pair."""
    for service in simulated(SHOP).values():
        assert {*service.undoes, *service.undoes.values()} == service.actions


def test_what_is_kept_of_faults_and_results_has_the_same_names_on_every_host():
    """Another version of the app reads it."""
    assert SimulatedFault(mode="down").key() == "all"
    assert SimulatedFault(mode="down", match={"sku": "TEA"}).key() == "320bff1f39431628"
    result = result_of(PAYMENT, "authorise", "k", SimulatedCall(order_id="o", order={"amount": 5}))
    assert result == {"reference": "payment-85a1941fbe15", "action": "authorise"}
    only = SimulatedFault(mode="down", match={"action": "void"})
    assert [
        fault_for(PAYMENT, [only], action, SimulatedCall(order_id="o"))
        for action in ("void", "authorise")
    ] == [only, None]


def test_the_fault_that_the_page_shows_meets_one_operation():
    """The page about services says how a fault is for one operation alone (newcomer C, `match`)."""
    page = Path(__file__).parents[4] / "docs/reference/agents.md"
    [shown] = re.findall(r"-d '(\{\"mode\".*?\}\})'", page.read_text())
    in_page = FaultInForce(**dict(SimulatedFault.model_validate_json(shown)))
    bank = simulated(CLAIMS)["bank"]
    check(bank, in_page)
    assert fault_for(bank, [in_page], "pay", CALL) == in_page
    assert fault_for(bank, [in_page], "recall", CALL) is None
