"""Orders that messages carry along: they save reads, and can do no harm when they are stale."""

from dataclasses import replace

from builders import NOW, ORDER_ID, answer, answer_to, claimed, new_order, scheduler

from adapters.memory import in_memory
from core.carried import MOST_CHARACTERS, pack, unpack
from core.changes import Change, HistoryEntry
from core.messages import AgentRequest, decode
from core.orders import StepState
from core.transitions import Transitions

PUT_BACK = answer(outcome="notTried", reason="busy", retry_after=0)


class CountingLoads:
    """A store that counts how often it is read."""

    def __init__(self, store):
        self._store = store
        self.loads = 0

    async def load(self, order_id):
        self.loads += 1
        return await self._store.load(order_id)

    def __getattr__(self, name):
        return getattr(self._store, name)


async def recorded():
    parts = in_memory(clock=lambda: NOW)
    store = CountingLoads(parts.store)
    transitions = Transitions(store, parts.bus, parts.clock, parts.new_id)
    await transitions.carry_out(
        Change(before=None, after=new_order(), entry=HistoryEntry(at=NOW, actor="t", event="submitted"))
    )
    return parts, store, transitions


def test_an_order_comes_back_as_it_was_packed():
    """Times, durations, enumerations, results with nulls in them, ETags: all of it, but who the customer is."""
    order = replace(claimed(), etags={"row": "W/\"datetime'2026'\""})
    order = order.with_steps(
        replace(order.steps[0], state=StepState.COMPLETED, result={"a": None, "b": [1.5, {"c": "ä"}]})
    )
    assert unpack(pack(order)) == anonymous(order)
    assert "Ada" not in pack(order)


def anonymous(order):
    return replace(order, order=order.order.without_customer())


def test_an_order_whose_etags_match_anything_is_not_believed():
    """Whoever may send messages could else overwrite what stands in the store."""
    for etag in ("*", 'W/"1"\r\nX-Other: 1', ""):
        assert unpack(pack(replace(claimed(), etags={"row": etag}))) is None


def test_what_cannot_be_understood_is_left_unread():
    """Nothing, nonsense, and the form of a later version are all no order; a field more is no harm."""
    packed = pack(claimed())
    for text in (None, "", "{", "[]", '{"schema":1}', packed.replace('"schema":1', '"schema":2')):
        assert unpack(text) is None
    assert unpack(packed.replace('"schema":1', '"schema":1,"later":true')) == anonymous(claimed())


def test_a_large_order_is_not_carried():
    """Its receiver reads it instead."""
    order = claimed()
    step = replace(order.steps[0], result={"text": "x" * MOST_CHARACTERS})
    assert pack(order.with_steps(step)) is None


async def test_an_order_is_claimed_and_completed_without_a_read():
    """The wake-up carries the order to the claim, the request to the agent, and the reply back again."""
    parts, store, transitions = await recorded()
    order = await parts.store.load(ORDER_ID)
    await transitions.apply(ORDER_ID, scheduler.claim, order)
    (request,) = parts.bus.sent
    carried = unpack(decode(AgentRequest, request.body).carried)
    assert carried == anonymous(await parts.store.load(ORDER_ID))
    reply = answer_to(decode(AgentRequest, request.body))
    await transitions.apply(ORDER_ID, lambda order, now: scheduler.receive(order, reply, now), carried)
    assert (await parts.store.load(ORDER_ID)).state.process_state == "Processed"
    assert store.loads == 0
    assert (await parts.store.load(ORDER_ID)).order == order.order  # the customer is still known


async def test_a_stale_order_costs_a_read_and_nothing_else():
    """What has moved on since is decided anew; a stale order that says "nothing to do" is not believed."""
    parts, store, transitions = await recorded()
    fresh = await parts.store.load(ORDER_ID)
    await transitions.apply(ORDER_ID, scheduler.claim, fresh)
    assert await transitions.apply(ORDER_ID, scheduler.claim, fresh) is None  # conflicts, then finds it claimed
    assert store.loads == 1
    stale_claim = await parts.store.load(ORDER_ID)
    await parts.store.commit(scheduler.receive(stale_claim, PUT_BACK, NOW, {}))
    assert isinstance(await transitions.apply(ORDER_ID, scheduler.claim, stale_claim), Change)
    assert store.loads == 2


async def test_the_order_of_another_message_is_not_used():
    """A carried order of another id is passed over."""
    _, store, transitions = await recorded()
    other = replace(new_order(), order=replace(new_order().order, order_id="b03-01JCX4T9Q8ZK7M2N5P6R3S1V0X"))
    assert isinstance(await transitions.apply(ORDER_ID, scheduler.claim, other), Change)
    assert store.loads == 1
