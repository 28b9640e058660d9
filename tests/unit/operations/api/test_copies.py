"""A copy of all orders, and what becomes of it in an empty store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.declarations.business import AgentDefinition
from engine.domain import work_index
from engine.domain.causes import Code
from engine.domain.effects import InDoubt
from engine.domain.errors import InvalidError, RefusedError
from engine.domain.keys import history_key, state_key
from engine.domain.messages import AgentRequest, OrderReady, decode
from engine.domain.orders import OrderAggregate
from engine.domain.states import UndoPending
from engine.domain.statuses import Direction, Outcome, ProcessState
from engine.storage.copies import PAGE, Copies, as_json, from_json
from engine.storage.poison import Arrival
from engine.storage.submission_keys import Binding
from engine.storage.tables import Insert
from engine.words.history import in_words
from operations.api.copies import Copied, restored
from operations.api.requests import ExportRequest, OperatorRequest, RestoreRequest
from operations.api.retention import erase
from tests.support.acting import act, cancel, is_refused
from tests.support.builders import (
    NOW,
    ORDER_ID,
    TIMEOUT,
    WORKFLOWS,
    answer,
    index_rows,
    orders,
    refusal,
    scheduler,
    steps,
)
from tests.support.memory_world import World
from tests.support.outbox import pending_events

GRACE = {"operator": "grace", "note": "the account is gone"}
REQUEST = OperatorRequest(**GRACE)
COPY, OTHER = "a" * 32, "b" * 32
DAY = timedelta(hours=24)
KEY = f"{ORDER_ID}:payment"
BOUND = Binding(order_id=ORDER_ID, fingerprint="f", offer={"TEA-SENCHA": "14.00"})
BANK = AgentDefinition(name="payment", offers="payment", address="p", provider="psp", keys_last=DAY)
FORGETS = replace(scheduler, agents={"payment": BANK})
LATER = NOW + timedelta(hours=1)
TOLERANCE = timedelta(seconds=2)
ORDERS = WORKFLOWS.all[0].name


async def copied(world):
    """All lines of a copy."""
    lines, continuation = [], None
    while True:
        request = ExportRequest(**GRACE, continuation=continuation)
        page = await world.app.operations.services.copies.export(request)
        lines += page.lines
        continuation = page.continuation
        if continuation is None:
            return lines


async def restore(world, lines, copy=COPY):
    return await world.app.operations.services.copies.restore(
        copy, RestoreRequest(**GRACE, lines=lines)
    )


async def claimed(world):
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    return await world.order()


def keys_of(order):
    """The keys of the order's rows in the work index."""
    return {item.key for item in order.derived.work_items}


def key_in(change):
    """The idempotency key of the one request of a change."""
    (message,) = change.messages
    return decode(AgentRequest, message.body).idempotency_key


def later():
    """Another world, an hour later, with an empty store."""
    world = World()
    world.now = LATER
    return world


@pytest.mark.proves("OPR-11")
async def test_an_order_comes_back_with_its_history_and_work_items_of_its_own():
    """In the state in which it was copied; the history says when that was, and who restored it."""
    world = World()
    await world.submitted(workflow=ORDERS)
    before = await claimed(world)
    there = later()
    answer = await restore(there, await copied(world))
    assert (answer.restored, answer.present, answer.refused) == (1, 0, [])
    order = await there.order()
    assert order.submitted == before.submitted
    assert order == orders.having(before, version=before.version + 1, steps=order.steps)
    assert [step.state for step in order.steps] == [step.state for step in before.steps]
    history = await there.store.history(ORDER_ID)
    assert history[:-1] == await world.store.history(ORDER_ID)
    assert (history[-1].event, history[-1].actor) == ("restored", "operator/grace")
    assert (
        in_words(history[-1].events)
        == "from a copy of 2026-01-31 08:15:00 UTC: the account is gone"
    )
    rows = await there.store.work_items("b03", *work_index.everything(), 100)
    assert {row.key for row in rows} == set(index_rows(order)) == keys_of(order)
    assert there.parts.bus.sent == []


@pytest.mark.proves("OPR-11")
async def test_a_restored_order_goes_on_to_its_end():
    """The sweep gives back what was running, and the poll claims it."""
    world = World()
    await world.submitted()
    await claimed(world)
    there = later()
    await restore(there, await copied(world))
    await there.supervisor.sweep()
    assert (await there.order()).process_state is ProcessState.PENDING
    there.now += timedelta(seconds=30)
    await there.scheduler.poll()
    payment = (await there.order()).step("payment")
    reply = answer(attempt=payment.counts.attempts, complete_by=payment.complete_by)
    await there.scheduler.receive(reply, "payment")
    assert (await there.order()).process_state is ProcessState.PROCESSED


