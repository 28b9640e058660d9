"""Whether what an explanation says of an order is what then happens, in every state of a world (OPR-2)."""

from dataclasses import replace

from engine.decisions.operator_actions import BY_NAME, possible
from engine.domain.events import StepStarted
from engine.domain.orders import PROCESS_STATE, InError
from engine.domain.states import UnderWay
from engine.domain.table import kind_of
from operations.api import prospects
from operations.api.explain import explain
from operations.api.prospects import ActingRules, Actor, what_comes_otherwise
from scheduler.rules import SchedulerRules
from scheduler.service import WAKE_UP_TIME
from supervisor.rules import SupervisorRules
from testkit.exploration.laws.facts import health_in
from testkit.exploration.laws.people import EVENTS_OF
from testkit.exploration.moves import begun_by, moves
from testkit.exploration.violations import demand
from tests.support.builders import LONGEST_UPGRADE

ACT_OF = {event: act for act in BY_NAME if act in EVENTS_OF for event in EVENTS_OF[act]}


def acting_rules(deployed, health=()):
    """The rules as the app has them."""
    scheduler = SchedulerRules(
        instance="?",
        workflows=deployed.workflows,
        payload=deployed.business.payload,
        providers=deployed.providers,
        clock_tolerance=deployed.tolerance,
        version_overlap=LONGEST_UPGRADE,
        max_silence=deployed.max_silence,
    )
    return ActingRules(
        claim=scheduler.claim,
        recover=SupervisorRules(
            instance="?",
            clock_tolerance=deployed.tolerance,
            max_unbegun_attempts=deployed.settings.max_unbegun_attempts,
        ).recover,
        poll_delay=WAKE_UP_TIME,
        clock_tolerance=deployed.tolerance,
        offers=deployed.offers,
        version_overlap=LONGEST_UPGRADE,
        max_silence=deployed.max_silence,
        agent_health=health,
    )


def effect(order, entry):
    """What a transition makes of an order, but for who did it and when."""
    steps = [
        (step.name, kind_of(step.state), step.counts.attempts, step.counts.failures)
        for step in order.steps
    ]
    return (
        PROCESS_STATE[type(order.state)],
        order.state.outcome if isinstance(order.state, InError) else None,
        order.direction,
        order.failures,
        steps,
        [_but_for_its_time(event) for event in entry.events],
    )


def _but_for_its_time(event):
    """Return an event as it was foreseen: an explanation does not say how long an agent has."""
    if isinstance(event, StepStarted) and not event.is_external:
        return replace(event, complete_by=event.complete_by.min)
    return event


def foreseen(prospect):
    transition = prospect.transition
    return effect(transition.after, transition.entry) if transition else None


class Judge:
    """Asks for an explanation of each state, and compares it with all that can follow."""

    def __init__(self):
        self.transitions = 0
        self.silences = 0
        self.deployed = None

    def watch(self, world, following):
        self.deployed, order = world.deployed, world.order()
        if order is None:
            return
        for move in following:
            after = move.world.order()
            if after.version > order.version:
                self.transitions += 1
                self.judge(world, after, newest(move.world), health_at(world, move))
        if not (world.queue or world.handlers or world.landing):
            self.silences += 1
            self.judge_silence(world)

    def judge(self, world, after, entry, health):
        """A transition that follows was foreseen when the order came to be as it is, by what the agents have said."""
        order = world.order()

        rules, since = acting_rules(self.deployed, health), order.updated_at
        expected, role = prospects.what_comes(order, rules, since), entry.actor.partition("/")[0]
        demand(expected, f"“{entry.event}” although nobody was to act any more")
        if role == "operator":
            actions = possible(order, entry.at)
            demand(
                ACT_OF[entry.event] in actions,
                f"“{entry.event}”, but an operator could only {actions}",
            )
        elif role == "supervisor":
            recovery = prospects.recovery(order, rules, since)
            demand(
                recovery and recovery.at <= entry.at,
                f"the supervisor acted, foreseen was {recovery}",
            )
            now = prospects.recovery(order, rules, entry.at)
            demand(now, "the supervisor acted, although nothing ran")
            demand(
                foreseen(now) == effect(after, entry),
                f"{effect(after, entry)}, foreseen was {foreseen(now)}",
            )
        elif answered := ended_attempts(order, after):
            self.judge_answer(order, answered, expected, entry)
        else:
            demand(
                expected.actor is Actor.SCHEDULER,
                f"a scheduler acted, foreseen was {expected.actor}",
            )
            demand(
                expected.at <= entry.at,
                f"the scheduler acted at {entry.at}, foreseen was {expected.at}",
            )
            demand(
                foreseen(expected) == effect(after, entry),
                f"{entry}, foreseen was {foreseen(expected)}",
            )

    def judge_answer(self, order, answered, expected, entry):
        explanation = explain(order, [], acting_rules(self.deployed), order.updated_at)
        due = min(step.state.complete_by for step in order.in_state(UnderWay))
        if expected.actor is Actor.AGENT:
            demand(expected.at == due, f"an answer was due by {due}, foreseen was {expected.at}")
        for step in answered:
            demand(
                step.name in [current.name for current in explanation.steps],
                f"{step} answered: {explanation}",
            )
            demand(
                entry.at <= step.state.complete_by + self.deployed.tolerance,
                f"{step} answered at {entry.at}",
            )

    def judge_silence(self, world):
        """Nothing is on its way: what the explanation says of that is what the timers then do, and when."""
        rules = acting_rules(self.deployed, begun_by(world))
        expected = what_comes_otherwise(world.order(), rules, world.now)
        later = left_alone(world)
        if expected is None or later is None:
            demand(
                expected is None and later is None,
                f"if nothing comes: {expected}, but {later and newest(later)}",
            )
            return
        entry = newest(later)
        what = f"if nothing comes: {expected.actor} at {expected.at}; it was {entry.actor} at {entry.at}"
        demand(entry.actor.startswith(expected.actor), what)
        demand(entry.at == expected.at or (world.lease and entry.at > expected.at), what)
        demand(foreseen(expected) == effect(later.order(), entry), f"{what}: {foreseen(expected)}")


def ended_attempts(order, after):
    """The steps of which an attempt that was under way is not any more."""
    still = after.in_state(UnderWay)
    return [step for step in order.in_state(UnderWay) if step not in still]


def health_at(world, move):
    """What whoever acts has heard of the agents: as they are now, if that is nobody who has asked."""
    handler = world.handlers.get(move.label.partition(":")[0])
    reports = [
        health for answer in (handler.log if handler else ()) for health in health_in(answer)
    ]
    return reports if handler else begun_by(world)


def newest(world):
    """The last transition of the order."""
    return [entry for entry in world.history() if entry.change_id][-1]


def left_alone(world):
    """The world after the next transition that comes by itself; None if none comes."""
    been, version = set(), world.order().version
    while world.order().version == version:
        been.add(world.key())  # a sweep without the lease leads nowhere
        by_itself = (move for move in moves(world) if move.by_itself)
        going_on = next((move for move in by_itself if move.world.key() not in been), None)
        if going_on is None:
            return None
        world = going_on.world
    return world
