"""In another language no text for people is left in English: the made-up one shows those that are.

Each order takes another course; then everything that operators can read of it is looked at.
"""

import json
import re
from datetime import timedelta

import pytest

from engine.azure.channels.message_texts import html_text, plain_text, subject_of
from engine.domain.errors import (
    AppError,
    ConflictError,
    InvalidCallbackUrlError,
    NotAllowedError,
    NotSignedInError,
    OutOfTimeError,
    TooManyTriesError,
    UnavailableError,
    UnknownAgentError,
    UnknownLengthError,
    UnknownMessageError,
    UnknownOrderError,
)
from engine.http.responses import problem_of, unexpected
from engine.storage.poison import Arrival
from engine.words import catalogue
from engine.workflow import CONTINUE, UNDO, Agent, Model, Operation, Workflow, application
from operations.alerts import digests
from operations.alerts.digests import Places
from operations.api.external_events import EventRequest, ExtendRequest
from operations.api.requests import (
    AlertsPage,
    AuditPage,
    OperatorRequest,
    OrdersPage,
    PauseRequest,
    PoisonPage,
    Search,
)
from operations.cli import formatting
from testkit import WorkflowTestEnvironment

REFUSAL = "Zimmer belegt"
"""The words of a service."""


class Trip(Model):
    """The payload."""

    days: int


class Booking(Model):
    """What is asked of a service, and of people."""

    days: int


class Approval(Model):
    """The answer of a person."""

    limit: int


class Inn(Agent):
    """A service."""

    book = Operation(Booking)
    unbook = Operation(Booking)
    guide = Operation(Booking)
    pay = Operation(Booking)


inn = Inn("inn")
trip = Workflow("trip", Trip)


def long_trip(trip: Trip) -> bool:
    """Whether somebody has to approve it."""
    return trip.days > 7


@trip.step(inn.book, undo=inn.unbook, on_failure=UNDO, max_cooldowns=1)
def room(trip: Trip) -> Booking:
    """Zimmer."""
    return Booking(days=trip.days)


@trip.step(inn.guide, on_failure=CONTINUE, after=[room])
def guide(trip: Trip) -> Booking:
    """Begleitung."""
    return Booking(days=trip.days)


@trip.wait_for(Approval, within=timedelta(days=2), attempts=2, condition=long_trip, after=[room])
def approval(trip: Trip) -> Booking:
    """Freigabe."""
    return Booking(days=trip.days)


@trip.step(inn.pay, after=[room, approval], pivot=True)
def pay(trip: Trip) -> Booking:
    """Zahlung."""
    return Booking(days=trip.days)


TRIPS = application(trip, agents=[inn])
OWN_WORDS = {
    *("trip", "room", "guide", "approval", "pay", "inn", "long_trip", "days"),
    *("Zimmer", "belegt", "Begleitung", "Freigabe", "Zahlung", "test", "notiz", "grace", "UTC"),
    *("outside", "customer", "order-submissions", "https", "in", "memory"),
}
"""Names and words of the business, its services and its operators, and the name of a time zone."""

ID = re.compile(r"b\d\d-[0-9A-Z]{26}|[0-9a-f]{32}")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.+Z]*")
IN_BRACKETS = re.compile(r"\[[^\[\]]*\]")
FIELD = re.compile(r"[\w.]+: (?=\[)")
"""The field that a fault is of."""
WORD = re.compile(r"[^\W\d_][\w-]{2,}")

TEXTS = {
    *("reason", "summary", "waitingFor", "ifNothingHappens", "detail", "title", "word", "faults"),
    *("lastAnswer", "undoneBecause", "whyClosed", "why", "effect", "done", "button"),
    "advice",
}
"""The fields of the API that are written for people alone."""


def plain_words(text):
    """Return the words of a text that come neither from the catalogue nor from somebody else."""
    text = TIME.sub("", ID.sub("", FIELD.sub("", text)))
    while IN_BRACKETS.search(text):
        text = IN_BRACKETS.sub("", text)
    return [word for word in WORD.findall(text) if word not in OWN_WORDS]


CODES = {"cause", "fault", "body"}
"""The name of a group of causes, what an agent reported of a call, and a message as it came."""


