"""What an order holds, the services that carry it out, and its two steps, each with its undo."""

from engine.workflow import (
    UNDO,
    Agent,
    Model,
    Name,
    Operation,
    Owner,
    Personal,
    Text,
    Workflow,
    business,
)

# The payload of an order


class Customer(Model):
    """Who ordered."""

    name: Personal[Name]
    email: Owner[Text]


class Content(Model):
    """What is ordered, and by whom."""

    customer: Customer
    item: Text


# The services: what each operation asks, and what is kept of its answer


class Wanted(Model):
    """What is to be reserved."""

    item: str


class Reservation(Model):
    """The answer: the service's own name for what it did."""

    reference: str | None = None


class Payment(Wanted):
    """What is to be paid."""

    reservation: str | None


class Reserving(Agent):
    """The service that keeps things for customers."""

    reserve = Operation(Wanted, Reservation)
    release = Operation(Wanted)


class Paying(Agent):
    """The service that takes the customer's money."""

    charge = Operation(Payment)
    refund = Operation(Payment)


reservations = Reserving("reservations", refusal="there is none left")
payments = Paying("payments", refusal="card declined")

# The workflow: each function makes the request of its step

orders = Workflow("start", Content)


@orders.step(reservations.reserve, undo=reservations.release, on_failure=UNDO)
def reserve(content: Content) -> Wanted:
    """Reserve it for the customer."""
    return Wanted(item=content.item)


@orders.step(payments.charge, undo=payments.refund, on_failure=UNDO)
def charge(content: Content, reserve: Reservation) -> Payment:
    """Charge the customer."""
    return Payment(item=content.item, reservation=reserve.reference)


START = business(
    orders,
    agents=[reservations, payments],
    sample=Content(
        customer=Customer(name="A sample", email="sample@example.com"), item="the first one"
    ),
)
