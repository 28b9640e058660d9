"""What one process believes of agents and waiting orders, and what it claims by that."""

from dataclasses import replace
from functools import partial

import pytest

from engine.domain.attempts import NotAttemptedReason
from engine.domain.submitted_order import Priority
from engine.domain.work_index import NO_AGENT, IndexRow
from engine.storage.agent_health import (
    FRESH,
    PROBE_REQUESTS,
    SILENCE,
    AgentHealth,
    AgentHealthLog,
    closed_until,
    unresponsive_since,
)
from scheduler.admission.adaptive import AdaptiveLimit
from scheduler.admission.admission import FAILED_CLAIM_PAUSE, REFRESH_INTERVAL, Admission
from scheduler.admission.claim_queue import ANNOUNCED_FOR, Candidate, ClaimQueue
from scheduler.admission.health import health_from_reply
from scheduler.admission.open_requests import OpenRequests
from scheduler.admission.policy import Capacity, FixedLimit
from testkit.memory import of_columns
from tests.support.builders import MAX_SILENCE, NOW, answer, seconds
from tests.support.scheduling import FIRST

ADAPTIVE = AdaptiveLimit()
MOST = 200
CAPACITY = Capacity(most=MOST, first=FIRST, allowance=seconds(10))
health = partial(AgentHealth, agent="first", instance="a", at=NOW)
opened = partial(health, open_until=NOW + seconds(60))
PROBED = {"at": NOW - seconds(15), "unresponsive_since": NOW - seconds(45)}
"""The record of a silent agent that may get the next requests now."""


def limit(reports, capacity=CAPACITY, policy=ADAPTIVE):
    """Fill the agent; return how many requests it has then."""
    admission = Admission(
        offers={"payment": ("first",)},
        capacity={"first": capacity},
        policy=policy,
        max_silence=MAX_SILENCE,
        clock=lambda: NOW,
    )
    admission.begin_refresh()
    admission.refresh([], [], reports)
    while admission.capacity_for():
        number = admission.open_requests.at("first")
        admission.open_requests.set_agents(f"o{number}", ["first"])
    return admission.open_requests.at("first")


# How much may be open


@pytest.mark.proves("AGT-10", "WRK-2", "AGT-8", "WRK-1")
@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([], FIRST, id="nothing: it has had nothing to do, or nobody works there"),
        pytest.param([health()], PROBE_REQUESTS, id="it has just begun"),
        pytest.param(
            [health(rate=6.0)], PROBE_REQUESTS + 18, id="what it begins in three tenths of the time"
        ),
        pytest.param(
            [health(rate=6.0), health(instance="b", rate=3.2)],
            PROBE_REQUESTS + 28,
            id="all instances together",
        ),
        pytest.param([health(rate=1000.0)], MOST, id="no more than its service takes"),
        pytest.param([health(rate=6.0, at=NOW - FRESH)], FIRST, id="what it said is old"),
        pytest.param([health(agent="second", rate=1.0)], FIRST, id="another agent said it"),
        pytest.param([opened()], 0, id="its circuit is open"),
        pytest.param(
            [opened(), health(instance="b", rate=6.0)],
            PROBE_REQUESTS + 18,
            id="of another instance it is not",
        ),
        pytest.param(
            [opened(), opened(instance="b")], 0, id="the circuits of all instances are open"
        ),
        pytest.param(
            [opened(), health(instance="b", at=NOW - FRESH)], 0, id="the other one is silent"
        ),
        pytest.param(
            [health(open_until=NOW)], PROBE_REQUESTS, id="its circuit closed a moment ago"
        ),
        pytest.param(
            [health(at=NOW - FRESH, open_until=NOW)],
            PROBE_REQUESTS,
            id="its circuit closed, and it has said nothing since it opened",
        ),
        pytest.param(
            [health(paused_until=NOW + seconds(9)), health(instance="b", rate=6.0)],
            0,
            id="its service asks for it",
        ),
        pytest.param(
            [health(paused_until=NOW)], PROBE_REQUESTS, id="its service asked for it until now"
        ),
        pytest.param(
            [health(instance="v", unresponsive_since=NOW - seconds(60))],
            0,
            id="found silent just now",
        ),
        pytest.param([health(instance="v", **PROBED)], PROBE_REQUESTS, id="its pause is over"),
        pytest.param(
            [health(instance="v", **PROBED), health(rate=6.0, at=NOW - seconds(61))],
            PROBE_REQUESTS,
            id="it worked before it was silent",
        ),
        pytest.param(
            [health(instance="v", **PROBED), health(rate=6.0)],
            PROBE_REQUESTS + 18,
            id="it has reported since",
        ),
    ],
)
def test_how_many_requests_may_be_open_follows_from_what_the_instances_say(reports, expected):
    """From their rows alone, whatever was believed before."""
    assert limit(reports) == expected


