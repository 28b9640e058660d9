"""Compares the decisions of two sides move by move, and collects the first difference of each course."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from development.differential.differences import (
    MISSING,
    PLAIN,
    Case,
    Difference,
    state_of,
    without_names,
)

Json = Mapping[str, Any]
Path = tuple[str, ...]

NOTHING: tuple[object, ...] = (None, False, 0, 0.0, "", [], {})
"""Values that mean the same as a missing column."""
EXAMPLES = 1
"""How many courses are shown for each kind of difference."""
MAX_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class FirstDifference:
    """The first difference of a course that the list does not allow."""

    world: str
    course: Sequence[Json]
    """The moves from the submission on. The last one is decided differently."""
    differing: Mapping[Path, tuple[Any, Any]]
    """The values of the base and of this tree, by place."""

    @property
    def kind(self) -> str:
        """The common description of differences with the same cause."""
        move = self.course[-1]
        what = f"{move['do']} {move['action']}" if "action" in move else move["do"]
        places = sorted({".".join(without_names(path)) for path in self.differing})
        return f"{what}: {', '.join(places)}"

    def lines(self) -> Iterator[str]:
        """Yield the course and its differences, as lines for people."""
        yield f"world {self.world}"
        for number, move in enumerate(self.course, 1):
            shown = {name: value for name, value in move.items() if name != "from"}
            yield f"{number:4}. {_short(shown)}"
        for path, (base, new) in self.differing.items():
            yield f"      {'.'.join(path)}"
            yield f"        base: {_short(base)}"
            yield f"        new:  {_short(new)}"


@dataclass(kw_only=True)
class Comparison:
    """The result of a comparison."""

    moves: int = 0
    compared: int = 0
    decided: Counter[str] = field(default_factory=Counter)
    """How often the base made each kind of decision."""
    listed: Counter[str] = field(default_factory=Counter)
    """How many decisions each entry of the list explained."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many courses have each kind of difference."""
    examples: dict[str, list[FirstDifference]] = field(default_factory=dict)
    """The shortest of the first courses of each kind."""

    @property
    def found(self) -> int:
        """The number of courses with a difference that is not listed."""
        return self.kinds.total()

    def add(self, found: FirstDifference) -> None:
        """Count a difference, and keep it as an example if it is the shortest of its kind."""
        self.kinds[found.kind] += 1
        kept = self.examples.setdefault(found.kind, [])
        kept.append(found)
        kept.sort(key=lambda example: len(example.course))
        del kept[EXAMPLES:]


@dataclass
class _Tree:
    """The compared courses of one world."""

    world: Json
    moves: list[Json] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)
    """Whether the sides differed at or before each move."""
    states: list[Json] = field(default_factory=list)
    """The order's state row of the base after each move, or before it if the move changed nothing."""
    here: list[Json] = field(default_factory=list)
    """The order's state row of this tree, in the same way."""

    def course(self, node: int | None) -> list[Json]:
        moves: list[Json] = []
        while node is not None:
            moves.append(self.moves[node])
            node = self.moves[node]["from"]
        return moves[::-1]


def compare(
    courses: Iterable[str],
    base: Iterable[str],
    new: Iterable[str],
    differences: Sequence[Difference],
    renamed: Mapping[str, str] | None = None,
) -> Iterator[Comparison]:
    """Yield the comparison so far after each world, and at the end.

    `base` and `new` have a line for each move of `courses`. Raises ValueError if one side ends before the other.
    """
    comparison, tree = Comparison(), _Tree({})
    decisions = zip_longest(base, new)
    for line in courses:
        move = json.loads(line)
        if "world" in move:
            yield comparison
            tree = _Tree(move["world"])
            continue
        of_base, of_new = next(decisions, (None, None))
        if of_base is None or of_new is None:
            raise ValueError(f"a side has ended after {comparison.moves} moves")
        tree.moves.append(move)
        parent = move["from"]
        tree.cut.append(parent is not None and tree.cut[parent])
        tree.states.append({} if parent is None else tree.states[parent])
        tree.here.append({} if parent is None else tree.here[parent])
        comparison.moves += 1
        if not tree.cut[-1]:
            comparison.compared += 1
            tree.cut[-1] = not _is_same(
                comparison, tree, (of_base, of_new), differences, renamed or {}
            )
    yield comparison


