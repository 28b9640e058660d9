"""The smallest business: its order when the service works, refuses or hangs."""

from samples.minimal.business import MINIMAL, Poster
from testkit import WorkflowTestEnvironment

LIGHTHOUSE = Poster(picture="A lighthouse")


def test_a_poster_is_printed() -> None:
    """The service is called once."""
    environment = WorkflowTestEnvironment(MINIMAL)
    order = environment.submit(LIGHTHOUSE)
    assert order.state == "Processed"
    assert environment.effects("printer") == ["print-poster"]


def test_a_refused_poster_waits_for_an_operator() -> None:
    """The order goes on when an operator resubmits it."""
    environment = WorkflowTestEnvironment(MINIMAL)
    environment.refuse("printer", "print-poster")
    order = environment.submit(LIGHTHOUSE)
    assert (order.state, order.reason) == ("Error", "out of paper")
    environment.heal("printer")
    environment.act(order, "resubmit")
    assert order.state == "Processed"


def test_a_printer_that_hangs_prints_once() -> None:
    """The supervisor finds the step that timed out, and requests another attempt."""
    environment = WorkflowTestEnvironment(MINIMAL)
    environment.hang("printer")
    order = environment.submit(LIGHTHOUSE)
    environment.advance(seconds=30)
    assert order.state == "Processing"
    environment.heal("printer")
    environment.advance(minutes=2)
    assert order.state == "Processed"
    assert environment.effects("printer") == ["print-poster"]