def test_no_limit_is_more_than_what_is_declared():
    """A service that takes one call at a time is asked for two, even if nothing is known of it."""
    for reports in ([], [health(rate=50.0)], [health(open_until=NOW)]):
        assert limit(reports, replace(CAPACITY, most=2)) == 2


@pytest.mark.proves("AGT-10", "AGT-8")
@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        pytest.param([], MOST, id="nothing is known"),
        pytest.param([health(rate=0.1)], MOST, id="it is slow"),
        pytest.param([opened()], 0, id="its circuit is open"),
        pytest.param([health(paused_until=NOW + seconds(9))], 0, id="its service asks for it"),
        pytest.param([health(unresponsive_since=NOW - seconds(60))], 0, id="it is silent"),
        pytest.param([health(**PROBED)], PROBE_REQUESTS, id="it is silent, and its pause is over"),
    ],
)
def test_a_fixed_limit_follows_no_rate_and_is_none_while_the_agent_makes_no_calls(
    reports, expected
):
    """Whatever the policy is, an agent that makes no calls gets no requests."""
    assert limit(reports, policy=FixedLimit()) == expected


@pytest.mark.proves("AGT-8")
def test_an_agent_is_closed_until_the_first_instance_makes_calls_again():
    """But as long as its service asks for, if that is what it waits for."""
    both = [opened(), opened(instance="b", open_until=NOW + seconds(9))]
    assert closed_until(both, "first", NOW) == NOW + seconds(9)
    assert closed_until(
        [*both, health(instance="c", paused_until=NOW + seconds(30))], "first", NOW
    ) == NOW + seconds(30)
    assert closed_until([], "first", NOW) is None


@pytest.mark.proves("SUP-7")
def test_silence_is_believed_for_as_long_as_somebody_asks_in_vain():
    """An agent that nobody has asked anything for a while is idle, and no more than that."""
    reports = [health(instance="v", unresponsive_since=NOW - seconds(60))]
    assert unresponsive_since(reports, "first", NOW) == NOW - seconds(60)
    assert unresponsive_since(reports, "first", NOW + SILENCE) is None
    assert unresponsive_since([*reports, health(at=NOW)], "first", NOW) is None


async def test_of_every_instance_the_newest_row_counts():
    """The answer to a write may be lost, so that the row before is not removed."""
    log = AgentHealthLog(of_columns())
    await log.publish(health(paused_until=NOW + seconds(600)))
    await log.publish(health(at=NOW + seconds(1)))
    assert [report.paused_until for report in await log.since(NOW)] == [None]


# What is open

SLOTS = 32
RATE = 9.66
AT_WORK = [health(agent=agent, instance="w", rate=RATE) for agent in ("first", "second", "third")]
"""Agents that begin so many requests a second that each may have ROOM open."""


class Believing(Admission):
    """A process with a clock that the test holds, and what the store holds for it to look at."""

    def __init__(self):
        self.now = NOW
        offers = {"payment": ("first", "second"), "stock": ("third",)}
        capacity = dict.fromkeys(("first", "second", "third"), CAPACITY)
        super().__init__(
            offers=offers,
            capacity=capacity,
            policy=ADAPTIVE,
            max_silence=MAX_SILENCE,
            clock=lambda: self.now,
        )

    def look(self, running=(), waiting=(), reports=AT_WORK):
        """See these orders run, each at the agents named behind it, and these wait."""
        self.now += REFRESH_INTERVAL
        assert self.is_refresh_due()
        self.begin_refresh()
        self.refresh(
            rows(running),
            waiting,
            [replace(report, at=max(self.now, report.at)) for report in reports],
        )

    def fill(self, needs="payment"):
        """Take slots until there is no room; return at whom."""
        taken = []
        while (agents := self.capacity_for().get(needs)) and len(taken) < 1000:
            self.open_requests.set_agents(f"{needs}-{len(taken)}", [agents[0]])
            taken.append(agents[0])
        return taken