def _is_same(
    comparison: Comparison,
    tree: _Tree,
    lines: tuple[str, str],
    differences: Sequence[Difference],
    renamed: Mapping[str, str],
) -> bool:
    """Whether both sides continue alike. Differences are added to the comparison."""
    base, new = map(json.loads, lines)
    before, here = tree.states[-1], tree.here[-1]
    tree.states[-1], tree.here[-1] = state_of(base) or before, state_of(new) or here
    comparison.decided[base["decided"]] += 1
    if lines[0] == lines[1] and not renamed:
        return True
    decisions = _tidy(_renamed(base, renamed)), _tidy(new)
    differing = dict(_differing((), *map(_placed, decisions)))
    if not differing:
        return True
    move = tree.moves[-1]
    course = tree.course(len(tree.moves) - 1)
    entries: dict[Path, Difference | None] = {}
    for path, (one, other) in differing.items():
        case = Case(
            move=move,
            path=path,
            base=one,
            new=other,
            decisions=decisions,
            before=before,
            here=here,
            course=course,
            world=tree.world,
        )
        entries[path] = next(
            (difference for difference in differences if difference.allows(case)), None
        )
    listed = {difference.name: difference for difference in entries.values() if difference}
    comparison.listed.update(listed.keys())
    unlisted = {path: differing[path] for path, entry in entries.items() if entry is None}
    if unlisted:
        comparison.add(FirstDifference(world=tree.world["name"], course=course, differing=unlisted))
        return False
    return not any(difference.ends_course for difference in listed.values())


def _renamed(value: Any, renamed: Mapping[str, str]) -> Any:
    """Return the value of the base with the names of this tree."""
    match value:
        case Mapping():
            return {
                renamed.get(key, key): _renamed(member, renamed) for key, member in value.items()
            }
        case list():
            return [_renamed(element, renamed) for element in value]
        case str():
            return renamed.get(value, value)
    return value


def _tidy(decision: Json) -> Json:
    """Return the decision without optional values. A deleted row stays visible."""
    rows = {
        key: "deleted" if row is None else _filled(row)
        for key, row in decision.get("rows", {}).items()
    }
    messages = [_filled(message) for message in decision.get("messages", ())]
    return {**decision, "rows": rows, "messages": messages}


def _filled(value: Any) -> Any:
    match value:
        case Mapping():
            filled = {name: _filled(value) for name, value in value.items()}
            return {name: value for name, value in filled.items() if not _is_nothing(value)}
        case list():
            return [_filled(element) for element in value]
    return value


def _is_nothing(value: Any) -> bool:
    return any(
        value is nothing or (value == nothing and type(value) is type(nothing))
        for nothing in NOTHING
    )


def _placed(decision: Json) -> Json:
    """Return the decision as a tree of named places: rows by kind, steps and messages by name."""
    placed = {name: value for name, value in decision.items() if name not in ("rows", "messages")}
    for key, row in decision["rows"].items():
        place = placed.setdefault(_kind_of_row(key), {})
        if _kind_of_row(key) in ("state", "order"):
            placed[_kind_of_row(key)] = row
        else:
            place[key] = row
    placed["messages"] = _by_id(decision["messages"])
    return placed


def _by_id(messages: Sequence[Json]) -> Json:
    """Return messages by their ids. A repeated message also has a number."""
    sent: Counter[str] = Counter()
    placed: dict[str, Json] = {}
    for message in messages:
        name = message["id"]
        sent[name] += 1
        placed[name if sent[name] == 1 else f"{name} ({sent[name]})"] = message
    return placed


def _kind_of_row(key: str) -> str:
    """Return `state`, `order` or `history`, or the prefix of the key of any other row."""
    first, _, rest = key.partition("|")
    if first[:1].isalnum():
        return rest.partition("|")[0]
    return "keys" if first.startswith("=") else first


def _differing(path: Path, base: Any, new: Any) -> Iterator[tuple[Path, tuple[Any, Any]]]:
    """Yield each place where the two differ, with both values. Each row and message has its own place."""
    if base == new:
        return
    if len(path) == 1:
        base, new = (
            {} if side is MISSING and path[0] not in PLAIN else side for side in (base, new)
        )
    base, new = _by_name(base), _by_name(new)
    if not (isinstance(base, Mapping) and isinstance(new, Mapping)):
        yield path, (base, new)
        return
    for name in {**base, **new}:
        yield from _differing((*path, name), base.get(name, MISSING), new.get(name, MISSING))


def _by_name(value: Any) -> Any:
    """Return a list of named items by name, so that each difference is found alone."""
    if not isinstance(value, list) or not all(isinstance(element, Mapping) for element in value):
        return value
    names = [str(element.get("Name") or f"{place}") for place, element in enumerate(value)]
    return dict(zip(names, value, strict=True)) if len({*names}) == len(names) else value


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"
