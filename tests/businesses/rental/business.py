"""A car rental, for tests: five agents, each of which is shown something else than the others.

A car and a valid licence, an insurance, a deposit, and an e-mail that confirms the rental.
"""

from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field

from engine.workflow import (
    COOLDOWN,
    UNDO,
    Agent,
    ApiKey,
    ClientCredentials,
    EntraToken,
    InvalidError,
    Key,
    Model,
    Operation,
    OrderEndpoint,
    Owner,
    Personal,
    Text,
    Workflow,
    application,
)

# The payload of a rental

Amount = Annotated[str, Field(pattern=r"^[0-9]{1,5}\.[0-9]{2}$")]


class Renter(Model):
    """Who drives."""

    name: Personal[Text]
    email: Owner[Text]
    licence: Personal[Annotated[str, Field(pattern=r"^[A-Z0-9]{5,16}$")]]


class Rental(Model):
    """What is rented, by whom, and when."""

    reservation_number: Key[Annotated[str, Field(pattern=r"^R-[0-9]{4,10}$")]]
    renter: Renter
    car_class: Literal["small", "estate", "van"]
    pick_up: date
    give_back: date
    deposit: Amount


def comes_back_later(rental: Rental) -> None:
    """Refuse a rental that ends before it begins; raises `InvalidError`."""
    if rental.give_back <= rental.pick_up:
        raise InvalidError(["giveBack: expected a day after pickUp"])


# The services


class Booking(Model):
    """Which car is wanted, and when."""

    reservation_number: str
    car_class: str
    pick_up: date
    give_back: date


class Car(Model):
    """The plate of the car that was reserved."""

    reference: str


class Driver(Model):
    """Whose licence is checked, and until when it has to be valid."""

    name: Personal[str]
    licence: Personal[str]
    until: date


class Cover(Model):
    """Which car is insured, and when."""

    reservation_number: str
    plate: str
    pick_up: date
    give_back: date


class Policy(Model):
    """The number of the insurance of a rental."""

    reference: str


class Charge(Model):
    """The deposit that is held."""

    reservation_number: str
    amount: Amount


class Held(Model):
    """The payment service's own name for the deposit."""

    reference: str


class Letter(Model):
    """What the renter is told."""

    email: Personal[str]
    reservation_number: str
    plate: str
    deposit: str


class InsuredLetter(Letter):
    """What the renter of an insured car is told."""

    policy: str


class Fleet(Agent):
    """The service that knows where each car is."""

    reserve = Operation(Booking, Car)
    release = Operation(Booking)


class Registry(Agent):
    """The registry of driving licences."""

    check_licence = Operation(Driver)


class Insurance(Agent):
    """The service that insures cars."""

    insure = Operation(Cover, Policy)
    cancel = Operation(Cover)


class Deposits(Agent):
    """The payment service that holds deposits."""

    hold = Operation(Charge, Held)
    void = Operation(Charge)


class Mail(Agent):
    """The service that sends e-mails."""

    confirm = Operation(Letter)
    confirm_insured = Operation(InsuredLetter)


fleet = Fleet("fleet", refusal="no car of this class")
registry = Registry("registry", auth=ApiKey("REGISTRY_KEY"), refusal="licence not valid")
insurer = Insurance("insurer", refusal="not insurable")
deposits = Deposits(
    "deposits",
    auth=ClientCredentials("DEPOSITS_TOKEN_URL", "DEPOSITS_CLIENT", "DEPOSITS_SECRET"),
    refusal="card declined",
)
mail = Mail("mail", auth=EntraToken(), refusal="address unknown")

# The workflow

ENDPOINT = OrderEndpoint(open=True, cancel_until="deposit")
first_rentals = Workflow("rental", Rental, version=1, endpoint=ENDPOINT)
"""For rentals from the time when cars were not insured."""
rentals = Workflow("rental", Rental, version=2, endpoint=ENDPOINT)


@rentals.step(fleet.reserve, undo=fleet.release, on_failure=UNDO)
@first_rentals.step(fleet.reserve, undo=fleet.release, on_failure=UNDO)
def car(rental: Rental) -> Booking:
    """Reserve a car."""
    return Booking(
        reservation_number=rental.reservation_number,
        car_class=rental.car_class,
        pick_up=rental.pick_up,
        give_back=rental.give_back,
    )


@rentals.step(registry.check_licence, on_failure=UNDO)
@first_rentals.step(registry.check_licence, on_failure=UNDO)
def licence(rental: Rental) -> Driver:
    """Check the driving licence."""
    return Driver(name=rental.renter.name, licence=rental.renter.licence, until=rental.give_back)


@rentals.step(insurer.insure, undo=insurer.cancel, after=[licence], on_failure=UNDO)
def insurance(rental: Rental, car: Car) -> Cover:
    """Insure the car."""
    return Cover(
        reservation_number=rental.reservation_number,
        plate=car.reference,
        pick_up=rental.pick_up,
        give_back=rental.give_back,
    )


@rentals.step(deposits.hold, undo=deposits.void, after=[insurance], on_failure=UNDO)
@first_rentals.step(deposits.hold, undo=deposits.void, after=[car, licence], on_failure=UNDO)
def deposit(rental: Rental) -> Charge:
    """Hold the deposit."""
    return Charge(reservation_number=rental.reservation_number, amount=rental.deposit)


@first_rentals.step(mail.confirm, on_failure=COOLDOWN, cooldown=timedelta(hours=1))
def confirm(rental: Rental, car: Car, deposit: Held) -> Letter:
    """Confirm the rental of a car that is not insured."""
    return Letter(
        email=rental.renter.email,
        reservation_number=rental.reservation_number,
        plate=car.reference,
        deposit=deposit.reference,
    )


@rentals.step(mail.confirm_insured, on_failure=COOLDOWN, cooldown=timedelta(hours=1))
def confirm_insured(rental: Rental, car: Car, insurance: Policy, deposit: Held) -> InsuredLetter:
    """Confirm the rental."""
    return InsuredLetter(
        email=rental.renter.email,
        reservation_number=rental.reservation_number,
        plate=car.reference,
        deposit=deposit.reference,
        policy=insurance.reference,
    )


RENTAL = application(
    rentals,
    first_rentals,
    agents=[fleet, registry, insurer, deposits, mail],
    check=comes_back_later,
    sample=Rental(
        reservation_number="R-0000",
        renter=Renter(name="A sample", email="sample@example.com", licence="SAMPLE01"),
        car_class="small",
        pick_up=date(2030, 5, 1),
        give_back=date(2030, 5, 8),
        deposit="300.00",
    ),
)
