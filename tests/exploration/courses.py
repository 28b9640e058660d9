"""The courses to every snapshot that the exploration reaches, for the differential run.

`python -m tests.exploration.courses OUT --states 3000` explores each world breadth first up
to so many states, then follows random courses of events, and writes each decision that was made there as a neutral
move (`tools/development/differential`). What people may do is then tried in each of the orders' states.

Like `tools/development/differential/side.py` it knows the records and functions of its commit, and the run takes that of the
base. It need not work on any other commit: only neutral moves leave it.
"""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from unittest.mock import patch

import click

from development.differential.courses import Courses, wishes
from engine.decisions.actions.action import OperatorAction
from engine.decisions.transitions import Transition
from engine.domain.submitted_order import OnFailure
from engine.features.external_events import decide
from engine.http.public_api import rules as customers
from operations.api import copies, retention
from scheduler.rules import SchedulerRules
from submission import rules as submission
from supervisor.rules import SupervisorRules
from testkit.exploration.explorer import Limit, explore
from testkit.exploration.moves import forget, moves
from testkit.exploration.world import PARSED_UTC
from tests.exploration import worlds
from tests.exploration.worlds import TESTED

LONGEST_COURSE = 150
ON_FAILURE = {
    OnFailure.ERROR: "error",
    OnFailure.UNDO: "undo",
    OnFailure.COOLDOWN: "cooldown",
    OnFailure.CONTINUE: "continue",
}
CONDITIONS = {worlds.not_needed: "never", worlds.needed: "always", worlds.cannot_judge: "broken"}
STARTS = {worlds.in_an_hour: "an-hour-later"}


def neutral_world(small):
    """The world as both sides of the run make it anew."""
    deployed = small.deployed()
    settings = deployed.settings
    return {
        "name": str(small),
        "workflows": [_workflow(workflow) for workflow in deployed.workflows.all],
        "instances": {
            slot: {"workflows": [_workflow(workflow) for workflow in known.all]}
            for slot, known in deployed.known.items()
        },
        "agents": [_agent(agent) for agent in deployed.business.agents],
        "threshold": settings.failure_threshold,
        "seconds": {
            "timeout": settings.step_timeout_seconds,
            "tolerance": settings.clock_tolerance_seconds,
            "cooldown": settings.cooldown_seconds,
            "longest_upgrade": settings.mixed_version_seconds,
            "max_silence": settings.max_silence_seconds,
        },
        "submission": {},
    }


def _workflow(workflow):
    steps = [_step(step) for step in workflow.steps]
    return {"name": workflow.name, "version": workflow.version, "steps": steps}


def _step(definition):
    return {
        "name": definition.name,
        "capability": definition.capability,
        "external": definition.is_external,
        "undo": definition.compensation is not None,
        "broken": definition.request is worlds._broken,
        "uses": definition.uses,
        "after": definition.after,
        "keeps": definition.result_fields,
        "timeout": _seconds(definition.timeout),
        "threshold": definition.threshold,
        "condition": definition.condition and CONDITIONS[definition.condition],
        "startAt": definition.start_at and STARTS[definition.start_at],
        "onFailure": ON_FAILURE[definition.on_failure],
        "pivot": definition.pivot,
        "cooldown": _seconds(definition.cooldown),
        "maxCooldowns": definition.max_cooldowns,
        "lateEffectWindow": definition.late_effect_window.total_seconds(),
        "personal": definition.personal,
    }


def _agent(agent):
    return {
        "name": agent.name,
        "offers": agent.offers,
        "provider": agent.provider,
        "answerWithin": _seconds(agent.answer_within),
        "callsBack": agent.calls_back,
        "remembersRefusals": agent.remembers_refusals,
        "keysLast": _seconds(agent.keys_last),
    }


def _seconds(time):
    return time and time.total_seconds()


def key_of(order):
    """What tells snapshots apart; the keys of index rows follow from the rest."""
    compared = replace(order, etag=None, derived=replace(order.derived, work_items=()))
    text = PARSED_UTC.sub("UTC", repr(compared))
    return blake2b(text.encode(), digest_size=16).digest()


@dataclass
class Recorder:
    """The decisions of one world: each with the snapshot that it was made on, once."""

    moves: list = field(default_factory=list)
    """The keys of the snapshots before and after, the move, and the steps' states after it."""
    seen: set = field(default_factory=set)

    def around(self, decide, described):
        """The function `decide`, with a record of each decision; one that is refused changes nothing."""

        def deciding(*args):
            order, at, move = described(*args)
            after = None
            try:
                decision = decide(*args)
                after = decision.after if isinstance(decision, Transition) else None
            finally:
                self._add(order and key_of(order), after, {**move, "at": at.isoformat()})
            return decision

        return deciding

    def _add(self, before, after, move):
        key = (before, json.dumps(move, sort_keys=True))
        if key in self.seen:
            return
        self.seen.add(key)
        self.moves.append((before, after and key_of(after), move, after and shape_of(after)))


def shape_of(order):
    """What must be alike in the records of the exploration and in those that the moves lead to."""
    steps = [(step.name, str(step.pattern_state), step.counts.attempts) for step in order.steps]
    return str(order.process_state), steps


