"""Two services that were not built for this app, as their providers document such: a business of both."""

from datetime import timedelta
from typing import Literal

from engine.declarations.service_forms import Body
from engine.workflow import UNDO, Agent, Model, Operation, Workflow, application


class Parcel(Model):
    """The payload: what is paid for, and sent."""

    amount: int
    currency: Literal["eur"] = "eur"
    address: str


class Charge(Model):
    """What Stripe's `POST /v1/charges` asks, without the form encoding."""

    amount: int
    currency: str


class Charged(Model):
    """A part of its charge object."""

    id: str
    paid: bool


class Shipment(Model):
    """What is sent."""

    address: str


class Label(Model):
    """What a carrier answers once it has made the label."""

    label: str
    tracking_number: str


class Payments(Agent):
    """Like Stripe: 402 for a declined card, which its key repeats, as all answers, for a day."""

    charge = Operation(Charge, Charged, path="/v1/charges")
    refund = Operation(Charge, path="/v1/charges/{result.id}/refunds")


class Parcels(Agent):
    """Like a carrier: a shipment is a resource, which it accepts first; 204 for one that is gone."""

    ship = Operation(Shipment, Label, method="PUT", path="/shipments/{orderId}?validate=strict")
    cancel = Operation(Shipment, method="DELETE", path="/labels/{result.label}")


stripe = Payments(
    "stripe",
    body=Body.CONTENT,
    headers={"Stripe-Version": "2025-01-01"},
    refusals=(402,),
    remembers_refusals=True,
    keys_last=timedelta(hours=24),
    refusal="Your card was declined.",
)
carrier = Parcels(
    "carrier",
    body=Body.CONTENT,
    key_header="X-Request-Id",
    answer_within=timedelta(hours=2),
    refusal="no such address",
)
parcels = Workflow("parcel", Parcel)


@parcels.step(stripe.charge, undo=stripe.refund)
def pay(parcel: Parcel) -> Charge:
    """Take the money."""
    return Charge(amount=parcel.amount, currency=parcel.currency)


@parcels.step(carrier.ship, undo=carrier.cancel, after=[pay], on_failure=UNDO)
def send(parcel: Parcel) -> Shipment:
    """Send the parcel."""
    return Shipment(address=parcel.address)


PARCELS = application(
    parcels, agents=[stripe, carrier], sample=Parcel(amount=1200, address="1 Main Street")
)
