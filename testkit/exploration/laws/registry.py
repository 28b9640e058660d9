"""The registry of the laws, with the moment at which each is checked and its statements.

A law is a function that raises `ViolationError` if it does not hold. The decorator `law` names the
moment and the statements of docs/pattern.md that the law checks. `Moment.check` checks all laws of
a moment in the order of their definition.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

from engine.decisions.transitions import Note, OperatorEvent, Transition
from engine.domain.messages import AgentRequest, BusMessage
from engine.domain.orders import OrderAggregate
from testkit.exploration.driving import Handler, PortCall
from testkit.exploration.world import World

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True, slots=True)
class Law:
    """A law, as the table lists it."""

    name: str
    statements: Sequence[str]
    moment: str
    says: str


LAWS: list[Law] = []
"""All laws, after the package was imported."""
_reached: set[str] = set()
"""The moments that came since the last `begin`."""


def begin() -> None:
    """Forget which moments came."""
    _reached.clear()


def not_reached() -> Sequence[Law]:
    """Return the laws that were not checked since `begin`, because their moment never came."""
    return [law for law in LAWS if law.moment not in _reached]


class Moment(Generic[P]):
    """A moment at which laws are checked. All of its laws get the same arguments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Callable[P, None]] = []

    def check(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Check every law of this moment.

        Raises `ViolationError` for the first one that is broken.
        """
        _reached.add(self.name)
        for check in self.checks:
            check(*args, **kwargs)


STATE = Moment[[World, OrderAggregate]]("in every state")
RECORDS = Moment[[World, OrderAggregate]]("in every state, from the stored rows alone")
UNRECORDED = Moment[[World]]("in every state in which the order is not recorded")
END = Moment[[World]]("when nothing more happens by itself")
DECISION = Moment[[World, Handler, Transition]]("before a change is written")
WRITE = Moment[[World, Transition]]("when an order is written")
COMMIT = Moment[[World, Transition]]("when a recorded order is changed")
AFTER_COMMIT = Moment[[World, Transition]]("in the state after a change")
NOTED = Moment[[World, Handler, Note]]("when something is noted")
CALLING = Moment[[World, AgentRequest]]("before an agent calls its service")
REQUESTING = Moment[[World, AgentRequest]]("before a request is sent")
REPLYING = Moment[[World, Handler, BusMessage]]("before a reply is sent")
NOTING = Moment[[Note]]("before something is noted")
READ = Moment[[World, Handler, PortCall]]("before the store is read")
PERFORMED = Moment[[World, AgentRequest]]("before a service does what it is called for")
ARRIVED = Moment[[Handler, AgentRequest]]("when a call arrives at a service that knows its key")
SERVED = Moment[[World, AgentRequest, str]]("when a provider serves a request")
FORGOTTEN = Moment[[World, AgentRequest]]("when a service has forgotten the key of a call")
ACTED = Moment[[World, Handler]]("when somebody was told that an action is done")
ANSWERED = Moment[[World, Handler, Exception | None]]("when a callback was answered")
PUBLISHED = Moment[[World, Sequence[OperatorEvent]]]("when events are published")


def law(*statements: str, at: Moment[P]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a function as the law that checks these statements at this moment."""

    def register(check: Callable[P, None]) -> Callable[P, None]:
        at.checks.append(check)
        LAWS.append(
            Law(name=check.__name__, statements=statements, moment=at.name, says=_says(check))
        )
        return check

    return register


def _says(check: Callable[..., Any]) -> str:
    return (inspect.getdoc(check) or "").partition("\n\n")[0].replace("\n", " ")


def table() -> Iterator[str]:
    """Yield the lines of a table that lists the laws of each moment."""
    for moment in dict.fromkeys(law.moment for law in LAWS):
        yield f"{moment}:"
        for listed in (law for law in LAWS if law.moment == moment):
            yield f"    {', '.join(listed.statements):22}{listed.name}: {listed.says}"