def texts_in(value, field=""):
    """Yield what people read in an answer: its texts, and every other value that is no one word."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from texts_in(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from texts_in(member, field)
    elif isinstance(value, str) and field not in CODES and (field in TEXTS or " " in value):
        yield field, value


def in_english(answers):
    """Return the texts with a plain word, with their fields."""
    return sorted({(field, text) for field, text in texts_in(answers) if plain_words(text)})


@pytest.fixture(autouse=True)
def pseudo():
    """Speak the made-up language, and English afterwards."""
    catalogue.use(catalogue.PSEUDO)
    yield
    catalogue.use(catalogue.ENGLISH)


class Walk:
    """One environment, and what its operators read."""

    def __init__(self, **settings):
        self.environment = WorkflowTestEnvironment(TRIPS, **settings)
        self.world = self.environment._world
        self.services = self.world.operations.services
        self.answers = []

    def read(self, asking):
        """Read an answer of the operators' API, or its problem."""
        try:
            answer = self.world.run(asking)
        except AppError as error:
            self.answers.append(json.loads(problem_of(error).get_body()))
        else:
            self.answers.append(json.loads(answer.model_dump_json(by_alias=True)))

    def look_at(self, order):
        """Read all of an order, as it is now."""
        orders = self.services.orders
        self.read(orders.inspect(order.id))
        self.read(orders.explain(order.id))
        self.read(orders.search(Search(id=order.id)))
        for state in ("Pending", "Processing", "Waiting", "Error", "Held", "Processed", "Undone"):
            self.read(orders.list(OrdersPage(state=state)))
        for action in ("resubmit", "skip", "settle", "hold", "release", "expedite", "cancel"):
            self.refused(order, action)

    def refused(self, order, action):
        """Read why an action makes no sense; do nothing where it does."""
        if action not in self.environment.inspect(order.id).actions:
            try:
                self.environment.act(order, action)
            except AppError as error:
                self.answers.append(json.loads(problem_of(error).get_body()))

    def look_around(self):
        """Read what is of no single order."""
        services = self.services
        self.read(services.orders.vocabulary())
        self.read(services.orders.audit(AuditPage()))
        self.read(services.overview.look())
        self.read(services.alerts.list(AlertsPage()))
        self.read(services.alerts.causes())
        self.read(services.poison.list(PoisonPage()))
        self.read(services.channels.list())
        self.read(services.health.report())

    def english(self):
        return in_english(self.answers)


def test_an_order_that_is_done():
    walk = Walk()
    order = walk.environment.submit(Trip(days=1))
    walk.environment.advance(minutes=5)
    walk.look_at(order)
    walk.look_around()
    assert order.state == "Processed"
    assert walk.english() == []


def test_an_order_that_times_out_cools_down_and_is_undone():
    walk = Walk()
    walk.environment.hang("inn", "book")
    order = walk.environment.submit(Trip(days=1))
    for _ in range(20):
        walk.environment.advance(minutes=1)
        walk.look_at(order)
    walk.environment.advance(hours=1)
    walk.look_at(order)
    walk.look_around()
    assert order.outcome == "undone"
    assert walk.english() == []


def test_an_order_whose_service_refuses_optional_and_needed_steps():
    walk = Walk()
    walk.environment.refuse("inn", "guide", REFUSAL)
    walk.environment.refuse("inn", "pay", REFUSAL)
    order = walk.environment.submit(Trip(days=1))
    walk.environment.advance(minutes=2)
    walk.look_at(order)
    walk.environment.act(order, "resubmit")
    walk.environment.heal()
    walk.environment.act(order, "resubmit")
    walk.environment.advance(minutes=2)
    walk.look_at(order)
    walk.look_around()
    assert order.steps["pay"] == "Completed"
    assert walk.english() == []


def test_an_undo_that_fails():
    walk = Walk()
    walk.environment.refuse("inn", "unbook", REFUSAL)
    walk.environment.refuse("inn", "pay", REFUSAL)
    order = walk.environment.submit(Trip(days=1))
    walk.environment.advance(minutes=2)
    walk.look_at(order)
    walk.environment.act(order, "cancel")
    walk.environment.advance(minutes=2)
    walk.look_at(order)
    walk.look_around()
    assert order.outcome == "undo-incomplete"
    assert walk.english() == []


def test_an_order_that_awaits_an_answer():
    walk = Walk()
    order = walk.environment.submit(Trip(days=9))
    events = walk.services.external_events
    signed = {"operator": "grace", "note": "notiz"}
    for _ in range(2):
        walk.look_at(order)
        walk.read(events.show(order.id, "approval"))
        walk.read(events.show(order.id, "pay"))
        walk.read(events.remind(order.id, "approval", OperatorRequest(**signed)))
        walk.read(events.new_callback_url(order.id, "approval", OperatorRequest(**signed)))
        for days in (1, 90):
            until = walk.environment.now + timedelta(days=days)
            request = ExtendRequest(**signed, until=until)
            walk.read(events.extend_deadline(order.id, "approval", request))
        walk.environment.act(order, "hold")
        walk.look_at(order)
        walk.environment.act(order, "release")
        walk.environment.advance(days=1)
    walk.environment.answer(order, "approval", {"limit": 7})
    walk.environment.advance(minutes=1)
    for answer in ({"answer": {"limit": 8}}, {"answer": {"limit": "x"}}, {"refusal": REFUSAL}):
        walk.read(events.record(order.id, "approval", EventRequest(operator="grace", **answer)))
    walk.look_at(order)
    walk.look_around()
    assert order.state == "Processed"
    assert walk.english() == []


