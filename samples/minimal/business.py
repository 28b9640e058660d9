"""The payload of an order, the services that carry it out, and two steps, each with its undo."""

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
    application,
)

# The payload of an order


class Buyer(Model):
    """The customer."""

    name: Personal[Name]
    email: Owner[Text]


class Booking(Model):
    """The payload of an order."""

    customer: Buyer
    item: Text


# The services: what each operation asks, and what is kept of its answer


class ReservationRequest(Model):
    """The request for a reservation."""

    item: str


class Reservation(Model):
    """The answer of a service: its own reference for what it did."""

    reference: str | None = None


class ChargeRequest(ReservationRequest):
    """What is to be paid."""

    reservation: str | None


class Reserving(Agent):
    """The service that keeps things for customers."""

    reserve = Operation(ReservationRequest, Reservation)
    release = Operation(ReservationRequest)


class Paying(Agent):
    """The service that takes the customer's money."""

    charge = Operation(ChargeRequest)
    refund = Operation(ChargeRequest)


reservations = Reserving("reservations", refusal="there is none left")
payments = Paying("payments", refusal="card declined")

# The workflow: each function makes the request of its step

orders = Workflow("start", Booking)


@orders.step(reservations.reserve, undo=reservations.release, on_failure=UNDO)
def reserve(booking: Booking) -> ReservationRequest:
    """Reserve it for the customer."""
    return ReservationRequest(item=booking.item)


@orders.step(payments.charge, undo=payments.refund, on_failure=UNDO)
def charge(booking: Booking, reserve: Reservation) -> ChargeRequest:
    """Charge the customer."""
    return ChargeRequest(item=booking.item, reservation=reserve.reference)


START = application(
    orders,
    agents=[reservations, payments],
    sample=Booking(
        customer=Buyer(name="A sample", email="sample@example.com"), item="the first one"
    ),
)
