"""What a type checker has to find: each line that ends with a mark is wrong, and no other one."""

from datetime import timedelta
from pathlib import Path

from engine.pages.triggers import BusinessPage
from engine.workflow import (
    Agent,
    ApiKey,
    Call,
    Model,
    Money,
    NonRetryable,
    Operation,
    OrderEndpoint,
    Retryable,
    Workflow,
    application,
)
from functions_alone.ports import Ports
from functions_alone.stack import Stack, StackConfig
from testkit import Seen, WorkflowTestEnvironment
from testkit.receiver import Receiver


class Stay(Model):
    nights: int


class Wish(Model):
    nights: int


class Room(Model):
    number: str


class Hotel(Agent):
    book = Operation(Wish, Room)
    clean = Operation(str)  # wrong


hotel = Hotel("hotel")
slow = Hotel("slow", keys_last=30)  # wrong
shown = Hotel("shown", auth=ApiKey(header="X-Key"))  # wrong
stays = Workflow("stay", Stay, endpoint=OrderEndpoint(open="yes"))  # wrong
late = Workflow("late", Stay, within=14)  # wrong


@stays.step(hotel.book, timeout=30)  # wrong
def a_rule_of_another_type(stay: Stay) -> Wish:
    return Wish(nights=stay.nights)


@stays.step(hotel.book)  # wrong
def another_request(stay: Stay) -> Room:
    return Room(number="1")


@stays.step(hotel.bok)  # wrong
def an_operation_that_no_agent_has(stay: Stay) -> Wish:
    return Wish(nights=stay.days)  # wrong


@hotel.activity(Hotel.book)  # wrong
def another_answer(call: Call, wish: Wish) -> Wish:
    return wish


def raised(again: bool) -> Exception:
    if again:
        return Retryable(5)  # wrong
    return NonRetryable(reason=404)  # wrong


APP = application(stays, agents=[Hotel])  # wrong
PRICE = Money.of(14.0, "EUR")  # wrong
PAGE = BusinessPage(path="stay", title="Stay", folder="hotel/page")  # wrong


def some_state(seen: Seen) -> bool:
    return seen.state == "Error"


def test_a_stay(app: Path) -> None:
    environment = WorkflowTestEnvironment(stays)  # wrong
    order = environment.submit("a stay")  # wrong
    steps: list[str] = order.steps  # wrong
    environment.advance(time=timedelta(days=1))  # wrong
    environment.explore(invariant=some_state, instances=3)  # wrong
    Receiver(app=steps, store=None)  # wrong
    Stack(StackConfig(ports=Ports(http_port="7071"), data=app, app=app, queues={}))  # wrong
