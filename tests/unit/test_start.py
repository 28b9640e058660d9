"""The business: it can start, takes back what it does, and asks each service for the right thing."""

from examples.start import business

ADA = business.Customer(name="Ada", email="ada@example.com")
CONTENT = business.Content(customer=ADA, item="a bicycle")


def test_the_app_starts_with_it():
    """Every step has an agent, and the sample is an order that it takes."""
    business.START.check(business.START.agents)


def test_each_step_can_be_taken_back():
    """An order that fails at one of them leaves nothing behind."""
    (workflow,) = business.START.workflows.all
    undone_by = {step.name: step.compensation for step in workflow.steps}
    assert undone_by == {"reserve": "release", "charge": "refund"}


def test_the_charge_names_the_reservation():
    """So that the two services can tell what belongs together."""
    request = business.charge(CONTENT, business.Reservation(reference="r-1"))
    assert (request.item, request.reservation) == ("a bicycle", "r-1")