def rows(running):
    found = (entry.partition(" ") for entry in running)
    return [
        IndexRow(key=f"!running|{name}", order_id=name, data={"Agents": agents})
        for name, _, agents in found
    ]


@pytest.fixture
def admission():
    admission = Believing()
    admission.look()
    return admission


@pytest.mark.proves("AGT-10", "WRK-2")
def test_a_step_goes_to_the_first_agent_that_has_capacity(admission):
    """The preferred agent is taken, then the next; orders with other needs are not held up."""
    assert admission.capacity_for() == {"payment": ["first", "second"], "stock": ["third"]}
    assert admission.fill() == ["first"] * SLOTS + ["second"] * SLOTS
    assert admission.capacity_for() == {"stock": ["third"]}


@pytest.mark.proves("WRK-2")
def test_before_the_first_look_there_is_no_capacity():
    """A process that starts while all that may be is open would claim as much again."""
    admission = Believing()
    assert admission.capacity_for() == {}
    admission.look()
    assert admission.capacity_for()


@pytest.mark.proves("WRK-2", "AGT-10")
def test_what_others_have_open_counts(admission):
    """And each step of an order where it runs."""
    admission.look([*(f"o{number} first third" for number in range(SLOTS - 1)), "other second"])
    assert admission.fill() == ["first"] + ["second"] * (SLOTS - 1)
    assert admission.fill("stock") == ["third"]


@pytest.mark.proves("WRK-2")
def test_an_answer_frees_the_slot_at_its_agent_alone(admission):
    """What else the order has open stays open; of an order that nobody has seen, nothing is."""
    admission.look(f"o{number} first third" for number in range(SLOTS))
    admission.open_requests.request_finished("o1", "third")
    admission.open_requests.request_finished("never seen", "third")
    assert admission.capacity_for() == {"payment": ["second"], "stock": ["third"]}
    assert len(admission.fill("stock")) == 1


@pytest.mark.proves("WRK-2", "AGT-10")
def test_the_steps_of_an_order_that_run_on_take_capacity_from_its_next_ones(admission):
    """The slots that it held until now are free for it."""
    admission.look(f"o{number} third" for number in range(SLOTS))
    assert "stock" not in admission.capacity_for()
    assert "stock" in admission.capacity_for("o1")
    assert "stock" not in admission.capacity_for("o1", ["third"])


@pytest.mark.proves("AGT-8", "AGT-10")
def test_what_a_reply_reports_counts_at_once(admission):
    """Before it is known otherwise: the circuit of the only agent is open."""
    paused = health(agent="third", paused_until=NOW + seconds(60))
    assert "stock" in admission.capacity_for("o1")
    assert "stock" not in admission.capacity_for("o1", reports=[paused])


@pytest.mark.proves("WRK-2")
def test_the_next_look_overrules_what_was_believed(admission):
    """Whatever happened to those orders elsewhere; and also that a slot is free."""
    admission.fill()
    admission.look()
    assert len(admission.fill()) == 2 * SLOTS
    admission.look(f"o{number} first" for number in range(SLOTS))
    admission.open_requests.set_agents("o1", [])
    assert admission.capacity_for()["payment"] == ["first", "second"]
    admission.look(f"o{number} first" for number in range(SLOTS))
    assert admission.capacity_for()["payment"] == ["second"]


@pytest.mark.proves("WRK-2")
def test_a_row_that_names_no_agents_takes_no_slot():
    """It cannot be read, or comes from another version."""
    requests = OpenRequests()
    requests.refresh([IndexRow(key="!running|x|b00-1", order_id="b00-1")], ())
    assert requests.agents_of("b00-1") == []