async def test_customers_keys_alerts_and_unreadable_messages_come_back():
    """A customer who sends an order again after the restoring makes no second one."""
    world = World()
    await world.app.engine.submission_keys.claim("a key", BOUND)
    await world.poison_store.put("order-submissions", b"{", refusal("no JSON"), Arrival(at=NOW))
    there = later()
    await restore(there, await copied(world))
    other = replace(BOUND, order_id="b03-another")
    assert await there.app.engine.submission_keys.claim("a key", other) == BOUND
    [message] = await there.poison_store.page("order-submissions", 10)
    assert (message.body, message.at) == (b"{", NOW)


@pytest.mark.proves("OPR-11")
async def test_only_an_empty_store_takes_a_copy():
    """Neither orders nor customers' keys may be there; the orders that are stay as they are."""
    world = World()
    before = await world.submitted()
    lines = await copied(world)
    with is_refused(Code.STORE_NOT_EMPTY):
        await restore(world, lines)
    assert await world.order() == before
    keyed = later()
    await keyed.app.engine.submission_keys.claim("a key", BOUND)
    with is_refused(Code.STORE_NOT_EMPTY):
        await restore(keyed, lines)


@pytest.mark.proves("OPR-11")
async def test_a_restoring_that_was_cut_short_goes_on_and_ends_once():
    """With the same copy; what is there stays as it is, and after its end the store takes none."""
    world = World()
    await world.submitted()
    lines = await copied(world)
    there = later()
    await restore(there, lines)
    order = await there.order()
    with is_refused(Code.OTHER_COPY_RESTORED):
        await restore(there, lines, OTHER)
    answer = await restore(there, lines)
    assert (answer.restored, answer.present) == (0, 1)
    assert await there.order() == order
    with pytest.raises(RefusedError):
        await there.app.operations.services.copies.end(OTHER, REQUEST)
    await there.app.operations.services.copies.end(COPY, REQUEST)
    await there.app.operations.services.copies.end(COPY, REQUEST)
    with is_refused(Code.STORE_NOT_EMPTY):
        await restore(there, lines)


@pytest.mark.proves("OPR-11")
async def test_a_history_that_was_cut_off_from_its_order_is_completed():
    """A process died between the two."""
    world = World()
    await world.submitted()
    [line] = await copied(world)
    there = later()
    history = line.model_copy(update={"rows": line.rows[:1]})
    assert (await restore(there, [history])).restored == 0
    assert await there.order() is None
    await restore(there, [line])
    assert len(await there.store.history(ORDER_ID)) == 2


class Overtaken:
    """A table in which a change comes between the rows of one query, once."""

    def __init__(self, table, change):
        self.table, self.change = table, change

    async def rows(self, *query):
        before = await self.table.rows(*query)
        if not self.change:
            return before
        await self.change.pop()()
        after = {row.key: row for row in await self.table.rows(*query)}
        return [after[row.key] for row in before]


@pytest.mark.proves("OPR-11")
async def test_an_order_is_read_again_if_a_change_came_between_its_rows():
    """Its state would be newer than its history."""
    world = World()
    await world.submitted()
    table = Overtaken(world.parts.table("orders"), [lambda: claimed(world)])
    copies = Copies({"orders": table}, {"orders": ["b03"]}, lambda: world.now)
    [line], _ = await copies.page("")
    version = line.rows[state_key(ORDER_ID)]["Version"]
    assert version == 2
    assert history_key(ORDER_ID, version) in line.rows


