"""Writes the state diagrams of the documents from the tables of states and events in `engine/domain`.

`make diagrams` compares them, `--write` writes them.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping

import click

from development.faults import DevelopmentCode
from development.pages import with_section
from development.servicebus_config import ROOT
from engine.domain.orders import ORDER_TABLE, PROCESS_STATE
from engine.domain.states import (
    PATTERN_STATE,
    NothingToUndo,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Wait,
)
from engine.domain.table import (
    FEATURE_OF_STATE,
    Feature,
    Kind,
    features_of,
    name_of,
    rows,
)
from functions_alone.faults import StackFault, text_of

COMMAND = "make diagrams ARGS=--write"
OVERVIEW, DETAILS = "docs/architecture.md", "docs/reference/states.md"
Arrow = tuple[str, str, str]
"""The state before, the state after, and the event."""

_UNDO = frozenset({UndoPending, Undoing, Undone, UndoFailed, NothingToUndo})
_FAILED_UNDO = 'state "Failed" as undoFailed'
"""The pattern has one word for a step that could not be done and one that could not be undone."""


def sections() -> Mapping[tuple[str, str], str]:
    """Return the text of each section, by page and name."""
    details = {
        "order": _mermaid(_order()),
        "states": _states(),
        "forward": _mermaid(_core(is_undo=False)),
        "undo": _mermaid(_core(is_undo=True)),
        **{feature.replace(" ", "-"): _mermaid(_of(feature)) for feature in Feature},
    }
    return {
        (OVERVIEW, "order"): _mermaid(_order()),
        (OVERVIEW, "step"): _mermaid(_step(is_undo=False)),
        (OVERVIEW, "step-undo"): _mermaid(_step(is_undo=True), _FAILED_UNDO),
        **{(DETAILS, name): text for name, text in details.items()},
    }


def written(place: str, page: str) -> str:
    """Return the page with its sections. Raises `ValueError` if it has no place for one."""
    for (where, name), text in sections().items():
        if where == place:
            page = with_section(page, COMMAND, name, text)
    return page


def _mermaid(arrows: Iterable[Arrow], *declared: str) -> str:
    """Draw each change of state as one arrow, with all its events."""
    events: dict[tuple[str, str], dict[str, None]] = {}
    for before, after, event in arrows:
        if before != after:
            events.setdefault((before, after), {})[event] = None
    drawn = [
        f"{before} --> {after}: {', '.join(names)}" for (before, after), names in events.items()
    ]
    lines = [f"    {line}" for line in ("direction LR", *drawn, *declared)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _order() -> Iterator[Arrow]:
    for event, changes in ORDER_TABLE.items():
        for words in sorted(
            (PROCESS_STATE[before], PROCESS_STATE[after]) for before, after in changes
        ):
            yield *words, event


def _step(*, is_undo: bool) -> Iterator[Arrow]:
    """Yield every transition in the words of the pattern, for doing or for undoing steps."""
    for event, before, after in rows():
        if _is_of_undo(before, after) is is_undo:
            yield _word(before), _word(after), event


def _word(kind: Kind) -> str:
    is_undo_failed = kind[0] in (UndoFailed, NothingToUndo)
    return "undoFailed" if is_undo_failed else str(PATTERN_STATE[kind[0]])


def _core(*, is_undo: bool) -> Iterator[Arrow]:
    """Yield the transitions without optional behaviour, for doing or for undoing steps."""
    for event, before, after in rows():
        if not features_of(event, before, after) and _is_of_undo(before, after) is is_undo:
            yield _short(before), _short(after), event


def _is_of_undo(before: Kind, after: Kind) -> bool:
    return not _UNDO.isdisjoint({before[0], after[0]})


def _of(feature: Feature) -> Iterator[Arrow]:
    """Yield the transitions that an optional behaviour adds."""
    for event, before, after in rows():
        if feature in features_of(event, before, after):
            yield _short(before, feature), _short(after, feature), event


def _short(kind: Kind, feature: Feature | None = None) -> str:
    """Return the name of a state in a diagram, in which all waits are one state.

    Waits of the diagram's optional behaviour are separate states.
    """
    first, wait = kind[0], kind[-1]
    if not issubclass(wait, Wait):
        return name_of(kind)
    is_apart = feature is not None and FEATURE_OF_STATE.get(wait) is feature
    if first is UndoPending:
        return f"UndoPending_{wait.__name__}" if is_apart else "UndoPending"
    return wait.__name__ if is_apart else "NextAttempt"


def _states() -> str:
    """Return the table of all states: the word of the pattern, the behaviour, the meaning."""
    lines = ["| state | `State` | optional behaviour | meaning |", "|---|---|---|---|"]
    for state, word in PATTERN_STATE.items():
        feature = FEATURE_OF_STATE.get(state, "")
        meaning = " ".join((inspect.getdoc(state) or "").split())
        lines.append(f"| `{state.__name__}` | `{word}` | {feature} | {meaning} |")
    return "\n".join(lines)


@click.command(help=__doc__)
@click.option("--write", "to_be_written", is_flag=True, help="Put the diagrams into the documents.")
def main(*, to_be_written: bool) -> None:
    for place in (OVERVIEW, DETAILS):
        page = (ROOT / place).read_text()
        wanted = written(place, page)
        if to_be_written:
            (ROOT / place).write_text(wanted)
        elif page != wanted:
            facts = {"business": "the table of states and events", "command": COMMAND}
            sys.exit(text_of(StackFault(DevelopmentCode.FILE_OUTDATED, place, facts)))


if __name__ == "__main__":
    main()