@contextmanager
def recording(recorder):
    """While this lasts, each decision is recorded."""
    with ExitStack() as stack:
        for owner, name, described in DECISIONS:
            stack.enter_context(
                patch.object(owner, name, recorder.around(getattr(owner, name), described))
            )
        yield


def _submission(message, workflow, terms, now, actor):
    return None, now, {"do": "submit", "by": "", "body": json.loads(message.to_json())}


def _claim(rules, order, now, capacity, silent):
    move = {"do": "claim", "by": rules.instance, "room": _capacity(capacity)}
    if silent:
        move["silent"] = {agent: since.isoformat() for agent, since in silent.items()}
    return order, now, move


def _reply(rules, order, reply, *received):
    now, capacity, agent = received
    content = {
        "reply": json.loads(reply.to_json()),
        "agent": agent,
        "room": _capacity(capacity),
    }
    return order, now, {"do": "reply", "by": rules.instance, **content}


def _recovery(rules, order, now, health):
    return (
        order,
        now,
        {"do": "recover", "by": rules.instance, "heard": [*map(_report_of, health)]},
    )


def _action(action, order, command, now):
    content = {
        "action": action.name,
        "step": getattr(command.arguments, "step", None),
        "wasDone": getattr(command.arguments, "was_done", None),
        "answer": getattr(command.arguments, "answer", None),
        "confirm": getattr(command.arguments, "confirm_late_effect", False),
    }
    return order, now, {"do": "act", "by": "", **content}


def _external_event(order, event, actor, now):
    content = {"step": event.step, "answer": event.result, "refusal": event.refusal}
    return order, now, {"do": "answer", "by": actor, "forGood": event.for_good, **content}


def _erasure(order, request, payload, now):
    return order, now, {"do": "erase", "by": ""}


def _restored(order, request, copied, now):
    return order, now, {"do": "restore", "by": "", "copiedAt": copied.at.isoformat()}


def _customer_cancel(order, until, now):
    return order, now, {"do": "customer-cancel", "by": "", "until": until}


DECISIONS = (
    (submission, "new_order", _submission),
    (SchedulerRules, "claim", _claim),
    (SchedulerRules, "receive", _reply),
    (SupervisorRules, "recover", _recovery),
    (OperatorAction, "act", _action),
    (decide, "recorded", _external_event),
    (retention, "erase", _erasure),
    (copies, "restored", _restored),
    (customers, "cancel_for_customer", _customer_cancel),
)
"""Where each decision is made, and what makes a snapshot, a time and a move of its arguments."""


def _capacity(capacity):
    return {capability: [*agents] for capability, agents in capacity.items()}


def _report_of(health):
    faults = [
        {"text": fault.text, "atDoor": fault.by_gateway, "requests": fault.requests}
        for fault in health.faults
    ]
    return {"agent": health.agent, "begun": health.begun, "faults": faults}


def recorded(small, states, walks, seed) -> Recorder:
    """Explore a world; return the decisions."""
    recorder, rng = Recorder(), random.Random(seed)
    with small.running(), recording(recorder):
        explore(small.beginning(), limit=Limit(states=states))
        forget()
        for _ in range(walks):
            world = small.beginning()
            for _ in range(LONGEST_COURSE):
                following = list(moves(world))
                if not following:
                    break
                world = rng.choice(following).world
        forget()
    return recorder


def write(small, out, *, states, walks, seed) -> Courses:
    """Write the courses of a world; raises AssertionError if a move does not lead where it led."""
    courses = Courses(neutral_world(small), out)
    nodes = {None: None}
    for before, after, move, shape in recorded(small, states, walks, seed).moves:
        node = courses.add({"from": nodes[before], **move})
        state = courses.states[node]
        reached = state and (
            state["ProcessState"],
            [(step["Name"], step["State"], step["Attempts"]) for step in state["Steps"]],
        )
        assert reached == shape, f"{small}: {move} leads to {reached}, and led to {shape}"
        nodes.setdefault(after, node)
    for node in [*_different(courses, nodes.values())]:
        for move in wishes(courses.world, courses.states[node], courses.times[node]):
            courses.add({"from": node, **move})
    return courses


def _different(courses, nodes) -> Iterator[int]:
    known = set()
    for node in nodes:
        if node is not None and (key := courses.key(node)) not in known:
            known.add(key)
            yield node


@click.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--states", default=3000, help="How many states of a world are explored.")
@click.option("--walks", default=60, help="How many random courses of a world are followed.")
@click.option("--world", "wanted", default="", help="Only worlds whose description contains this.")
def main(out: Path, states: int, walks: int, wanted: str) -> None:
    """Write the courses to OUT."""
    with out.open("w", encoding="utf-8") as lines:
        for seed, small in enumerate(TESTED):
            if getattr(small, "older", ()) or wanted not in str(small):
                continue  # code of an older version decides otherwise
            courses = write(small, lines, states=states, walks=walks, seed=seed)
            click.echo(f"explored {small}: {len(courses.orders)} moves")


if __name__ == "__main__":
    main()
