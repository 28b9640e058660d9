"""The steps of an order in its state row.

The column `Steps` holds an object for each step: the documented word of its state, and beside it
the exact state and the effect, as tagged objects. `Rules` holds the rules of the steps in the same
order. Empty values are left out. Each result has its own column, because it may be long.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Annotated, Any, Union

from pydantic import AfterValidator, ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError
from pydantic.alias_generators import to_pascal

from engine.domain import effects, exact_json, states
from engine.domain.causes import Cause
from engine.domain.messages import faults_of
from engine.domain.states import PATTERN_STATE, State
from engine.domain.statuses import StepState
from engine.domain.steps import Counts, Step, StepIn, StepRules
from engine.storage.tables import Columns, aware


def result_column(index: int) -> str:
    return f"Result{index:02d}"


# How steps are written

KINDS = (*states.STATES, states.LateEffectsPossible)
"""The exact states of steps, and `LateEffectsPossible`, for which only an undo waits."""
IS = "Is"
"""The key of a tagged object that holds the name of its class."""
RULES = "rules"
"""The key in `Step.unknown` for additions to its rules. No key of a row starts like this."""
IDENTITY = {"Cause": "Code", "Key": "Generation"}
"""The key by whose value an inner object is recognised as the same one. The default is `IS`."""
SAME = "same"
"""The key in `Additions` for the value that identifies the object."""


class Additions(dict[str, Any]):
    """Fields that a newer version of the app added to an inner object (FLT-12)."""


NAMES = {
    "failures": "FailureCount",
    "timeout": "TimeoutSeconds",
    "cooldown": "CooldownSeconds",
    "max_retry_pause": "MaxRetryPauseSeconds",
    "late_effect_window": "LateEffectWindowSeconds",
}


def key_of(name: str) -> str:
    """Return the key in an object of a step for the field of this name."""
    return NAMES.get(name) or to_pascal(name)


def columns_of_steps(steps: Sequence[Step]) -> Columns:
    """Return the columns of the steps: all steps, all rules, and each result."""
    results = {}
    rows = [_step_object(step) for step in steps]
    for index, row in enumerate(rows):
        if "Result" in row["Effect"]:
            results[result_column(index)] = exact_json.write(row["Effect"].pop("Result"))
    return {"Steps": exact_json.write(rows), "Rules": _rules_text(steps), **results}


def _step_object(step: Step) -> dict[str, Any]:
    counts = step.counts
    row: dict[str, Any] = {
        "Name": step.name,
        "State": PATTERN_STATE[type(step.state)],
        "ExactState": _tagged(step.state),
        "Effect": _tagged(step.effect),
        "Attempts": counts.attempts,
        "FailureCount": counts.failures,
    }
    if counts.uncounted:
        row["Uncounted"] = counts.uncounted
    if counts.unbegun:
        row["Unbegun"] = counts.unbegun
    if counts.cooldowns:
        row["Cooldowns"] = counts.cooldowns
    if counts.overloaded:
        row["Overloaded"] = counts.overloaded
    if step.callback_token is not None:
        row["CallbackToken"] = step.callback_token
    return _with_unknown(row, step.unknown) if step.unknown else row


def _rules_text(steps: Iterable[Step]) -> str:
    if not any(RULES in step.unknown for step in steps):
        return _known_rules_text(tuple(step.rules for step in steps))
    return exact_json.write([{**_object(it.rules), **it.unknown.get(RULES, {})} for it in steps])


@lru_cache(maxsize=256)
def _known_rules_text(rules: tuple[StepRules, ...]) -> str:
    """Return the text of the column `Rules`.

    It is cached, because most orders of a workflow have the same rules.
    """
    return exact_json.write(list(map(_object, rules)))


def _tagged(record: Any) -> dict[str, Any]:
    return {IS: type(record).__name__, **_object(record)}


def _object(record: Any) -> dict[str, Any]:
    """Return the fields of a record, without fields that have their default value."""
    found = {}
    for name, alias, default in _fields_of(record.__class__):
        value = getattr(record, name)
        if value != default:
            write = _WRITERS.get(type(value))
            found[alias] = write(value) if write else value
    return found


@cache
def _fields_of(kind: Any) -> list[tuple[str, str, Any]]:
    """Return name, key and default of each field; without a default it is always written."""
    return [(field.name, key_of(field.name), field.default) for field in fields(kind)]


def _time(value: datetime) -> str:
    return aware(value).astimezone(UTC).isoformat().replace("+00:00", "Z")


_WRITERS: Mapping[type, Callable[[Any], Any]] = {
    datetime: _time,
    timedelta: timedelta.total_seconds,
    Cause: _object,
    effects.RequestKey: _object,
    **dict.fromkeys(KINDS, _tagged),
}
"""Writers for values that are not JSON, by type."""


def _with_unknown(row: Mapping[str, Any], unknown: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with what a newer version added to it and to its parts (FLT-12)."""
    merged = dict(row)
    for name, value in unknown.items():
        if not isinstance(value, Additions):
            merged.setdefault(name, value)
        elif name in row:
            merged[name] = _with_unknown(row[name], _still_true(name, row[name], value))
    return merged


