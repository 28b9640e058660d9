"""Where a step goes, and how much is open at a time (AGT-10, WRK-1, WRK-2)."""

from functools import partial

import pytest
from builders import NOW, ORDER_ID, seconds

from adapters.memory import MemoryAgentMeasures
from agents.circuit import Circuit
from agents.gauge import INTERVAL, Gauge
from core.errors import UnavailableError
from core.measures import Measure, longest_wait
from core.messages import AgentRequest
from scheduler.places import LOOK_INTERVAL, Places
from scheduler.window import FIRST, LEAST, LONG_WAIT, Window


class Clock:
    """Stands still unless moved."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def places(clock):
    return Places(offers={"payment": ("first", "second"), "stock": ("third",)}, clock=clock, most=200)


measure = partial(Measure, instance="i", at=NOW, waited=0.1, running=0)


def fill(places, capability="payment"):
    """Take places until there is no room; return by whom."""
    taken = []
    while agent := places.take(f"{capability}-{len(taken)}", capability):
        taken.append(agent)
    return taken


def test_the_window_grows_while_it_is_full_and_requests_do_not_wait():
    """Fast, up to the most that is allowed; without load it goes back to the beginning."""
    window, sizes = Window(most=200), []
    for _ in range(3):
        window.was_full = True
        window.adapt(0.1)
        sizes.append(window.size)
    assert sizes == [2 * FIRST, 4 * FIRST, 200]
    for _ in range(4):
        window.adapt(0.1)
    assert window.size == FIRST


def test_the_window_shrinks_while_requests_wait():
    """Down to a few: without those nobody would notice that the agent has room again."""
    window = Window(most=200)
    for _ in range(3):
        before = window.size
        window.adapt(LONG_WAIT + 0.01)
        assert LEAST <= window.size < before
    for _ in range(10):
        window.adapt(1.0)
    assert window.size == LEAST


def test_the_window_stays_as_it_is_while_nobody_knows():
    """Without a word from any agent it does not grow, however full it is."""
    window = Window(most=200, was_full=True)
    window.adapt(None)
    assert window.size == FIRST


@pytest.mark.proves("AGT-10", "WRK-2")
def test_a_step_goes_to_the_first_agent_that_has_room(places):
    """The preferred one, then the next; then nobody, and orders with other needs are not held up by that."""
    assert fill(places) == ["first"] * FIRST + ["second"] * FIRST
    assert not places.has_room("payment")
    assert places.take("other", "stock") == "third"


def test_an_order_keeps_its_place_until_it_goes_on(places):
    """Asked for again it is the same one; given up, somebody else gets it."""
    fill(places)
    assert places.take("payment-0", "payment") == "first"
    assert places.release_all_but("payment-0", {"payment"}) is False
    assert places.release_all_but("payment-0", set()) is True
    assert places.take("late", "payment") == "first"


@pytest.mark.proves("AGT-8", "AGT-10", "WRK-1")
def test_while_a_circuit_is_open_steps_go_to_another_agent(places, clock):
    """Also those that had a place at it; afterwards a few at first, to see whether it works again."""
    assert places.take("o", "payment") == "first"
    places.avoid("first", NOW + seconds(5))
    assert places.take("o", "payment") == "second"
    places.avoid("second", NOW + seconds(9))
    assert not places.has_room("payment")
    clock.now += seconds(6)
    assert fill(places) == ["first"] * LEAST


@pytest.mark.proves("AGT-8", "AGT-10")
def test_schedulers_follow_what_agents_tell_of_their_circuits(places):
    """No calls only when no instance makes any: one whose network is broken does not stop the others."""
    opened = partial(measure, agent="first", open_until=NOW + seconds(5))
    places.heed([opened(instance="a"), measure(agent="first", instance="b")], NOW)
    assert places.take("o", "payment") == "first"
    places.heed([opened(instance="a"), opened(instance="b")], NOW)
    assert places.take("o", "payment") == "second"


def test_an_open_circuit_is_believed_until_its_time_is_over():
    """Its instance makes no calls meanwhile, so it publishes nothing; other measures grow old."""
    opened = measure(agent="first", open_until=NOW + seconds(60))
    assert opened.counts(NOW + seconds(59))
    assert not opened.counts(NOW + seconds(61))
    assert not measure(agent="first").counts(NOW + seconds(1))


def test_orders_that_went_on_elsewhere_give_up_their_places(places, clock):
    """Those that no longer run; one that came in after the question was asked stays."""
    for name in ("gone", "runs"):
        places.take(name, "stock")
    clock.now += seconds(0.1)
    asked_at = clock.now
    places.take("late", "stock")
    places.keep_only({"runs"}, asked_at)
    assert len(fill(places, "stock")) == FIRST - 2


def test_agents_and_orders_are_looked_at_once_in_a_while(places, clock):
    """At most once in the interval."""
    assert places.look_is_due()
    assert not places.look_is_due()
    clock.now += LOOK_INTERVAL
    assert places.look_is_due()


def request(issued_at=NOW, allowance=10):
    return AgentRequest(
        order_id=ORDER_ID,
        step="payment",
        attempt=1,
        idempotency_key="k",
        issued_at=issued_at,
        complete_by=NOW + seconds(allowance),
        order={},
    )


@pytest.mark.parametrize(("after", "share"), [(-1, 0.0), (0, 0.0), (5, 0.5), (10, 1.0), (60, 1.0)], ids=str)
def test_what_a_request_has_waited_is_a_share_of_its_time(after, share):
    """From when it was issued to its complete-by time; clocks that differ make no nonsense."""
    assert request().waited(NOW + seconds(after)) == share
    assert request(issued_at=None).waited(NOW + seconds(after)) == 0.0


def gauge_of(clock, measures):
    circuit = Circuit(orders=10, open_for=seconds(30), clock=clock)
    return Gauge(agent="payment", instance="a1", circuit=circuit, measures=measures, clock=clock)


@pytest.mark.proves("AGT-10")
async def test_an_agent_publishes_its_longest_wait_once_a_second(clock):
    """What it published lately is what schedulers go by; the wait of a while ago is forgotten."""
    measures = MemoryAgentMeasures()
    gauge = gauge_of(clock, measures)
    await gauge.arrived(request())
    clock.now += INTERVAL / 2
    with gauge.at_work():
        await gauge.arrived(request(issued_at=NOW - seconds(10)))
        assert longest_wait(await measures.since(NOW)) == 0.0
        clock.now += INTERVAL / 2
        await gauge.arrived(request(issued_at=clock.now))
    (published,) = await measures.since(clock.now)
    assert published.waited > 0.5
    assert published.running == 1
    clock.now += INTERVAL
    await gauge.arrived(request(issued_at=clock.now))
    assert longest_wait(await measures.since(clock.now)) == 0.0


async def test_a_measure_that_cannot_be_published_stops_no_request(clock):
    """The store is away: the agent goes on."""

    class Away:
        async def publish(self, measure):
            raise UnavailableError

    await gauge_of(clock, Away()).arrived(request())