@pytest.mark.proves("WRK-2")
def test_what_is_done_while_a_look_is_made_counts_beside_it(admission):
    """The look may miss what was being written when it began, and what came after that."""
    admission.now += REFRESH_INTERVAL
    with admission.open_requests.changing("writing"):
        admission.open_requests.set_agents("writing", ["third"])
        admission.begin_refresh()
        admission.open_requests.set_agents("later", ["third"])
    admission.refresh([], [], [])
    assert len(admission.fill("stock")) == SLOTS - 2
    admission.look()
    assert len(admission.fill("stock")) == SLOTS


@pytest.mark.proves("WRK-2")
def test_what_a_look_has_seen_of_an_own_claim_counts_once(admission):
    """It is not counted twice, however many looks are made while it is written."""
    with admission.open_requests.changing("mine"):
        admission.open_requests.set_agents("mine", ["third"])
        for _ in range(3):
            admission.look(["mine third"])
    assert len(admission.fill("stock")) == SLOTS - 1


@pytest.mark.proves("FLT-9")
def test_one_looks_once_in_a_while(admission):
    """At most once in the interval; also after the clock was put back."""
    assert not admission.is_refresh_due()
    admission.now += REFRESH_INTERVAL
    assert admission.is_refresh_due()
    admission.begin_refresh()
    assert not admission.is_refresh_due()
    admission.now -= seconds(3600)
    assert admission.is_refresh_due()


@pytest.mark.proves("FLT-7", "AGT-8")
def test_a_look_that_hears_nothing_of_the_agents_goes_on_with_what_was_believed():
    """Their table is away, and the orders are there."""
    admission = Believing()
    admission.look(reports=[opened()])
    admission.begin_refresh()
    admission.refresh([], [], None)
    assert admission.capacity_for()["payment"] == ["second"]


@pytest.mark.proves("AGT-8", "WRK-1")
def test_the_word_of_one_instance_concerns_that_instance(admission):
    """Another instance goes on, unless the service itself asks to be left alone."""
    report = health(agent="third", instance="b", at=NOW + seconds(1))
    turned_away = partial(
        answer,
        outcome="notAttempted",
        retry_after=30.0,
        reason=NotAttemptedReason.CIRCUIT_OPEN,
        instance="a",
    )
    admission.look(reports=[report])
    admission.add_reports(health_from_reply(turned_away(), "third", admission.clock()))
    assert "stock" in admission.capacity_for()
    admission.add_reports(
        health_from_reply(
            turned_away(reason=NotAttemptedReason.THROTTLED), "third", admission.clock()
        )
    )
    assert "stock" not in admission.capacity_for()


@pytest.mark.proves("AGT-8")
def test_a_reply_says_of_its_agent_what_it_carries():
    """The instance, and how long it makes no calls."""
    turned_away = answer(
        outcome="notAttempted",
        reason=NotAttemptedReason.CIRCUIT_OPEN,
        retry_after=5.0,
        instance="a",
    )
    assert health_from_reply(turned_away, "third", NOW) == (
        AgentHealth(agent="third", instance="a", at=NOW, open_until=NOW + seconds(5)),
    )
    assert health_from_reply(answer(outcome="notAttempted", retry_after=5.0), "third", NOW) == ()


@pytest.mark.proves("AGT-8")
def test_the_word_of_an_instance_outlives_a_look_that_has_not_found_it():
    """Its row may not have been written; each look would send everything there again."""
    admission = Believing()
    admission.add_reports(
        health_from_reply(
            answer(
                outcome="notAttempted",
                retry_after=5.0,
                reason=NotAttemptedReason.CIRCUIT_OPEN,
                instance="a",
            ),
            "third",
            admission.clock(),
        )
    )
    for _ in range(3):
        admission.look(reports=[])
        assert "stock" not in admission.capacity_for()
    admission.now += seconds(2)
    assert len(admission.fill("stock")) == PROBE_REQUESTS


