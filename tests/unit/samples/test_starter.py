"""The business: it can start, takes back what it does, and asks each service for the right thing."""

from samples.starter import business
from testkit import WorkflowTestEnvironment

ADA = business.Buyer(name="Ada", email="ada@example.com")
BOOKING = business.Booking(customer=ADA, item="a bicycle")


def test_the_app_starts_with_it() -> None:
    """Every step has an agent, and the sample is an order that it takes."""
    business.START.check(business.START.agents)


def test_an_order_is_carried_out() -> None:
    """Each service does its part, once."""
    environment = WorkflowTestEnvironment(business.START)
    order = environment.submit(BOOKING)
    assert order.state == "Processed"
    assert environment.effects("reservations") == ["reserve"]
    assert environment.effects("payments") == ["charge"]


def test_what_cannot_be_charged_is_released() -> None:
    """An order whose payment is refused leaves nothing behind."""
    environment = WorkflowTestEnvironment(business.START)
    environment.refuse("payments", "charge")
    order = environment.submit(BOOKING)
    assert (order.outcome, order.reason) == ("undone", "charge: card declined")
    assert environment.effects("reservations") == ["reserve", "release"]


def test_the_charge_names_the_reservation() -> None:
    """So that the two services can tell what belongs together."""
    request = business.charge(BOOKING, business.Reservation(reference="r-1"))
    assert (request.item, request.reservation) == ("a bicycle", "r-1")
