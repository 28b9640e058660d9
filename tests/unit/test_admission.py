"""What one instance believes of agents and waiting orders, and what it claims by that (SCH-11, AGT-10, WRK-2)."""

from functools import partial

import pytest
from builders import NOW, seconds

from core.agenda import NOTHING, AgendaRow
from core.orders import Priority
from scheduler.admission import (
    EQUALLY_LONG,
    FIRST,
    LEAST,
    LONG_WAIT,
    LOOK_INTERVAL,
    PASSED_OVER,
    REMEMBERED,
    TURN_OF_NORMAL,
    Admission,
    Candidate,
    ConcurrencyWindow,
)
from stores.agent_health import AgentHealth

health = partial(AgentHealth, instance="i", at=NOW, waited=0.1, running=0)


class Believing(Admission):
    """An instance with a clock that the test holds, and what the store holds for it to look at."""

    def __init__(self, most=200):
        self.now = NOW
        offers = {"payment": ("first", "second"), "stock": ("third",)}
        super().__init__(offers=offers, clock=lambda: self.now, most=most)

    def look(self, running=(), agent_health=()):
        """See that these orders run, each at the agents that are named behind it."""
        self.now += LOOK_INTERVAL
        assert self.begin_look()
        self.saw(rows(running), agent_health)

    def fill(self, needs="payment"):
        """Take slots until there is no room; return at whom."""
        taken = []
        while (agent := self.room().get(needs)) and len(taken) < 1000:
            self.is_at(f"{needs}-{len(taken)}", [agent])
            taken.append(agent)
        return taken


def rows(running):
    found = (each.partition(" ") for each in running)
    return [AgendaRow(key=f"!running|{name}", order_id=name, data={"Agents": agents}) for name, _, agents in found]


@pytest.fixture
def admission():
    admission = Believing()
    admission.look()
    return admission


# How much may be open


def some(count, first=0):
    return {str(number) for number in range(first, first + count)}


def grown(window, looks, waited=0.1):
    """The limit after each look at an agent that answers at once whatever it is let have."""
    limits, first = [], 0
    for _ in range(looks):
        first += window.limit
        window.adapt(some(window.limit, first), waited)
        limits.append(window.limit)
    return limits


@pytest.mark.proves("AGT-10")
def test_the_limit_grows_while_all_of_it_is_used_and_nobody_waits():
    """Fast, up to the most that is allowed; without load it goes back to the beginning."""
    window = ConcurrencyWindow(most=200)
    assert grown(window, 6) == [FIRST, 2 * FIRST, 2 * FIRST, 4 * FIRST, 4 * FIRST, 200]
    for _ in range(4):
        window.adapt(set(), 0.1)
    assert window.limit == FIRST


