"""Makes courses: `python -m development.differential.courses OUT --states 24 --walks 8 --length 40`.

It runs in the process of the base, and writes one line of JSON for each world and each move. It uses only the neutral
form of orders, so it need not change with the records. In a number of states of each world it tries every move. Half
of these states are the nearest to the submission, and the others are on courses that the world names and on random
ones.
"""

import json
import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import click

from development.differential.side import FORM as READ
from development.differential.side import Side
from development.differential.worlds import ORDER_ID, PLACED_AT, WORLDS

Json = Mapping[str, Any]

FORM = 1
"""The number of the form of worlds and moves that this module writes (`side.FORM`)."""
INSTANT = timedelta(microseconds=1)
SOON = timedelta(seconds=3)
LATER = timedelta(days=2)
SCHEDULER, SUPERVISOR = "scheduler-1", "supervisor-1"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*")
STEP_ACTIONS = ("skip", "renew")
ORDER_ACTIONS = ("resubmit", "cancel", "hold", "release", "hurry")
WEIGHTS: Mapping[str, float] = {"claim": 4, "reply": 6, "recover": 3, "act": 2, "answer": 1}
"""How much more often a random course takes these moves, which advance an order."""
FURTHER = 1 / 2
"""How often a random course takes the first move of a kind, such as a claim with capacity."""


def submission(world: Json) -> Json:
    """Return the first move of every course."""
    body = {
        "schemaVersion": 1,
        "orderId": ORDER_ID,
        "placedAt": PLACED_AT,
        "workflow": world["workflows"][0]["name"],
        "customer": {"name": "Ada"},
        "policy": "P-1",
        "card": "C-1",
        **world["submission"],
    }
    return {"from": None, "do": "submit", "body": body, "at": PLACED_AT}


@dataclass
class Courses:
    """The courses of one world as a tree: a node for each move, numbered from zero."""

    world: Json
    out: TextIO
    side: Side = field(init=False)
    orders: list[Any] = field(default_factory=list)
    """The order after the move of each node, in the records of this side. None if it is unchanged."""
    states: list[Json | None] = field(default_factory=list)
    """The row with the order's state at each node, in the neutral form."""
    times: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.side = Side(self.world)
        self.out.write(json.dumps({"world": self.world}) + "\n")

    def add(self, move: Json) -> int:
        """Make a move from the node that it names. Return the new node."""
        before = None if move["from"] is None else self.orders[move["from"]]
        decision, after = self.side.decide(before, move)
        self.out.write(json.dumps(move) + "\n")
        self.orders.append(after)
        rows = decision.get("rows", {})
        state = next((row for key, row in rows.items() if key.endswith("|state")), None)
        self.states.append(state)
        self.times.append(datetime.fromisoformat(move["at"]))
        return len(self.orders) - 1

    def menu(self, node: int) -> Iterator[Json]:
        """Yield the moves to try after this one."""
        state = self.states[node]
        if state is not None:
            for move in menu(self.world, state, self.times[node]):
                yield {"from": node, **move}

    def key(self, node: int) -> str:
        """Return a text that distinguishes states. Times count from the last move, and versions are left out."""
        at = self.times[node]
        return self._text(node, lambda time: (time - at).total_seconds())

    def shape(self, node: int) -> str:
        """Return a text that distinguishes states without regard to times."""
        return self._text(node, lambda _: "some time")

    def _text(self, node: int, of_time: Callable[[datetime], Any]) -> str:
        left_out = ("Version", "UpdatedAt", "WaitsSince")
        state = self.states[node] or {}
        columns = {name: value for name, value in state.items() if name not in left_out}
        return json.dumps(_without_times(columns, of_time), sort_keys=True)


def _without_times(value: Any, of_time: Callable[[datetime], Any]) -> Any:
    match value:
        case Mapping():
            return {
                name: min(member, 2) if name == "Attempts" else _without_times(member, of_time)
                for name, member in value.items()
                if name != "Right"
            }
        case list():
            return [_without_times(element, of_time) for element in value]
        case str() if TIME.fullmatch(value):
            return of_time(datetime.fromisoformat(value))
    return value


# What can happen next


