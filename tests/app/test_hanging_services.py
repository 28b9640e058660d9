"""Orders whose service takes calls and never answers (SUP-3, AGT-8), in virtual time."""

from datetime import timedelta

import pytest

from engine.decisions.step_kinds import MAX_OVERLOADED_ATTEMPTS
from engine.workflow import Agent, Model, Operation, Text, Workflow, application
from testkit import WorkflowTestEnvironment

THRESHOLD = 3
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Sale(Model):
    item: Text


class Bank(Agent):
    charge = Operation(Sale)


bank = Bank("bank")
flow = Workflow("sale", Sale)


@flow.step(bank.charge)
def charge(sale: Sale) -> Sale:
    return sale


SHOP = application(flow, agents=[bank], sample=Sale(item="tea"))


def submitted(environment, count):
    return [environment.submit(Sale(item="tea")) for _ in range(count)]


def hanging(count):
    """An app whose service hangs, and so many orders that need it."""
    environment = WorkflowTestEnvironment(SHOP, failure_threshold=THRESHOLD, buckets=1)
    environment.hang("bank")
    return environment, submitted(environment, count)


def until_ended(environment, orders, longest, step=MINUTE):
    """Let the time pass until all orders have ended; return how long that took."""
    began = environment.now
    while any(order.state not in ("Processed", "Error") for order in orders):
        environment.advance(seconds=step.total_seconds())
        took = environment.now - began
        assert took <= longest, [order.state for order in orders]
    return environment.now - began


def attempts_of(environment, order):
    (step,) = environment.inspect(order.id).steps
    return step.attempts


def states(orders):
    return {order.state for order in orders}


@pytest.mark.proves("SUP-3", "FLT-1")
def test_one_order_whose_service_hangs_ends_after_its_attempts():
    """Each is charged, for no other order times out: it may be the order's own fault."""
    environment, orders = hanging(1)
    took = until_ended(environment, orders, 5 * MINUTE)
    assert states(orders) == {"Error"}
    assert attempts_of(environment, orders[0]) == THRESHOLD
    print(f"ended after {took}")


@pytest.mark.proves("SUP-3", "AGT-8", "FLT-1")
def test_some_orders_whose_service_hangs_end_after_more_attempts():
    """They are too few to open the circuit; the first time-outs of each are the state of the agent."""
    environment, orders = hanging(6)
    took = until_ended(environment, orders, HOUR)
    assert states(orders) == {"Error"}
    attempts = [attempts_of(environment, order) for order in orders]
    assert THRESHOLD < max(attempts) <= THRESHOLD + MAX_OVERLOADED_ATTEMPTS
    print(f"ended after {took}: {attempts}")


@pytest.mark.proves("SUP-3", "AGT-8")
def test_no_order_is_charged_for_a_service_that_hangs_for_several_and_recovers():
    """Each is done once in the end."""
    environment, orders = hanging(6)
    environment.advance(minutes=2)
    assert states(orders) <= {"Pending", "Processing"}
    environment.heal("bank")
    until_ended(environment, orders, 5 * MINUTE)
    assert states(orders) == {"Processed"}
    assert {environment.inspect(order.id).failure_count for order in orders} == {0}
    assert environment.effects("bank") == ["charge"] * len(orders)


@pytest.mark.proves("SUP-3", "AGT-8", "FLT-1")
@pytest.mark.soak
@pytest.mark.parametrize(("count", "longest"), [(20, 6 * HOUR), (100, 28 * HOUR)])
def test_many_orders_whose_service_hangs_end_too(count, longest):
    """The circuit lets one call in five minutes probe the service, and each of these calls is a time-out.

    So three hundred of them end a hundred orders in a day. In between they wait, and few are tried.
    """
    environment, orders = hanging(count)
    took = until_ended(environment, orders, longest, step=HOUR)
    assert states(orders) == {"Error"}
    attempts = [attempts_of(environment, order) for order in orders]
    assert max(attempts) <= 25
    print(f"ended after {took}: up to {max(attempts)} attempts, {sum(attempts)} in all")