@pytest.mark.proves("AGT-8")
def test_the_next_report_of_an_instance_replaces_the_one_before(admission):
    """The service asks for nothing any more: nobody waits out the time it asked for before."""
    reply = answer(
        outcome="notAttempted", retry_after=30.0, reason=NotAttemptedReason.THROTTLED, instance="a"
    )
    admission.add_reports(health_from_reply(reply, "third", admission.clock()))
    assert "stock" not in admission.capacity_for()
    admission.look(reports=[health(agent="third", at=admission.now)])
    assert "stock" in admission.capacity_for()


# Who goes first


def candidate(name, priority=Priority.NORMAL, needs="stock", since=NOW, **more):
    return Candidate(order_id=name, priority=priority, needs=needs, since=since, **more)


def taken(admission, count=1000):
    found = (admission.take() for _ in range(count))
    return [order.order_id for order in found if order]


def some(count, name="o", **more):
    return [candidate(f"{name}{number:03d}", **more) for number in range(count)]


@pytest.mark.proves("SCH-11")
def test_high_priority_goes_first_and_starves_nobody(admission):
    """Each fifth turn is that of a normal order, however many high ones wait, look after look."""
    waiting = [*some(100, "high", priority=Priority.HIGH), *some(100, "normal")]
    order = []
    for _ in range(4):
        admission.look(waiting=[late for late in waiting if late.order_id not in order])
        order += taken(admission, 3)
        for name in order:
            admission.open_requests.set_agents(name, [])
    assert [name[:-3] for name in order] == [
        *["high"] * 4,
        "normal",
        *["high"] * 4,
        "normal",
        "high",
        "high",
    ]


@pytest.mark.proves("SCH-11", "WRK-3")
def test_who_has_waited_longest_is_taken_first(admission):
    """Whatever its bucket, and whatever was announced here: that comes last."""
    admission.announce(candidate("announced"))
    admission.look(
        waiting=[candidate(f"b{age}", since=NOW - age * seconds(1)) for age in (2, 3, 1)]
    )
    admission.announce(candidate("heard since"))
    assert taken(admission) == ["b3", "b2", "b1", "heard since"]


@pytest.mark.proves("SCH-11", "WRK-2", "WRK-3")
def test_all_processes_take_the_same_orders():
    """The free slots belong to the first orders: together they open no more than one would."""
    processes = [Believing() for _ in range(40)]
    for process in processes:
        process.look(waiting=some(1000))
    assert all(taken(process) == [order.order_id for order in some(SLOTS)] for process in processes)


@pytest.mark.proves("SCH-11", "WRK-2")
def test_no_more_are_taken_than_the_capacity_allows(admission):
    """Each has a slot from then on; orders with other needs, or with none, are in nobody's way."""
    pays, ends = candidate("pays", needs="payment"), candidate("ends", needs=NO_AGENT)
    admission.look(waiting=[*some(2 * SLOTS), pays, ends])
    assert sorted(taken(admission)) == sorted(
        [*(order.order_id for order in some(SLOTS)), "pays", "ends"]
    )
    assert "stock" not in admission.capacity_for()


@pytest.mark.proves("SCH-11", "AGT-10")
def test_orders_take_the_slots_of_every_agent_that_offers_what_they_need(admission):
    """Those of the preferred agent first."""
    admission.look(waiting=some(1000, needs="payment"))
    assert len(taken(admission, SLOTS)) == SLOTS
    assert admission.capacity_for()["payment"] == ["second"]
    assert len(taken(admission)) == SLOTS


@pytest.mark.proves("WRK-2", "WRK-3")
def test_what_other_agents_at_work_could_do_is_left_to_their_replies(admission):
    """A reply of any of those that offer it will do; what ends at once asks no agent."""
    waits = [candidate("a"), candidate("b", needs="payment"), candidate("c", needs=NO_AGENT)]
    admission.look(["x first", "y third"], waits)
    assert [admission.take("third").order_id for _ in range(2)] == ["c", "a"]
    assert admission.take("third") is None
    assert admission.take("second").order_id == "b"
    admission.look(["x first"], waits)
    assert [admission.take("second").order_id for _ in range(3)] == ["c", "b", "a"]


@pytest.mark.proves("WRK-3")
def test_what_no_agent_would_reply_for_is_left_to_nobody(admission):
    """Its circuit was open, say: there is no request, and no reply will come."""
    admission.look(["x third"], [candidate("b", needs="payment")])
    assert admission.take("third").order_id == "b"