def menu(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    """Yield every move to try in a state, including moves that should change nothing."""
    for moves in (_claims, _replies, _recoveries, wishes):
        yield from moves(world, state, at)


def wishes(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    """Yield the possible acts of operators, customers and people outside in a state."""
    for moves in (_actions, _answers, _other_wishes):
        yield from moves(world, state, at)


def _claims(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    soon = at + timedelta(seconds=1)
    full = full_capacity(world)
    for capacity in (full, {}, *_capacity_without_one(full)):
        yield _move("claim", soon, SCHEDULER, capacity=capacity)
    for instance in world.get("instances", {}):
        capacity = full_capacity(world, instance)
        yield _move("claim", soon, instance, capacity=capacity)
        yield _move("claim", soon + timedelta(hours=2), instance, capacity=capacity)
    begins = [state.get("NotBefore"), *(step.get("NotBefore") for step in state["Steps"])]
    for time in sorted({datetime.fromisoformat(begin) for begin in begins if begin}):
        if time > soon:
            yield _move("claim", time, SCHEDULER, capacity=full)


def full_capacity(world: Json, instance: str = "") -> dict[str, list[str]]:
    """Return the capacity in which every agent known to this instance can take a request."""
    known = world.get("instances", {}).get(instance, {}).get("agents")
    capacity: dict[str, list[str]] = {}
    for agent in world["agents"]:
        if known is None or agent["name"] in known:
            capacity.setdefault(agent["offers"], []).append(agent["name"])
    return capacity


def _capacity_without_one(full: Mapping[str, list[str]]) -> Iterator[dict[str, list[str]]]:
    for capability, agents in full.items():
        if len(full) > 1:
            yield {name: value for name, value in full.items() if name != capability}
        if len(agents) > 1:
            yield {**full, capability: agents[1:]}


def _running(state: Json) -> list[Json]:
    return [step for step in state["Steps"] if step.get("CompleteBy")]


def _at_agents(state: Json) -> list[Json]:
    return [step for step in _running(state) if step["Capability"] != "outside"]


def _action(step: Json) -> str:
    return "undo" if step["State"] == "Undoing" else "do"


REPLIES: Sequence[Json] = (
    {"outcome": "completed", "result": {"reference": "r", "colour": "red"}},
    {"outcome": "failed", "reason": "declined"},
    {"outcome": "failed", "reason": "declined", "inDoubt": True},
    {"outcome": "failed", "reason": "not found", "forOperator": True},
    {"outcome": "notTried", "reason": "no place is free"},
    {"outcome": "notTried", "reason": "no place is free", "retryAfter": 45, "inDoubt": True},
    {"outcome": "notTried", "reason": "circuit", "retryAfter": 30, "circuitOpen": True},
    {
        "outcome": "notTried",
        "reason": "throttled",
        "retryAfter": 30,
        "circuitOpen": True,
        "asked": True,
    },
    {"outcome": "notTried", "reason": "queued", "retryAfter": 3, "inDoubt": True, "accepted": True},
)
INVALID: Sequence[Json] = ({"attempt": 1}, {"attempt": 99}, {"action": "do"}, {"action": "undo"})


def _replies(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    capacity = full_capacity(world)
    for step in _at_agents(state):
        attempt = {
            "orderId": state["OrderID"],
            "step": step["Name"],
            "action": _action(step),
            "attempt": step["Attempts"],
            "completeBy": step["CompleteBy"],
        }
        soon, agent = at + timedelta(seconds=2), step["Agent"]
        for reply in REPLIES:
            yield _move(
                "reply", soon, SCHEDULER, reply={**attempt, **reply}, agent=agent, capacity=capacity
            )
        completed = {**attempt, **REPLIES[0]}
        yield _move("reply", soon, SCHEDULER, reply=completed, agent=agent, capacity={})
        yield _move("reply", soon, SCHEDULER, reply=completed, agent="stranger", capacity=capacity)
        for changed in INVALID:
            reply = {**completed, **changed}
            if reply != completed:
                yield _move("reply", soon, SCHEDULER, reply=reply, agent=agent, capacity=capacity)
        for late in (timedelta(), _tolerance(world), _tolerance(world) + INSTANT):
            time = max(soon, datetime.fromisoformat(step["CompleteBy"]) + late)
            yield _move("reply", time, SCHEDULER, reply=completed, agent=agent, capacity=capacity)
        for instance in world.get("instances", {}):
            known = full_capacity(world, instance)
            yield _move("reply", soon, instance, reply=completed, agent=agent, capacity=known)


def _tolerance(world: Json) -> timedelta:
    return timedelta(seconds=world["seconds"]["tolerance"])


def _recoveries(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    times = sorted({datetime.fromisoformat(step["CompleteBy"]) for step in _running(state)})
    if not times:
        return
    requests = [
        f"{state['OrderID']}:{step['Name']}:{step['Attempts']}:{_action(step)}"
        for step in _at_agents(state)
    ]
    begun = {"agent": "pay", "begun": requests}
    fault = {"text": "503 Service Unavailable", "atDoor": False, "requests": requests}
    health: Sequence[Sequence[Json]] = (
        [begun],
        [],
        [{**begun, "faults": [fault]}],
        [{**begun, "faults": [{**fault, "text": "404 Not Found", "atDoor": True}]}],
    )
    expired = max(at, times[0] + _tolerance(world) + INSTANT)
    for reports in health if requests else health[:1]:
        yield _move("recover", expired, SUPERVISOR, reports=reports)
    for late in (timedelta(), _tolerance(world)):
        yield _move("recover", max(at, times[0] + late), SUPERVISOR, reports=health[0])
    if times[1:]:
        yield _move("recover", max(at, times[-1]) + SOON, SUPERVISOR, reports=health[0])


def _actions(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    steps = [None, *(step["Name"] for step in state["Steps"] if step.get("Attempts"))]
    for action in ORDER_ACTIONS:
        yield _move("act", at + SOON, action=action)
    if state["ProcessState"] != "Error":
        yield _move("act", at + SOON, action="skip", step=None)
        return
    yield _move("act", at + LATER, action="resubmit")
    for step in steps:
        for action in STEP_ACTIONS:
            yield _move("act", at + SOON, action=action, step=step)
            yield _move("act", at + LATER, action=action, step=step)
        done = {"wasDone": True, "answer": {"reference": "found", "said": "found"}}
        for found in (done, {"wasDone": False}, {"wasDone": False, "confirm": True}):
            yield _move("act", at + SOON, action="settle", step=step, **found)


def _answers(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    soon = at + SOON
    for step in state["Steps"]:
        external = step["Capability"] == "outside"
        if not external and not step.get("Right"):
            continue
        by, name = ("operator/grace", step["Name"]) if external else ("callback", step["Name"])
        yes, no = ({"said": "yes"}, {"said": "no"}) if external else ({"reference": "r"}, {})
        for answer in (yes, no):
            yield _move("answer", soon, by, step=name, answer=answer)
        for for_good in (False, True):
            yield _move("answer", soon, by, step=name, refusal="there is none", forGood=for_good)
        yield _move("remind", soon, step=name)
        yield _move("renew-callback", soon, step=name)
        for until in (soon + timedelta(hours=1), soon + timedelta(days=40)):
            yield _move("extend", soon, step=name, until=until.isoformat())


def _other_wishes(world: Json, state: Json, at: datetime) -> Iterator[Json]:
    soon = at + SOON
    first = submission(world)["body"]
    yield _move("submit", soon, body=first)
    yield _move("submit", soon, body={**first, "policy": "P-2"})
    for step in state["Steps"][:1] + state["Steps"][-1:]:
        yield _move("customer-cancel", soon, until=step["Name"])
    yield _move("erase", soon)
    yield _move("restore", soon, copiedAt=at.isoformat())


NEUTRAL = {"capacity": "room", "reports": "heard"}
"""The names in a move that older commits read, by the names in this module."""


def _move(kind: str, at: datetime, by: str = "", **more: Any) -> Json:
    named = {NEUTRAL.get(name, name): value for name, value in more.items()}
    return {"do": kind, "by": by, "at": at.isoformat(), **named}


# The courses


def every_move(courses: Courses, node: int) -> list[int]:
    """Try every move after this one. Return the nodes at which the order has changed."""
    nodes = [courses.add(move) for move in list(courses.menu(node))]
    return [node for node in nodes if courses.states[node] is not None]


def breadth_first(courses: Courses, root: int, states: int) -> set[str]:
    """Try every move in this many states of different shape, the nearest first. Return their shapes."""
    waiting, known = deque([root]), {courses.shape(root)}
    tried: set[str] = set()
    while waiting and len(tried) < states:
        node = waiting.popleft()
        tried.add(courses.shape(node))
        for after in every_move(courses, node):
            if (shape := courses.shape(after)) not in known:
                known.add(shape)
                waiting.append(after)
    return tried


def followed(courses: Courses, root: int, names: str) -> list[int]:
    """Follow the first possible course of several, which are separated by `|`.

    Returns each node at which the order has changed. Raises ValueError if no course is possible.
    """
    *others, last = names.split(" | ")
    for course in others:
        with suppress(ValueError):
            return [*named(courses, root, course)]
    return [*named(courses, root, last)]


def named(courses: Courses, root: int, names: str) -> Iterator[int]:
    """Follow a course of the world by the names of its moves. Yield each node at which the order has changed.

    Raises ValueError if no move with this name changes the order.
    """
    node = root
    for name in names.split():
        moves = [move for move in courses.menu(node) if name in _names_of(move)]
        tried = (courses.add(move) for move in moves)
        after = next((reached for reached in tried if courses.states[reached] is not None), None)
        if after is None:
            raise ValueError(f"{courses.world['name']}: {names}: {name} changes nothing")
        node = after
        yield node


def _names_of(move: Json) -> tuple[str, ...]:
    return move["do"], move.get("action", ""), move.get("reply", {}).get("outcome", "")


def at_random(courses: Courses, root: int, rng: random.Random, *, length: int) -> Iterator[int]:
    """Follow one random course. Yield each node at which the order has changed."""
    node = root
    for _ in range(length):
        after = courses.add(_chosen(list(courses.menu(node)), rng))
        if courses.states[after] is not None:
            node = after
            yield node


def _chosen(moves: Sequence[Json], rng: random.Random) -> Json:
    kinds = sorted({move["do"] for move in moves})
    kind = rng.choices(kinds, [WEIGHTS.get(kind, 0.2) for kind in kinds])[0]
    of_kind = [move for move in moves if move["do"] == kind]
    return of_kind[0] if rng.random() < FURTHER else rng.choice(of_kind)


def make(out: TextIO, *, states: int, walks: int, length: int, tell: Callable[[str], None]) -> None:
    """Write the courses of all worlds."""
    for place, world in enumerate(WORLDS):
        courses = Courses(world, out)
        root = courses.add(submission(world))
        tried = breadth_first(courses, root, states // 2)
        for names in world.get("courses", ()):
            _try_new(courses, followed(courses, root, names), tried)
        rng = random.Random(place)  # noqa: S311 - the same courses each time
        for _ in range(walks):
            nodes = [*at_random(courses, root, rng, length=length)]
            _try_new(courses, rng.sample(nodes, min(len(nodes), states // 2 // walks)), tried)
        tell(f"{world['name']}: {len(courses.orders)} moves")


def _try_new(courses: Courses, nodes: Iterable[int], tried: set[str]) -> None:
    """Try every move at these nodes, except for states of a shape already tried."""
    for node in nodes:
        if (shape := courses.shape(node)) not in tried:
            tried.add(shape)
            every_move(courses, node)


@click.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--states", default=24, help="In how many states of a world every move is tried.")
@click.option("--walks", default=8, help="How many random courses of a world there are.")
@click.option("--length", default=40, help="How many moves a random course has.")
def main(out: Path, states: int, walks: int, length: int) -> None:
    """Write made courses to OUT."""
    if READ != FORM:
        raise click.ClickException(f"the base reads moves of form {READ}, and not of form {FORM}")
    with out.open("w", encoding="utf-8") as lines:
        make(lines, states=states, walks=walks, length=length, tell=click.echo)


if __name__ == "__main__":
    main()
