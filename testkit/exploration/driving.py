"""Running a handler step by step: it stops at each effect, and the explorer says what comes of it.

A coroutine cannot be copied. So what a handler was told is kept as its log, and to go on in two
ways it is run anew, twice, on the same log. That works because everything that it learns of the
world comes through the log: what its effects returned, the time it read, the ids it drew.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from engine.concurrency import results_of


@dataclass(frozen=True, slots=True)
class PortCall:
    """Something that a handler asks of the world; awaiting it hands it to the explorer."""

    name: str
    args: tuple[Any, ...] = ()

    def __await__(self) -> Generator["PortCall", Any, Any]:
        return (yield self)


@dataclass(frozen=True, slots=True)
class Returned:
    """What the world answered."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The error that the world answered with.

    It is made anew each time, since an exception collects tracebacks.
    """

    kind: type[Exception]
    text: str = "it was away"
    more: tuple[tuple[str, Any], ...] = ()
    """The other arguments of the error, by name."""

    def error(self) -> Exception:
        """Return the error."""
        return self.kind(self.text, **dict(self.more))


Answer = Returned | Raised


class HealthRows(list[Any]):
    """The agents' health rows, as one look finds them: in a log they differ from other lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What started a handler: a message, or a timer, or a person."""

    kind: str
    body: str = ""
    agent: str = ""
    """Over whose queue a reply came."""
    expires: Any = None
    step: str = ""
    """Which step somebody outside answers, or an operator settles."""
    done: bool = False
    """Whether the operator found that the step was done."""
    token: str = ""
    """What the link carries over which a service answers."""

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """One invocation that has begun: what it was told until now, and for what it waits."""

    slot: str
    job: Job
    log: tuple[Answer, ...] = ()
    pending: PortCall | None = None
    since: Any = None
    """When it began to wait."""
    belief: Any = None
    """What its process believed when it began; once it has ended, what it believes then."""
    memory: Any = ()
    """The orders that its process remembered when it began; once it has ended, those of then."""

    def with_answer(self, answer: Answer) -> "Handler":
        """The handler with one more answer."""
        return replace(self, log=(*self.log, answer))


@dataclass(kw_only=True)
class Tape:
    """Plays a handler's log back; what goes beyond it is asked of the world, and recorded."""

    log: list[Answer]
    ask: Callable[[str], Any]
    place: int = field(default=0)
    belief: Any = None
    """What the process believes."""
    memory: Any = ()
    """The orders that the process remembers."""

    def read(self, what: str) -> Any:
        """What the handler learns without giving control away: the time, an id."""
        if self.place == len(self.log):
            self.log.append(Returned(self.ask(what)))
        answer = self.log[self.place]
        self.place += 1
        return cast("Returned", answer).value

    def next(self) -> Answer | None:
        """The answer to an effect, if it is known."""
        if self.place == len(self.log):
            return None
        self.place += 1
        return self.log[self.place - 1]


@dataclass(frozen=True, slots=True)
class Ended:
    """The handler has returned, or raised."""

    error: Exception | None = None


Begin = Callable[[Tape, Handler], Coroutine[Any, Any, Any]]


def run(
    handler: Handler, begin: Begin, ask: Callable[[str], Any]
) -> tuple[Handler, PortCall | Ended]:
    """Run the handler on its log until it asks for something new, or ends."""
    tape = Tape(log=list(handler.log), ask=ask, belief=handler.belief, memory=handler.memory)
    coroutine = begin(tape, handler)
    try:
        effect = coroutine.send(None)
        while (answer := tape.next()) is not None:
            effect = (
                coroutine.throw(answer.error())
                if isinstance(answer, Raised)
                else coroutine.send(answer.value)
            )
    except StopIteration:
        return _stopped(handler, tape), Ended()
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is for the explorer to judge
        return _stopped(handler, tape), Ended(error)
    coroutine.close()
    if not isinstance(effect, PortCall):
        raise TypeError(f"a handler waits for what no port offers: {effect!r}")
    return _stopped(handler, tape, effect), effect


def _stopped(handler: Handler, tape: Tape, effect: PortCall | None = None) -> Handler:
    belief, memory = (
        (handler.belief, handler.memory) if effect else (tape.belief, tuple(tape.memory))
    )
    return replace(handler, log=tuple(tape.log), pending=effect, belief=belief, memory=memory)


async def one_after_another(work: Any, *, at_most: int = 64) -> list[Any]:
    """Stands in for `run_all`."""
    return results_of(await settle_one_by_one(work, at_most=at_most))


async def settle_one_by_one(
    work: Iterable[Coroutine[Any, Any, Any]], *, at_most: int = 64
) -> list[Any]:
    """Stands in for `settle_all`.

    One comes after another, where a world wants it, in either order.
    """
    del at_most
    coroutines = list(work)
    outcomes = [None] * len(coroutines)
    try:
        for place in await _places(len(coroutines)):
            outcomes[place] = await _outcome(coroutines[place])
    finally:
        for coroutine in coroutines:
            coroutine.close()  # else it would complain that it was never begun
    return outcomes


async def _places(count: int) -> Sequence[int]:
    places = range(count)
    return places[::-1] if count > 1 and await PortCall("choose") else places


async def _outcome(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - as `settle_all` does
        return error


def settled(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits, such as a method of the store in memory."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise asyncio.InvalidStateError("it waited")