def _still_true(name: str, row: Mapping[str, Any], additions: Additions) -> Mapping[str, Any]:
    """Return the additions that still apply to the object of this name.

    If another object took its place, only additions to inner objects apply.
    """
    is_same = row.get(IDENTITY.get(name, IS)) == additions[SAME]
    return {
        key: value
        for key, value in additions.items()
        if isinstance(value, Additions) or (is_same and key != SAME)
    }


# How steps are read


def _tag_of(value: Any) -> Any:
    """Remove the tag from an object, and return it.

    Its class does not know the tag. The object was just read from text, so nothing else uses it.
    """
    return value.pop(IS, None) if isinstance(value, dict) else None


def _one_of(kinds: Mapping[str, Any]) -> Any:
    tagged = tuple(Annotated[kind, Tag(name)] for name, kind in kinds.items())
    return Annotated[Union[tagged], Discriminator(_tag_of)]  # noqa: UP007


WAITS = {kind.__name__: kind for kind in KINDS if issubclass(kind, states.Wait)}


@dataclass(frozen=True, slots=True)
class UndoPendingObject:
    """The object of `UndoPending`. Its tag says what the undo waits for."""

    wait: _one_of(WAITS)  # type: ignore[valid-type]


def _undo_pending(read: UndoPendingObject) -> states.UndoPending:
    return states.UndoPending(read.wait)


STATES = {kind.__name__: kind for kind in states.STATES} | {
    "UndoPending": Annotated[UndoPendingObject, AfterValidator(_undo_pending)]
}
EFFECTS = {kind.__name__: kind for kind in effects.Effect.__args__}


@dataclass(frozen=True, kw_only=True, slots=True)
class StepObject:
    """An object in the column `Steps`, with its result."""

    name: str
    """The name of the step."""
    state: StepState
    """The state of the step, in one of the seven words of the pattern."""
    exact_state: _one_of(STATES)  # type: ignore[valid-type]
    """The exact state: `Is` is its name, and the other keys are its data."""
    effect: _one_of(EFFECTS)  # type: ignore[valid-type]
    """What is known of the step's effect at the service: `Is` is its name, and the other keys are
    its data."""
    attempts: int
    """The number of attempts that were started. It is never reset."""
    failures: int
    """The number of failures since the last fresh start or cooldown."""
    uncounted: int = 0
    """The number of the latest consecutive attempts that counted as no failure (SCH-16)."""
    unbegun: int = 0
    """The number of the latest consecutive requests that no agent is known to have begun
    (SUP-9)."""
    cooldowns: int = 0
    """The number of cooldowns since the last fresh start."""
    overloaded: int = 0
    """The number of attempts since the last fresh start that timed out at an overloaded agent."""
    callback_token: str | None = None
    """The callback token of the step; absent if it has no callback URL (ANS-6)."""


