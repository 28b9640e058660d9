"""The business: it can start, takes back what it does, and asks each service for the right thing."""

from samples.minimal import business
from testkit import Trial

ADA = business.Buyer(name="Ada", email="ada@example.com")
BOOKING = business.Booking(customer=ADA, item="a bicycle")


def test_the_app_starts_with_it() -> None:
    """Every step has an agent, and the sample is an order that it takes."""
    business.START.check(business.START.agents)


def test_an_order_is_carried_out() -> None:
    """Each service does its part, once."""
    trial = Trial(business.START)
    order = trial.submit(BOOKING)
    assert order.state == "Processed"
    assert trial.effects("reservations") == ["reserve"]
    assert trial.effects("payments") == ["charge"]


def test_what_cannot_be_charged_is_released() -> None:
    """An order whose payment is refused leaves nothing behind."""
    trial = Trial(business.START)
    trial.refuse("payments", "charge")
    order = trial.submit(BOOKING)
    assert (order.outcome, order.reason) == ("undone", "charge: card declined")
    assert trial.effects("reservations") == ["reserve", "release"]


def test_the_charge_names_the_reservation() -> None:
    """So that the two services can tell what belongs together."""
    request = business.charge(BOOKING, business.Reservation(reference="r-1"))
    assert (request.item, request.reservation) == ("a bicycle", "r-1")