@pytest.mark.proves("AGT-10", "WRK-2")
def test_the_limit_does_not_grow_before_what_it_let_in_is_answered():
    """An agent that is slow has waits to tell only once it begins what waits, which then is too late."""
    window = ConcurrencyWindow(most=200)
    open_now = some(FIRST)
    for answered in range(FIRST // 2):
        window.adapt(open_now - some(answered), 0.0)
        assert window.limit == FIRST
    window.adapt(some(FIRST, FIRST), 0.0)
    assert window.limit == 2 * FIRST


@pytest.mark.proves("AGT-10")
def test_the_limit_shrinks_while_requests_wait():
    """Down to a few: without those nobody would notice that the agent has room again."""
    window = ConcurrencyWindow(most=200)
    assert grown(window, 4, LONG_WAIT + 0.01) == [FIRST, 22, 15, 10]
    assert grown(window, 8, LONG_WAIT + 0.01)[-1] == LEAST


@pytest.mark.proves("AGT-10")
def test_the_limit_shrinks_no_further_for_being_little_used():
    """Where scheduler and agent share a machine that is busy for a moment, few claims are no sign of a slow agent."""
    window = ConcurrencyWindow(most=200)
    for first in (0, LEAST):
        window.adapt(some(LEAST, first), LONG_WAIT + 0.01)
    assert window.limit == 22


def test_the_limit_grows_by_what_was_used_between_looks():
    """An agent may have answered all of it when one looks."""
    window = ConcurrencyWindow(most=200)
    window.adapt(set(), 0.1)
    window.peak = FIRST
    window.adapt(set(), 0.1)
    assert window.limit == 2 * FIRST
    window.adapt(set(), 0.1)
    assert window.limit == FIRST


def test_the_limit_stays_as_it_is_while_nobody_knows():
    """Without a word from any agent it does not grow, however much of it is used."""
    assert grown(ConcurrencyWindow(most=200), 3, None) == [FIRST] * 3


def test_an_instance_that_has_just_begun_takes_what_it_finds_open_for_what_may_be():
    """Else the next steps of all those orders would have to wait for it to learn what the others know."""
    window = ConcurrencyWindow(most=200)
    window.adapt(some(150), 0.1)
    assert window.limit == 150


# Which agent has room


@pytest.mark.proves("AGT-10", "WRK-2")
def test_a_step_goes_to_the_first_agent_that_has_room(admission):
    """The preferred one, then the next; then nobody, and orders with other needs are not held up by that."""
    assert admission.fill() == ["first"] * FIRST + ["second"] * FIRST
    assert admission.room() == {"stock": "third"}


@pytest.mark.proves("WRK-2")
def test_before_the_first_look_there_is_no_room():
    """An instance that starts while all that may be is open would claim as much again."""
    admission = Believing()
    assert admission.room() == {}
    admission.look()
    assert admission.room() == {"payment": "first", "stock": "third"}


@pytest.mark.proves("WRK-2", "AGT-10")
def test_what_others_have_open_counts(admission):
    """And each step of an order where it runs."""
    admission.look([*(f"o{number} first third" for number in range(FIRST - 1)), "other second"])
    assert admission.fill() == ["first"] + ["second"] * (FIRST - 1)
    assert admission.fill("stock") == ["third"]


@pytest.mark.proves("WRK-2")
def test_the_next_look_overrules_what_was_believed(admission):
    """Whatever happened to those orders elsewhere; and also that a slot is free."""
    admission.fill()
    admission.look()
    assert len(admission.fill()) == 2 * FIRST
    admission.look(f"o{number} first" for number in range(FIRST))
    admission.is_at("o1", [])
    assert admission.room()["payment"] == "first"
    admission.look(f"o{number} first" for number in range(FIRST))
    assert admission.room()["payment"] == "second"


@pytest.mark.proves("WRK-2")
def test_what_is_done_while_a_look_is_made_counts_beside_it(admission):
    """The look may not have seen it: what was still being written when it began, and what came after that."""
    admission.now += LOOK_INTERVAL
    with admission.at_work("writing"):
        admission.is_at("writing", ["third"])
        admission.begin_look()
        admission.is_at("later", ["third"])
    admission.saw([], [])
    assert len(admission.fill("stock")) == FIRST - 2
    admission.look()
    assert len(admission.fill("stock")) == FIRST


@pytest.mark.proves("WRK-2")
def test_what_is_written_for_long_is_not_forgotten(admission):
    """However many looks are made meanwhile."""
    with admission.at_work("writing"):
        admission.is_at("writing", ["third"])
        for _ in range(3):
            admission.look()
            assert admission._open["third"] == 1
    admission.look()
    assert admission._open["third"] == 0


@pytest.mark.proves("WRK-2")
def test_what_a_look_has_seen_of_an_own_claim_counts_once(admission):
    """Else a second's work would seem to be open twice."""
    with admission.at_work("mine"):
        admission.is_at("mine", ["third"])
        admission.look(["mine third"])
    assert len(admission.fill("stock")) == FIRST - 1


@pytest.mark.proves("FLT-9")
def test_one_looks_once_in_a_while(admission):
    """At most once in the interval; also after the clock was put back."""
    assert not admission.begin_look()
    admission.now += LOOK_INTERVAL
    assert admission.begin_look()
    admission.now -= seconds(3600)
    assert admission.begin_look()


@pytest.mark.proves("AGT-8", "AGT-10", "WRK-1")
def test_while_a_circuit_is_open_steps_go_to_another_agent(admission):
    """Afterwards a few at first, to see whether it works again."""
    admission.close("first", NOW + seconds(5))
    assert admission.room()["payment"] == "second"
    assert admission.is_any_at_work("payment")
    admission.close("second", NOW + seconds(9))
    assert "payment" not in admission.room()
    assert not admission.is_any_at_work("payment")
    assert admission.is_any_at_work(NOTHING)
    admission.now += seconds(6)
    assert admission.fill() == ["first"] * LEAST


@pytest.mark.proves("AGT-8")
def test_a_look_after_a_circuit_has_closed_lets_no_more_through(admission):
    """Only what comes of those few does."""
    admission.look(agent_health=[health(agent="first", open_until=NOW + seconds(5))])
    admission.now += seconds(10)
    admission.look()
    assert admission.fill()[: LEAST + 1] == ["first"] * LEAST + ["second"]


@pytest.mark.proves("AGT-8")
def test_what_ends_while_a_circuit_is_open_lets_no_more_through(admission):
    """It says nothing of how the service works: only what begins afterwards does."""
    opened = health(agent="first", open_until=NOW + seconds(60))
    for look in range(3):
        admission.look([f"o{look}-{number} first" for number in range(LEAST)], [opened])
    admission.now += seconds(60)
    admission.look()
    assert admission.fill()[: LEAST + 1] == ["first"] * LEAST + ["second"]


@pytest.mark.proves("AGT-8")
def test_the_limit_after_a_circuit_has_closed_does_not_grow_by_what_was_used_before():
    """Those few have to be answered first."""
    window = ConcurrencyWindow(most=200)
    window.adapt(some(FIRST), 0.1)
    window.begin_again()
    window.adapt(set(), 0.1)
    assert window.limit == LEAST


@pytest.mark.proves("AGT-8", "AGT-10")
def test_schedulers_follow_what_agents_tell_of_their_circuits(admission):
    """No calls only when no instance makes any: one whose network is broken does not stop the others."""
    opened = partial(health, agent="first", open_until=NOW + seconds(60))
    admission.look(agent_health=[opened(instance="a"), health(agent="first", instance="b")])
    assert admission.room()["payment"] == "first"
    admission.look(agent_health=[opened(instance="a"), opened(instance="b")])
    assert admission.room()["payment"] == "second"
    admission.look(agent_health=[opened(instance="a"), health(agent="first", instance="b")])
    assert admission.room()["payment"] == "first"
    admission.look(agent_health=[opened(instance="a"), opened(instance="b", open_until=admission.now + seconds(9))])
    admission.now += seconds(10)
    assert admission.room()["payment"] == "first"


# Who goes first


def wait(admission, name, priority=Priority.NORMAL, needs="stock", since=NOW):
    admission.hear(candidate(name, priority, needs, since, admission.now))


def candidate(name, priority=Priority.NORMAL, needs="stock", since=NOW, heard_at=NOW):
    return Candidate(order_id=name, priority=priority, needs=needs, since=since, heard_at=heard_at)


def taken(admission, count=1000):
    found = (admission.take() for _ in range(count))
    return [each.order_id for each in found if each]


@pytest.mark.proves("SCH-11")
def test_high_priority_goes_first_and_starves_nobody(admission):
    """Each fifth turn is that of a normal order, however many high ones wait."""
    for number in range(100):
        wait(admission, f"normal-{number}")
        wait(admission, f"high-{number}", Priority.HIGH)
    order = taken(admission, 2 * TURN_OF_NORMAL)
    assert order[:4] == ["high-0", "high-1", "high-2", "high-3"]
    assert [name for name in order if name.startswith("normal")] == ["normal-0", "normal-1"]


@pytest.mark.proves("SCH-11")
def test_what_comes_first_is_taken_first_and_once(admission):
    """Also if it is announced again meanwhile."""
    for name in ("a", "b", "a"):
        wait(admission, name)
    assert taken(admission) == ["a", "b"]


@pytest.mark.proves("SCH-11", "WRK-3")
def test_who_has_waited_longest_is_taken_first_whatever_its_bucket(admission):
    """Of those that have waited equally long, the first that were found: so instances begin with different ones."""
    found = [
        candidate(f"b{bucket:02d}-{age}", since=NOW - age * EQUALLY_LONG) for bucket in (7, 8, 0) for age in (2, 1)
    ]
    admission.found(found, NOW)
    assert taken(admission) == ["b07-2", "b08-2", "b00-2", "b07-1", "b08-1", "b00-1"]


@pytest.mark.proves("WRK-2")
def test_no_more_are_taken_than_there_is_room_for(admission):
    """Each has a slot from then on; orders with other needs, or whose needs nobody knows, are in nobody's way."""
    for number in range(2 * FIRST):
        wait(admission, f"o{number}")
    wait(admission, "unread", needs=NOTHING)
    wait(admission, "pays", needs="payment")
    first = taken(admission)
    assert sorted(first) == sorted([*(f"o{number}" for number in range(FIRST)), "unread", "pays"])
    assert first[-1] == "unread"
    assert "stock" not in admission.room()


@pytest.mark.proves("SUB-6", "WRK-3")
def test_what_a_poll_found_is_all_that_waits_but_for_what_was_heard_of_since(admission):
    """Who is claimed, here or elsewhere, is no candidate any more; a wake-up that came meanwhile is not lost."""
    wait(admission, "gone")
    admission.now += seconds(1)
    began = admission.now
    wait(admission, "woken")
    with admission.at_work("claimed"):
        admission.found([candidate("found"), candidate("claimed")], began)
    assert taken(admission) == ["found", "woken"]


@pytest.mark.proves("WRK-3")
def test_who_was_heard_of_once_is_forgotten_again(admission):
    """An instance that never polls would else try to claim for ever what others have claimed."""
    wait(admission, "old")
    admission.now += REMEMBERED - LOOK_INTERVAL
    wait(admission, "new")
    admission.look()
    assert taken(admission) == ["new"]


@pytest.mark.proves("SCH-1")
def test_an_order_that_was_left_alone_is_tried_again_after_a_while(admission):
    """What was wrong with it may have been mended."""
    admission.pass_over("odd")
    admission.look()
    assert admission.passes_over("odd")
    admission.now += PASSED_OVER
    admission.look()
    assert not admission.passes_over("odd")


@pytest.mark.proves("WRK-2")
def test_an_order_that_is_taken_keeps_the_slots_of_its_steps_that_run(admission):
    """It was given back for one of them, while the other runs on."""
    admission.look(["o third"])
    wait(admission, "o", needs="payment")
    assert admission.take().order_id == "o"
    assert len(admission.fill("stock")) == FIRST - 1