KNOWN_ONLY = ConfigDict(alias_generator=key_of, extra="forbid", ser_json_timedelta="float")
"""All keys are checked; those that are not known here are then put aside, and none is ignored."""
# For a tuple alone pydantic takes no configuration.
STEPS: TypeAdapter[Any] = TypeAdapter(tuple[StepObject, ...] | None, config=KNOWN_ONLY)
RULES_OF_STEPS: TypeAdapter[Any] = TypeAdapter(tuple[StepRules, ...] | None, config=KNOWN_ONLY)


def steps_in(columns: Columns) -> tuple[Step, ...]:
    """Read the steps from these columns.

    Raises ValueError, LookupError or TypeError unless all of every step can be read.
    """

    def steps() -> Any:
        found = exact_json.read(columns["Steps"])
        for index, step in enumerate(found):
            if (name := result_column(index)) in columns:
                step["Effect"]["Result"] = exact_json.read(columns[name])
        return found

    found, unknown = _read(STEPS, steps)
    rules, of_rules = _rules_in(columns["Rules"])
    if len(found) != len(rules):
        raise ValueError(f"{len(found)} steps with the rules of {len(rules)}")
    for index, more in of_rules.items():
        unknown.setdefault(index, {})[RULES] = Additions(more)
    return tuple(
        _step(step, rules[index], unknown.get(index, {})) for index, step in enumerate(found)
    )


def _step(read: StepObject, rules: StepRules, unknown: Mapping[str, Any]) -> Step:
    state: State = read.exact_state
    if read.state is not PATTERN_STATE[type(state)]:
        raise ValueError(f"step {read.name}: State {read.state} with {type(state).__name__}")
    counts = Counts(
        attempts=read.attempts,
        failures=read.failures,
        uncounted=read.uncounted,
        unbegun=read.unbegun,
        cooldowns=read.cooldowns,
        overloaded=read.overloaded,
    )
    return StepIn(
        name=read.name,
        rules=rules,
        counts=counts,
        effect=read.effect,
        state=state,
        callback_token=read.callback_token,
        unknown=unknown,
    )


@lru_cache(maxsize=256)
def _rules_in(text: str) -> tuple[Sequence[StepRules], Mapping[int, Any]]:
    """Read the rules from the column. They are cached, because most orders have the same rules."""
    return _read(RULES_OF_STEPS, lambda: exact_json.read(text))


def _read(adapter: TypeAdapter[Any], parsed: Callable[[], Any]) -> tuple[Any, dict[int, Any]]:
    """Read the objects of an array, and return the unknown keys of each by index (FLT-12).

    Raises ValueError with all faults. The message repeats no values.
    """
    try:
        return _validated(adapter, parsed()), {}
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        if any(fault["type"] != "unexpected_keyword_argument" for fault in faults):
            raise ValueError("; ".join(map(str, faults_of(error)))) from None
    objects, unknown = parsed(), dict[int, Any]()
    for fault in faults:
        index, *place = fault["loc"]
        _put_aside(objects[index], unknown.setdefault(int(index), {}), place)
    return _validated(adapter, objects), unknown


def _validated(adapter: TypeAdapter[Any], objects: Any) -> Any:
    if not isinstance(objects, list):
        raise ValueError("expected an array")  # noqa: TRY004 - as for all faults of a row
    return adapter.validate_python(objects)


def _put_aside(found: dict[str, Any], unknown: dict[str, Any], place: Sequence[Any]) -> None:
    """Move the key at this place from `found` to `unknown`, under the same parent keys."""
    first, *rest = place
    if not rest:
        unknown[first] = found.pop(first)
    elif first == found.get(IS):  # pydantic names the tag as well
        _put_aside(found, unknown, rest)
    else:
        part = found[first]
        same = part.get(IDENTITY.get(first, IS))
        aside = unknown.setdefault(first, Additions({SAME: same}))
        _put_aside(part, aside, rest)