def test_an_answer_that_never_comes():
    walk = Walk()
    order = walk.environment.submit(Trip(days=9))
    walk.environment.advance(days=6)
    walk.look_at(order)
    walk.look_around()
    assert order.outcome == "failed"
    assert walk.english() == []


def test_an_agent_that_is_paused():
    walk = Walk()
    signed = {"operator": "grace", "note": "notiz"}
    now = walk.environment.now
    for until in (
        now + timedelta(hours=2),
        now + timedelta(hours=1),
        now,
        now + timedelta(days=99),
    ):
        walk.read(walk.services.agents.pause("inn", PauseRequest(**signed, until=until)))
    order = walk.environment.submit(Trip(days=1), not_before=now + timedelta(minutes=10))
    walk.look_at(order)
    walk.environment.advance(minutes=70)
    walk.look_at(order)
    walk.look_around()
    for agent in ("inn", "inn", "none"):
        walk.read(walk.services.agents.resume(agent, OperatorRequest(**signed)))
    assert walk.english() == []


def test_messages_that_nobody_can_read():
    walk = Walk()
    submission = walk.world.engine.submission
    order = walk.environment.submit(Trip(days=1))
    wrong = {"schemaVersion": 1, "orderId": order.id, "placedAt": walk.environment.now.isoformat()}
    for number, body in enumerate(
        (
            b"{",
            b"[]",
            b"{}",
            json.dumps(wrong | {"days": 2}).encode(),
            b"\xff",
            json.dumps(wrong | {"days": "x", "replyTo": "x", "workflow": "none"}).encode(),
        )
    ):
        arrival = Arrival(at=walk.environment.now, number=str(number))
        walk.world.run(submission.record(body, arrival, 99))
    walk.environment.advance(minutes=20)
    walk.look_at(order)
    walk.look_around()
    assert walk.english() == []


def test_what_people_are_sent():
    walk = Walk()
    walk.environment.refuse("inn", "pay", REFUSAL)
    for _ in range(3):
        walk.environment.submit(Trip(days=1))
    walk.world.run(walk.world.engine.submission.record(b"{", Arrival(at=walk.environment.now)))
    walk.environment.advance(minutes=5)
    events = {str(number): event for number, event in enumerate(walk.environment.alerts())}
    places = Places(app="https://in.memory", runbook={})
    sent = digests.digest_of("d", walk.environment.now, events, places)
    assert len(sent.entries) == 4
    assert plain_words(subject_of(sent).replace("orders/", "")) == []
    texts = [plain_text(sent), re.sub(r"<[^>]*>", "", html_text(sent))]
    assert [plain_words(ADDRESS.sub("", text)) for text in texts] == [[], []]


def test_every_problem():
    for error in (*ERRORS, ValueError("x")):
        problem = json.loads(
            (problem_of(error) if isinstance(error, AppError) else unexpected()).get_body()
        )
        assert in_english(problem) == []


ADDRESS = re.compile(r"https?://\S*|orders/\S*|submissions/\S*|/api/\w+")
ERRORS = [
    NotSignedInError(),
    NotAllowedError("grace"),
    UnknownLengthError(),
    InvalidCallbackUrlError(),
    TooManyTriesError(),
    UnknownAgentError(),
    UnknownMessageError(),
    OutOfTimeError(),
    UnavailableError("x"),
    ConflictError(),
    UnknownOrderError(),
]


ASCII_WORD = re.compile(r"[A-Za-z]{3,}")


def added_by(draw, answer):
    """Return the plain words that the command line adds to an answer of the API."""
    return set(ASCII_WORD.findall(draw(answer))) - set(ASCII_WORD.findall(json.dumps(answer)))


def test_what_the_command_line_prints_of_an_answer():
    walk = Walk()
    walk.environment.refuse("inn", "pay", REFUSAL)
    order = walk.environment.submit(Trip(days=1))
    waits = walk.environment.submit(Trip(days=9))
    walk.world.run(walk.world.engine.submission.record(b"{", Arrival(at=walk.environment.now)))
    walk.environment.advance(minutes=5)
    services = walk.services
    drawn = {
        formatting.order_text: services.orders.inspect(order.id),
        formatting.explanation_text: services.orders.explain(order.id),
        formatting.question_text: services.external_events.show(waits.id, "approval"),
        formatting.overview_text: services.overview.look(),
        lambda answer: formatting.orders_table(answer["orders"]): services.orders.list(
            OrdersPage()
        ),
        lambda answer: formatting.alerts_table(answer["alerts"]): services.alerts.list(
            AlertsPage()
        ),
        lambda answer: formatting.causes_table(answer["causes"]): services.alerts.causes(),
        lambda answer: formatting.poison_table(answer["messages"]): services.poison.list(
            PoisonPage()
        ),
    }
    for draw, asking in drawn.items():
        walk.read(asking)
        assert added_by(draw, walk.answers[-1]) == set()