async def test_pages_hold_whole_orders():
    """Also one that has more rows than a page, and those behind it."""
    world = World()
    table = world.parts.table("orders")
    ids = [f"b03-01JCX4T9Q8ZK7M2N5P6R3S1V{number:02d}" for number in range(3)]
    sizes = dict(zip(ids, (PAGE // 2, PAGE + 5, PAGE // 2 + 1), strict=True))
    for order_id, size in sizes.items():
        await table.submit("b03", [Insert(history_key(order_id, n), {}) for n in range(size)])
    found = {line.order: len(line.rows) for line in await copied(world)}
    assert found == sizes


async def test_a_place_that_no_page_named_is_refused():
    """Whatever it is."""
    for place in ("orders", "orders|b99|x", "simulator|b00|"):
        with pytest.raises(InvalidError):
            await World().app.operations.services.copies.export(
                ExportRequest(**GRACE, continuation=place)
            )


def again(order, at=NOW, agents=(BANK,), now=LATER) -> OrderAggregate:
    """The order as it is restored."""
    copy = Copied(at=at, agents=agents, clock_tolerance=TOLERANCE)
    return restored(order, REQUEST, copy, now).after


def in_doubt(step, *agents):
    """The step of an order that is restored where these agents are."""
    return again(orders.new(steps=[step]), agents=agents).step(step.name)


@pytest.mark.proves("OPR-11", "AGT-3")
def test_a_step_that_was_not_done_is_requested_with_the_same_key():
    """While its service knows the key: whether it was asked since, nobody knows."""
    assert key_in(FORGETS.claim(again(orders.new()), NOW + DAY - 2 * TIMEOUT)) == KEY


@pytest.mark.proves("OPR-11", "AGT-12")
def test_a_step_whose_key_may_be_forgotten_since_the_copy_goes_to_an_operator():
    """Also one that was never tried when it was copied."""
    ended = FORGETS.claim(again(orders.new()), NOW + DAY).after
    assert (ended.process_state, ended.outcome) == (ProcessState.ERROR, Outcome.FAILED)
    assert ended.cause.code == Code.KEY_FORGOTTEN
    assert ended.step("payment").state.operator_decides


@pytest.mark.proves("OPR-11", "AGT-12")
def test_an_attempt_that_ran_when_it_was_copied_keeps_the_time_of_its_key():
    """It began before the copy."""
    running = FORGETS.claim(orders.new(), NOW).after
    step = again(running, at=LATER).step("payment")
    assert step.counts.attempts == 1
    assert (step.effect.unanswered, step.key.known_until) == (True, NOW + DAY)


@pytest.mark.proves("OPR-11", "UND-2")
def test_a_restored_step_is_undone_once_no_request_since_the_copy_can_take_effect():
    """The last one may have been sent just before the order was restored."""
    window = timedelta(minutes=5)
    waiting = steps.with_rules(orders.new().step("payment"), late_effect_window=window)
    back = cancel(again(orders.new([waiting])), REQUEST, LATER).after
    assert back.step("payment").not_before == LATER + TIMEOUT + TOLERANCE + window


@pytest.mark.proves("OPR-11", "AGT-10")
def test_of_several_providers_nobody_knows_which_was_called():
    """One of them may have done it, under a key that the other does not know."""
    other = replace(BANK, name="giro", provider="giro", keys_last=None)
    waiting = orders.new().step("payment")
    assert in_doubt(waiting, BANK, other).key.known_until == NOW
    tried = steps.with_key(waiting, agent="giro")
    assert in_doubt(tried, BANK, other).key.known_until is None
    alike = [replace(account, provider="psp") for account in (BANK, other)]
    assert in_doubt(waiting, *alike).key.known_until == NOW + DAY


@pytest.mark.proves("OPR-11", "AGT-3")
def test_a_restored_step_goes_to_the_only_provider_that_may_have_done_it():
    """Also one that was never tried, and one whose agent has another name by now (engine 1)."""
    till = replace(BANK, name="till")
    waiting = orders.new().step("payment")
    tried = steps.with_key(waiting, agent="gone", provider="psp")
    rules = replace(FORGETS, providers={"till": "psp"}, agents={"till": till})
    for step in (waiting, tried):
        restored = in_doubt(step, till)
        assert (restored.key.provider, restored.key.known_until) == ("psp", NOW + DAY)
        claimed = rules.claim(orders.new(steps=[restored]), NOW, {"payment": ("till",)})
        assert claimed.after.step("payment").agent == "till"


@pytest.mark.proves("OPR-11", "UND-2")
def test_what_may_have_been_tried_since_is_undone_with_the_order():
    """Its service is asked to undo what it may have done."""
    order = again(orders.new())
    cancelled = act("cancel", order, OperatorRequest(**GRACE), LATER).after
    step = cancelled.step("payment")
    assert isinstance(step.state, UndoPending)
    assert isinstance(step.effect, InDoubt)


@pytest.mark.parametrize("state", [steps.failed, steps.skipped_by_operator, steps.undone])
def test_what_is_settled_for_good_stays_as_it_is(state):
    """No process touches it by itself."""
    step = state("payment")
    assert in_doubt(step, BANK) == step


def test_an_order_that_has_ended_stays_as_it_is():
    """Its age counts from its end, for retention and in the lists."""
    over = orders.processed()
    assert again(over).steps == over.steps
    assert again(over).updated_at == over.updated_at


async def test_a_line_that_is_no_order_of_this_store_is_refused_and_stops_no_other():
    """Each with its reason; nothing of it is written but history."""
    world = World()
    await world.submitted()
    [line] = await copied(world)
    order, state = line.rows[1:]

    def changed(**update):
        return line.model_copy(update=update)

    lines = {
        "another bucket": changed(partition="b04"),
        "no partition b77": changed(partition="b77"),
        "must name its order": changed(order=None),
        "belongs to another order": changed(rows=[{"RowKey": "!pending|1|x"}]),
        "has no key": changed(rows=[{"Version": 1}]),
        "Version: not a valid value": changed(rows=[{**state, "Version": 2**40}]),
        "Rate: not a valid value": changed(rows=[{**order, "Rate": float("nan")}]),
        "At: not a valid time": changed(rows=[{**order, "At": {"time": "soon"}}]),
        "is missing": changed(rows=[order]),
        "cannot be read": changed(rows=[order, {**state, "Steps": "{"}]),
        "its rows have different": changed(
            rows=[{**row, "OrderID": "b03-01JCX4T9Q8ZK7M2N5P6R3S1V9Z"} for row in (order, state)]
        ),
        "have different ids": changed(
            rows=[order, {**state, "OrderID": "b03-01JCX4T9Q8ZK7M2N5P6R3S1V9Z"}]
        ),
        "no partition none": changed(table="alerts", partition="none", order=None),
    }
    there = later()
    answer = await restore(there, [*lines.values(), line])
    assert answer.restored == 1
    assert len(answer.refused) == len(lines)
    for why, line in zip(lines, answer.refused, strict=True):
        assert why in line.why


async def test_a_copy_has_a_name_of_its_own():
    """Anything else is refused before the store is looked at."""
    with pytest.raises(InvalidError):
        await restore(World(), [], "..")


def test_times_and_texts_come_back_as_they_were():
    """A text that looks like a time stays a text; a column that is not known is carried along."""
    rows = {"k": {"At": NOW, "Text": NOW.isoformat(), "Count": 3, "Rate": 0.5, "Off": False}}
    assert from_json(as_json(rows)) == rows


async def test_columns_of_a_newer_version_are_carried_along():
    """A copy may come from a newer version, and be restored by an older one (FLT-12)."""
    world = World()
    await world.submitted()
    [line] = await copied(world)
    order, state = line.rows[1:]
    newer = line.model_copy(update={"rows": [line.rows[0], order, {**state, "Colour": "green"}]})
    there = later()
    await restore(there, [newer])
    rows = await there.parts.table("orders").rows("b03", state_key(ORDER_ID), "b03-~")
    assert rows[0].row["Colour"] == "green"


async def test_what_was_erased_before_the_copy_stays_erased_and_findable():
    """The rows of the business's keys follow from the order."""
    world = World()
    await world.submitted()
    await world.unit_of_work.run(
        ORDER_ID, lambda order, now: erase(order, REQUEST, world.terms.payload, now)
    )
    there = later()
    await restore(there, await copied(world))
    assert (await there.order()).submitted == (await world.order()).submitted


def test_an_order_that_waited_for_its_undo_goes_on_with_it():
    """The direction stays; a completed step that is undone later counts as in doubt too."""
    order = orders.undoing(steps=[steps.completed()])
    after = again(order)
    assert after.direction is Direction.UNDO
    assert after.step("payment").key.known_until == NOW + DAY


async def test_nothing_is_sent_by_a_restoring():
    """No alert, since the operator who restores knows; and nothing begins before the poll."""
    world = World()
    await world.submitted()
    there = later()
    await restore(there, await copied(world))
    assert await pending_events(there.store, "b03") == []
    assert there.parts.bus.sent == []


async def test_an_order_whose_chosen_time_is_over_by_now_may_begin():
    """Its row in the work index is another one than when it was copied."""
    world = World()
    await world.submitted(extra=',"notBefore":"2026-01-31T08:30:00Z"')
    there = later()
    assert (await restore(there, await copied(world))).restored == 1
    order = await there.order()
    assert order.derived.not_before is None
    rows = await there.store.work_items("b03", *work_index.everything(), 100)
    assert {row.key for row in rows} == keys_of(order) == set(index_rows(order))


async def test_the_log_names_who_copied_and_who_restored(caplog):
    """A copy once, however many pages it has."""
    caplog.set_level("INFO", "operations.api.copies")
    world = World()
    await restore(later(), await copied(world))
    await world.app.operations.services.copies.export(
        ExportRequest(**GRACE, continuation="orders|b01|")
    )
    named = [(line.message, line.operator) for line in caplog.records]
    assert named == [("operators.exported", "grace"), ("operators.restored", "grace")]
