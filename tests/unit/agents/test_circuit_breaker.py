"""The circuit breaker: what opens it, what it lets through, what closes it (AGT-8)."""

from datetime import timedelta

import pytest

from agents import rules
from agents.circuit_breaker import CircuitBreaker, ProbeTimeoutError
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    CallTimeoutError,
    GatewayError,
    NotAttemptedError,
    RejectedError,
    ThrottledError,
    TransientError,
)
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS, AgentRequest
from tests.support.builders import NOW, ORDER_ID
from tests.support.clocks import Clock

ORDERS = 3
OPEN_FOR = timedelta(seconds=30)
REQUEST = AgentRequest(
    order_id=ORDER_ID,
    step="payment",
    action="do",
    operation="authorise",
    attempt=1,
    idempotency_key="k",
    issued_at=NOW,
    complete_by=NOW + timedelta(seconds=60),
    content={},
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def circuit(clock):
    return CircuitBreaker(orders=ORDERS, open_for=OPEN_FOR, clock=clock)


def call(circuit, order_id, error=None):
    with circuit.guard(order_id):
        if error:
            raise error


def fail(circuit, order_id):
    with pytest.raises(TransientError):
        call(circuit, order_id, TransientError("503"))


def opened(circuit):
    for number in range(ORDERS):
        fail(circuit, f"order-{number}")
    return circuit


@pytest.mark.proves("AGT-8")
def test_it_opens_when_one_order_after_another_fails(circuit, clock):
    """Then no call is made, and whoever asks hears when to come again."""
    opened(circuit)
    assert circuit.open_until - clock() == OPEN_FOR
    with pytest.raises(NotAttemptedError) as refused:
        call(circuit, "another")
    assert refused.value.retry_after == OPEN_FOR


def test_one_order_that_fails_again_and_again_stops_nobody_else(circuit):
    """It may be the order's own fault, and ends by its own count of failures."""
    for _ in range(10 * ORDERS):
        fail(circuit, "the same")
    assert circuit.open_until is None


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize("fault", [CallTimeoutError, TransientError, GatewayError])
def test_a_probe_that_times_out_says_so(circuit, clock, fault):
    """Its attempt ends by that; a call that opens the circuit is no probe."""
    for number in range(ORDERS):
        with pytest.raises(fault) as raised:
            call(circuit, f"order-{number}", fault("late"))
        assert raised.type is fault
    clock.now = circuit.open_until
    with pytest.raises(fault, match="late") as raised:
        call(circuit, "probe", fault("late"))
    assert raised.type is (ProbeTimeoutError if fault is CallTimeoutError else fault)
    assert circuit.open_until > clock()


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize("answer", [None, RejectedError("card declined")], ids=["done", "refused"])
def test_any_answer_shows_that_the_service_works(circuit, answer):
    """Also a refusal: the failures before it count no more."""
    for number in range(ORDERS - 1):
        fail(circuit, f"order-{number}")
    if answer:
        with pytest.raises(RejectedError):
            call(circuit, "answered", answer)
    else:
        call(circuit, "answered")
    fail(circuit, "late")
    assert circuit.open_until is None


@pytest.mark.proves("AGT-8")
def test_a_call_that_was_under_way_leaves_an_open_circuit_open(circuit):
    """It says nothing of the time since."""
    with circuit.guard("under way"):
        opened(circuit)
    assert circuit.open_until is not None


@pytest.mark.proves("AGT-8")
def test_one_call_tries_and_closes_the_circuit_for_all(circuit, clock):
    """When the time is over: one at a time, the others wait for what becomes of it."""
    opened(circuit)
    clock.now += OPEN_FOR
    with circuit.guard("tries"), pytest.raises(NotAttemptedError):
        call(circuit, "too early")
    assert circuit.open_until is None
    call(circuit, "after")


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize(
    "order_id", ["tries", "order-0"], ids=["another order", "one that failed before"]
)
def test_one_call_that_fails_keeps_the_circuit_open(circuit, clock, order_id):
    """And the next one may try when the time is over again."""
    opened(circuit)
    clock.now += OPEN_FOR
    fail(circuit, order_id)
    assert circuit.open_until > clock()
    clock.now = circuit.open_until
    call(circuit, "tries again")
    assert circuit.open_until is None


@pytest.mark.proves("AGT-8")
def test_a_call_that_was_under_way_lets_no_second_one_try(clock):
    """It began before the circuit opened, and ends while another tries."""
    circuit = CircuitBreaker(orders=ORDERS, open_for=timedelta(0), clock=clock)
    under_way = circuit.guard("under way")
    under_way.__enter__()
    opened(circuit)
    with circuit.guard("tries"):
        under_way.__exit__(TransientError, TransientError("503"), None)
        with pytest.raises(NotAttemptedError):
            call(circuit, "too early")


def throttle(under_way, retry_after):
    """End a call with the answer that asks for a pause."""
    error = ThrottledError("429", retry_after)
    under_way.__exit__(ThrottledError, error, None)


@pytest.mark.proves("AGT-8")
@pytest.mark.parametrize("fault", [None, TransientError("503")], ids=["succeeds", "fails"])
def test_a_probe_removes_no_pause_that_was_asked_for_meanwhile(circuit, clock, fault):
    """What it proves is about the time before it began (bugs 7)."""
    under_way = circuit.guard("under way")
    under_way.__enter__()
    opened(circuit)
    clock.now += OPEN_FOR
    probe = circuit.guard("probe")
    probe.__enter__()
    throttle(under_way, 20 * OPEN_FOR)
    probe.__exit__(fault and type(fault), fault, None)
    with pytest.raises(NotAttemptedError) as refused:
        call(circuit, "another")
    assert refused.value.reason is NotAttemptedReason.THROTTLED
    assert refused.value.retry_after == 20 * OPEN_FOR
    assert circuit.open_until == circuit.throttled_until == clock() + 20 * OPEN_FOR
    clock.now = circuit.open_until
    call(circuit, "probe of the pause")
    assert (circuit.open_until, circuit.throttled_until) == (None, None)


@pytest.mark.proves("AGT-8")
def test_a_pause_that_ended_during_the_probe_is_over(circuit, clock):
    """The success counts for the time after it (bugs 7)."""
    under_way = circuit.guard("under way")
    under_way.__enter__()
    opened(circuit)
    clock.now += OPEN_FOR
    with circuit.guard("probe"):
        throttle(under_way, OPEN_FOR)
        clock.now += OPEN_FOR
    assert (circuit.open_until, circuit.throttled_until) == (None, None)
    call(circuit, "after")


@pytest.mark.proves("AGT-8")
def test_after_an_answer_every_order_counts_anew(circuit):
    """Also those that failed before it."""
    fail(circuit, "order-0")
    call(circuit, "answered")
    assert opened(circuit).open_until is not None


@pytest.mark.proves("AGT-8")
def test_it_stays_open_for_longer_after_every_try_that_fails(circuit, clock):
    """It is half as long again, ten times at most; after a success it begins anew."""
    opened(circuit)
    pauses = []
    for _ in range(8):
        clock.now = circuit.open_until
        fail(circuit, "try")
        pauses.append((circuit.open_until - clock()) / OPEN_FOR)
    assert pauses[:3] == [1.5, 2.25, 3.375]
    assert pauses[-2:] == [10, 10]
    clock.now = circuit.open_until
    call(circuit, "works")
    assert opened(circuit).open_until - clock() == OPEN_FOR


@pytest.mark.proves("AGT-8")
def test_it_stays_open_no_longer_than_a_reply_can_say(clock):
    """Also if it opens for hours and no try succeeds, so that each request is answered (engine 27)."""
    circuit = opened(CircuitBreaker(orders=ORDERS, open_for=timedelta(hours=3), clock=clock))
    for _ in range(8):
        clock.now = circuit.open_until
        fail(circuit, "try")
    with pytest.raises(NotAttemptedError) as turned_away:
        circuit.admit()
    reply = rules.not_attempted(REQUEST, turned_away.value, was_called=False, was_deferred=False)
    assert reply.retry_after == MAX_RETRY_AFTER_SECONDS


@pytest.mark.proves("AGT-8")
def test_hours_of_an_outage_take_few_tries(circuit, clock):
    """Each is an attempt of an order, which its history tells: some fifty in four hours."""
    opened(circuit)
    tries, end = 0, clock() + timedelta(hours=4)
    while circuit.open_until < end:
        clock.now = circuit.open_until
        fail(circuit, "try")
        tries += 1
    assert tries < 60
