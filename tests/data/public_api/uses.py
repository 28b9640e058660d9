"""What authors of a business write outside of this repository: it uses each public name, and is right."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from engine.pages.triggers import BusinessPage
from engine.workflow import (
    CONTENT,
    CONTINUE,
    COOLDOWN,
    ENVELOPE,
    ERROR,
    UNDO,
    Agent,
    ApiKey,
    Application,
    Call,
    ClientCertificate,
    ClientCredentials,
    DeferredResult,
    EntraToken,
    InvalidError,
    Key,
    Model,
    Money,
    Name,
    NonRetryable,
    Nothing,
    Operation,
    Order,
    OrderEndpoint,
    Owner,
    Personal,
    Retryable,
    Text,
    WhenLate,
    Workflow,
    application,
)
from functions_alone.broker_config import configuration
from functions_alone.ports import Ports, StackError
from functions_alone.stack import Stack, StackConfig, Topic
from testkit import (
    Coverage,
    FoundError,
    NothingEndedError,
    OrderUnderTest,
    Seen,
    WorkflowTestEnvironment,
)
from testkit.keys import KeyStore, MemoryKeys, SqliteKeys
from testkit.receiver import AsgiApplication, Receiver


class Euros(Money):
    currency: Literal["EUR"]


class Guest(Model):
    name: Personal[Name]
    email: Owner[Text]


class Stay(Model):
    booking: Key[Annotated[str, Field(pattern=r"^B-[0-9]+$")]]
    guest: Guest
    nights: int
    price: Euros


class Wish(Model):
    nights: int


class Bill(Model):
    price: Money
    room: str | None


class Room(Model):
    number: str = Field(examples=["101"])


class Consent(Model):
    given: bool


class Hotel(Agent):
    book = Operation(Wish, Room)
    cancel = Operation(Wish, Nothing, method="DELETE", path="/rooms/{result.number}")
    clean = Operation(Wish)


class Bank(Agent, capability="payments"):
    pay = Operation(Bill)
    check = Operation(Bill)


class Notes(Agent):
    write = Operation(Room)


hotel = Hotel("hotel", refusals=(404,), keys_last=timedelta(days=30), auth=ApiKey("HOTEL_KEY"))
bank = Bank(
    "bank",
    body=CONTENT,
    headers={"Accept-Language": "en"},
    auth=ClientCredentials("BANK_TOKEN_URL", "BANK_CLIENT", "BANK_SECRET", renew_on_403=True),
)
other_bank = Bank(
    "other-bank", body=ENVELOPE, auth=ClientCertificate("CERTIFICATE"), provider="other"
)
vault = Bank("vault", optional=True, auth=EntraToken("VAULT_SCOPE"))
notes = Notes("notes", reads=("NOTES_KEY",))


@notes.activity(Notes.write)
async def write(call: Call, room: Room) -> Nothing:
    settings: Mapping[str, str] = call.settings
    if not settings:
        raise NonRetryable("no key")
    if call.seconds_left < 1:
        raise Retryable(timedelta(seconds=5), reason="later")
    if call.callback_url:
        raise DeferredResult(timedelta(minutes=1))
    return Nothing()


stays = Workflow(
    "stay",
    Stay,
    version=2,
    endpoint=OrderEndpoint(open=True, cancel_until="pay"),
    within=timedelta(days=20),
    when_late=WhenLate.ALERT,
)


def is_long(stay: Stay) -> bool:
    return stay.nights > 1


def tomorrow(order: Order) -> datetime | None:
    return order.placed_at + timedelta(days=1)


@stays.step(hotel.book, undo=hotel.cancel, undo_needs=["number"], on_failure=UNDO)
def book(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.wait_for(Consent, within=timedelta(days=2), attempts=2, condition=is_long, on_failure=UNDO)
def consent(stay: Stay, book: Room) -> Room:
    return book


@stays.step(hotel.clean, after=[book], start_at=tomorrow, on_failure=COOLDOWN, max_cooldowns=2)
def clean(stay: Stay, consent: Consent | None) -> Wish:
    return Wish(nights=1 if consent and consent.given else stay.nights)


@stays.step(bank.pay, timeout=timedelta(seconds=30), pivot=True, on_failure=ERROR)
def pay(stay: Stay, book: Room) -> Bill:
    return Bill(price=Money.of(Decimal(2) * stay.price.value, "EUR"), room=book.number)


@stays.step(notes.write, after=[pay], threshold=2, on_failure=CONTINUE)
def note(book: Room) -> Room:
    return book


def in_advance(stay: Stay) -> None:
    if stay.nights < 1:
        raise InvalidError(["nights: expected one or more"])


SAMPLE = Stay(
    booking="B-1",
    guest=Guest(name="Ada", email="ada@example.com"),
    nights=2,
    price=Euros(amount="80.00", currency="EUR"),
)
HOTEL: Application = application(
    stays,
    agents=[hotel, bank, other_bank, vault, notes],
    check=in_advance,
    sample=SAMPLE,
    fault_marks={"nights": lambda content: [str(content["nights"])]},
)
PAGE = BusinessPage(path="stay", title="Stay", folder=Path("hotel/page"))


def keeps_its_room(seen: Seen) -> None:
    assert seen.outcome != "undone" or "book" not in seen.standing


def test_a_stay() -> None:
    environment = WorkflowTestEnvironment(HOTEL, failure_threshold=2)
    environment.refuse("bank", "pay", "account frozen")
    order: OrderUnderTest = environment.submit(SAMPLE, not_before=datetime(2026, 1, 6, tzinfo=UTC))
    environment.advance(days=3)
    environment.answer(order, "consent", Consent(given=True))
    environment.act(order, "resubmit")
    state: str = order.state
    outcome: str | None = order.outcome
    steps: dict[str, str] = order.steps
    effects: list[str] = environment.effects("hotel")
    assert [state, outcome, steps, effects]


def test_every_course() -> None:
    try:
        coverage: Coverage = WorkflowTestEnvironment(HOTEL).explore(invariant=keeps_its_room)
    except (FoundError, NothingEndedError) as error:
        raise AssertionError from error
    assert coverage


def service(app: AsgiApplication, keys: Path | None) -> Receiver:
    store: KeyStore = SqliteKeys(keys) if keys else MemoryKeys()
    return Receiver(app=app, store=store, undoes={"/recall": "/pay"}, longest=timedelta(minutes=1))


async def run(app: Path, data: Path) -> str:
    topic = Topic(key="a-key", queue="events")
    config = StackConfig(
        ports=Ports.free(),
        data=data,
        app=app,
        queues=configuration([{"name": "orders"}]),
        topic=topic,
    )
    try:
        async with Stack(config, print) as stack:
            url: str = stack.http_url
    except StackError as error:
        raise AssertionError([fault.code for fault in error.faults]) from error
    return url