@pytest.mark.proves("SUB-6", "WRK-3")
def test_an_order_that_was_announced_a_moment_ago_is_left_to_its_receiver(admission):
    """And its slot too; once it is fresh no more, it is everybody's."""
    fresh = some(SLOTS, fresh=True)
    admission.announce(fresh[3])
    admission.begin_refresh()
    admission.refresh([], [*fresh, candidate("z")], [])
    assert taken(admission) == [fresh[3].order_id]
    admission.look(waiting=some(2))
    assert sorted(taken(admission)) == ["o000", "o001"]


@pytest.mark.proves("SUB-6", "WRK-3")
def test_an_order_that_nobody_has_seen_waiting_is_forgotten_by_the_next_look(admission):
    """Somebody else has claimed it; one that is heard of during the look is not forgotten."""
    admission.announce(candidate("claimed"))
    admission.now += REFRESH_INTERVAL
    admission.begin_refresh()
    admission.announce(candidate("just announced"))
    admission.refresh([], [], [])
    assert taken(admission) == ["just announced"]


@pytest.mark.proves("WRK-3")
def test_an_order_that_was_announced_long_ago_is_no_more_this_process_s_to_take(admission):
    """It has been left to everybody."""
    admission.announce(candidate("old"))
    admission.now += ANNOUNCED_FOR
    admission.look(waiting=[candidate("old", fresh=True)])
    assert taken(admission) == []


def in_two_lanes(name="both"):
    return [candidate(name), candidate(name, needs="payment")]


@pytest.mark.proves("SCH-10", "AGT-8")
@pytest.mark.parametrize("away", [("third",), ("first", "second")])
def test_an_order_that_needs_two_agents_is_taken_for_the_one_with_capacity(admission, away):
    """Whichever it is."""
    admission.look(
        waiting=in_two_lanes(),
        reports=[health(agent=agent, paused_until=NOW + seconds(60)) for agent in away],
    )
    assert taken(admission) == ["both"]


@pytest.mark.proves("SCH-1", "AGT-3")
def test_an_order_that_is_left_alone_in_one_lane_is_found_in_the_other(admission):
    """Its own provider has no capacity for one step, and the agent of the other has some again."""
    admission.skip_in("stock", "both", FAILED_CLAIM_PAUSE)
    admission.look()
    assert admission.claim_queue.is_skipped("both", "stock")
    assert not admission.claim_queue.is_skipped("both", "payment")
    admission.now += FAILED_CLAIM_PAUSE
    admission.look()
    assert not admission.claim_queue.is_skipped("both", "stock")


@pytest.mark.proves("SCH-1")
def test_an_order_that_was_left_alone_is_tried_again_after_a_while(admission):
    """What was wrong with it may have been mended; its slot is somebody else's meanwhile."""
    admission.look(waiting=some(SLOTS + 1))
    (odd, *_) = taken(admission)
    admission.skip(odd)
    assert len(taken(admission)) == 1
    assert admission.claim_queue.is_skipped(odd)
    admission.now += FAILED_CLAIM_PAUSE
    admission.look()
    assert not admission.claim_queue.is_skipped(odd)


@pytest.mark.proves("SUB-6")
def test_one_message_between_two_looks_comes_again_for_all_orders_that_wait(admission):
    """Each wake-up is asked whether it should; one leads this process to all of them."""
    admission.look(waiting=some(SLOTS + 3))
    taken(admission)
    waiting = some(SLOTS + 3)[-3:]
    orders = admission.claim_queue
    assert orders.needs_redelivery(waiting[0].order_id)
    orders.note_redelivery()
    assert [order.order_id for order in waiting if orders.needs_redelivery(order.order_id)] == []
    admission.look(waiting=waiting)
    assert orders.needs_redelivery(waiting[1].order_id)
    assert not orders.needs_redelivery("not waiting")


@pytest.mark.proves("WRK-2")
def test_an_order_that_is_taken_keeps_the_slots_of_its_steps_that_run(admission):
    """It stands among the waiting for one of them, while the other runs on."""
    admission.look(["o third"], [candidate("o", needs="payment")])
    assert admission.take().order_id == "o"
    assert len(admission.fill("stock")) == SLOTS - 1


