"""Orders whose ready steps need several agents: each step waits for its own agent alone."""

from datetime import timedelta

import pytest

from engine.decisions.transitions import HistoryEntry
from engine.workflow import UNDO, Agent, Model, Operation, Text, Workflow, application
from operations.api.requests import BulkRequest, OrdersPage, PauseRequest
from testkit import WorkflowTestEnvironment
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, orders, seconds, some, steps, transition


class Content(Model):
    item: Text


class Ref(Model):
    reference: str | None = None


class Carrier(Agent):
    book = Operation(Content, Ref)
    unbook = Operation(Content)


class Bank(Agent):
    charge = Operation(Content, Ref)
    refund = Operation(Content)


class Post(Agent):
    tell = Operation(Content)


carrier, bank, post = Carrier("carrier"), Bank("bank"), Post("post")
flow = Workflow("sale", Content)


@flow.step(carrier.book, undo=carrier.unbook, on_failure=UNDO)
def book(content: Content) -> Content:
    return content


@flow.step(bank.charge, undo=bank.refund, on_failure=UNDO)
def charge(content: Content) -> Content:
    return content


@flow.step(post.tell, after=[book, charge], on_failure=UNDO)
def tell(content: Content) -> Content:
    return content


SALE = application(flow, agents=[carrier, bank, post], sample=Content(item="x"))
AWAY = timedelta(minutes=2)


def hold(environment, agent):
    """Let an agent have no capacity for a while."""
    request = PauseRequest(operator="grace", note="maintenance", until=environment.now + AWAY)
    environment._world.run(environment._world.operations.services.agents.pause(agent, request))
    environment.advance(seconds=2)


@pytest.mark.proves("SCH-10", "AGT-8")
@pytest.mark.parametrize(("away", "done"), [("carrier", "charge"), ("bank", "book")])
def test_a_step_starts_though_the_agent_of_another_has_no_capacity(away, done):
    """Whichever of them the workflow names first (engine 7); the other one starts once it can."""
    environment = WorkflowTestEnvironment(SALE)
    hold(environment, away)
    order = environment.submit(Content(item="x"))
    environment.advance(seconds=10)
    waits = ({"book", "charge"} - {done}).pop()
    assert (order.steps[done], order.steps[waits]) == ("Completed", "NotStarted")
    environment.advance(minutes=2)
    assert order.state == "Processed"


@pytest.mark.proves("UND-1", "AGT-8")
def test_a_step_is_undone_though_the_agent_of_another_has_no_capacity():
    """The money goes back while the carrier is away (engine 7)."""
    environment = WorkflowTestEnvironment(SALE)
    environment.hang("post")
    order = environment.submit(Content(item="x"))
    hold(environment, "carrier")
    environment.heal("post")
    environment.refuse("post")
    environment.advance(seconds=60)
    assert environment.effects("bank", order) == ["charge", "refund"]
    assert order.steps["book"] == "Undoing"
    environment.advance(minutes=2)
    assert (order.state, order.outcome) == ("Error", "undone")


TWO = [steps.new("payment"), steps.new("shipping", capability="shipping")]


async def shown(*found):
    """The operators' side of a store with these orders."""
    made = app(in_memory(clock=lambda: NOW))
    entry = HistoryEntry(at=NOW - seconds(60), actor="t", events=some("noted"))
    for order in found:
        await made.engine.store.commit(transition(None, order, entry))
    return made


def two(number=1):
    return orders.pending(steps=TWO, order_id=f"b00-{number:026}")


@pytest.mark.proves("SCH-10")
async def test_an_order_waits_in_the_lane_of_every_agent_that_it_needs():
    """And in no other; its first row alone names its list."""
    made = await shown(two())
    rows = await made.engine.store.work_items("b00", "!", "~", 10)
    lanes = {row.key.split("|")[2]: row.data.get("List") for row in rows}
    assert lanes == {"payment": "Pending", "shipping": None}


@pytest.mark.proves("OPR-1")
async def test_an_order_in_several_lanes_is_listed_and_counted_once():
    """In the list page by page, in the overview, and where the live page draws it."""
    made = await shown(two(1), two(2))
    listed, continuation = [], None
    while True:
        page = OrdersPage(state="Pending", limit=1, continuation=continuation)
        found = await made.operations.orders.list(page)
        listed += [order.order_id for order in found.orders]
        if (continuation := found.continuation) is None:
            break
    assert sorted(listed) == [two(1).order_id, two(2).order_id]
    overview = await made.operations.services.overview.look()
    assert overview.open_orders["Pending"].count == 2
    live = await made.operations.services.live.look()
    assert sum(group.count for group in live.groups) == len(live.orders) == 2


async def acted_on(made, action, *, dry_run):
    """The orders that match, and those on which the action was done, over all pages of one row."""
    matching, done, continuation = [], [], None
    while True:
        request = BulkRequest(
            action=action,
            operator="grace",
            note="look",
            dry_run=dry_run,
            until=NOW - seconds(30),
            limit=1,
            continuation=continuation,
            where={},
        )
        page = await made.operations.services.bulk.run(request)
        matching += [order.order_id for order in page.matching]
        done += page.done
        if (continuation := page.continuation) is None:
            return matching, done


@pytest.mark.proves("OPR-3")
@pytest.mark.parametrize("action", ["hold", "expedite"])
async def test_a_bulk_action_finds_an_order_in_several_lanes_once(action):
    """A dry run says the number of orders, and the action is done once to each."""
    beside = [
        steps.running(steps.new("stock", capability="stock"), complete_by=NOW + seconds(60)),
        *TWO,
    ]
    at_work = orders.processing(steps=beside, order_id=f"b00-{2:026}")
    made = await shown(two(), at_work)
    both = sorted([two().order_id, at_work.order_id])
    matching, _ = await acted_on(made, action, dry_run=True)
    assert sorted(matching) == both
    _, done = await acted_on(made, action, dry_run=False)
    assert sorted(done) == both
    for order_id in both:
        assert len(await made.engine.store.history(order_id)) == 2