@pytest.mark.proves("WRK-3")
def test_of_a_bucket_that_cannot_be_reached_the_last_look_counts(admission):
    """Its orders run on, and take room (FLT-7)."""
    running = [f"b01-{number} third" for number in range(SLOTS)]
    admission.look([*running, "b02-1 first"])
    admission.begin_refresh()
    admission.refresh([], [], [], unseen={"b01"})
    assert "stock" not in admission.capacity_for()
    assert len(admission.fill()) == 2 * SLOTS


# Silent agents

LONG_AGO = NOW - MAX_SILENCE - seconds(1)


def test_an_order_that_has_waited_for_too_long_is_taken_without_a_slot():
    """SUP-9: after those that have a slot, and only if it has waited since before that time."""
    queue = ClaimQueue()
    for name, since in (("young", 0), ("at that time", 1), ("old", 2)):
        queue.announce(candidate(name, since=NOW - seconds(since)), NOW)
    long_ago = NOW - seconds(1)
    names = [queue.take("stock", slots, long_ago) for slots in (1, 0, 0)]
    assert [found and found.order_id for found in names] == ["young", "old", None]


def silent(agent, since=LONG_AGO, at=NOW):
    return health(agent=agent, instance="v", at=at, unresponsive_since=since)


def waiting(*since, needs="payment"):
    return [
        Candidate(order_id=f"o{number}", needs=needs, since=time)
        for number, time in enumerate(since)
    ]


def looked(*reports, since=(LONG_AGO, LONG_AGO, NOW)):
    """A process that has seen these reports, and orders that have waited since these times."""
    admission = Believing()
    admission.now = NOW - REFRESH_INTERVAL
    admission.look(waiting=waiting(*since), reports=[])
    admission.add_reports(reports)
    return admission


@pytest.mark.proves("SUP-9")
def test_an_order_that_has_waited_too_long_for_silent_agents_is_taken_without_a_slot():
    """Its claim gives it up; an order that waits for less is left alone."""
    admission = looked(silent("first"), silent("second"))
    assert admission.silent_agents() == {"first": LONG_AGO, "second": LONG_AGO}
    assert not admission.is_served("payment")
    assert taken(admission) == ["o0", "o1"]
    assert admission.open_requests.agents_of("o0") == []


@pytest.mark.proves("SUP-9")
@pytest.mark.parametrize(
    "reports",
    [
        pytest.param([silent("first"), silent("second", NOW - MAX_SILENCE)], id="not for so long"),
        pytest.param([silent("first"), opened(agent="second")], id="one is closed"),
        pytest.param(
            [silent("first"), silent("second"), health(agent="second", paused_until=NOW)],
            id="one has reported since",
        ),
    ],
)
def test_no_order_is_given_up_while_one_of_its_agents_is_not_silent_for_too_long(reports):
    """Then it waits for a slot at that one."""
    admission = looked(*reports)
    assert admission.is_served("payment")
    found = [admission.open_requests.agents_of(order_id) for order_id in taken(admission)]
    assert [] not in found


@pytest.mark.proves("SUP-9", "FLT-7")
def test_no_order_is_given_up_by_old_reports():
    """While the table of the agents is away, an agent may have reported."""
    admission = looked(silent("first"), silent("second"))
    admission.begin_refresh()
    admission.refresh([], waiting(LONG_AGO), None)
    assert admission.silent_agents() == {}
    assert taken(admission) == []


@pytest.mark.proves("SUP-9", "SUP-10")
def test_a_refresh_that_finds_no_silence_ends_it():
    """The agent has reported, and another process has removed the record; the report is old by now."""
    admission = looked(silent("first"), silent("second"))
    admission.look(waiting=waiting(LONG_AGO), reports=[])
    assert admission.silent_agents() == {}
    assert admission.capacity_for()["payment"] == ["first", "second"]


def test_a_capability_that_no_agent_offers_is_not_served():
    """An order that needs it may be given up (FLT-12)."""
    assert not looked().is_served("unheard-of")
    assert looked().is_served("payment")
