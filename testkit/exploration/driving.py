"""Runs a handler step by step. It stops at each effect, and the explorer chooses the outcome.

A coroutine cannot be copied. So the answers that a handler got are kept in its log. To continue in
two ways, the handler is run twice from its start with the same log. This works because a handler
learns everything about the world through the log: the results of its effects, the time, and the ids
that it draws.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from engine.concurrency import results_of


@dataclass(frozen=True, slots=True)
class PortCall:
    """A call by a handler to a port. Awaiting it hands control to the explorer."""

    name: str
    args: tuple[Any, ...] = ()

    def __await__(self) -> Generator["PortCall", Any, Any]:
        return (yield self)


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of a call to a port."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The error of a call to a port.

    It is created for each use, because an exception collects tracebacks.
    """

    kind: type[Exception]
    text: str = "it was away"
    more: tuple[tuple[str, Any], ...] = ()
    """The other arguments of the error, by name."""

    def error(self) -> Exception:
        return self.kind(self.text, **dict(self.more))


Answer = Returned | Raised


class HealthRows(list[Any]):
    """The agents' health rows in one reading.

    The type distinguishes them from other lists in a log.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The start of a handler: a message, a timer or a person."""

    kind: str
    body: str = ""
    agent: str = ""
    """The agent whose queue delivered a reply."""
    expires: Any = None
    step: str = ""
    """The step that a person answers, or an operator settles."""
    done: bool = False
    """Whether the operator found that the step was done."""
    token: str = ""
    """The token of the callback URL at which a service answers."""

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A running invocation: the answers so far, and the call that it waits for."""

    slot: str
    job: Job
    log: tuple[Answer, ...] = ()
    pending: PortCall | None = None
    since: Any = None
    """When it began to wait."""
    belief: Any = None
    """The belief of its process when it began, or, after its end, the belief then."""
    memory: Any = ()
    """The orders that its process remembered when it began, or, after its end, those then."""

    def with_answer(self, answer: Answer) -> "Handler":
        """Return the handler with one more answer."""
        return replace(self, log=(*self.log, answer))


@dataclass(kw_only=True)
class Tape:
    """Replays a handler's log. Calls beyond the log go to the world, and are recorded."""

    log: list[Answer]
    ask: Callable[[str], Any]
    place: int = field(default=0)
    belief: Any = None
    """The belief of the process."""
    memory: Any = ()
    """The orders that the process remembers."""

    def read(self, what: str) -> Any:
        """Return a value that the handler gets without giving up control: the time, or an id."""
        if self.place == len(self.log):
            self.log.append(Returned(self.ask(what)))
        answer = self.log[self.place]
        self.place += 1
        return cast("Returned", answer).value

    def next(self) -> Answer | None:
        """Return the answer to an effect, if it is in the log."""
        if self.place == len(self.log):
            return None
        self.place += 1
        return self.log[self.place - 1]


@dataclass(frozen=True, slots=True)
class Ended:
    """The handler has returned or raised."""

    error: Exception | None = None


Begin = Callable[[Tape, Handler], Coroutine[Any, Any, Any]]


def run(
    handler: Handler, begin: Begin, ask: Callable[[str], Any]
) -> tuple[Handler, PortCall | Ended]:
    """Run the handler on its log until it makes a new call or ends."""
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
    """Replaces `run_all`."""
    return results_of(await settle_one_by_one(work, at_most=at_most))


async def settle_one_by_one(
    work: Iterable[Coroutine[Any, Any, Any]], *, at_most: int = 64
) -> list[Any]:
    """Replaces `settle_all`.

    The work is done one after another. If the world requests it, this is done in both orders.
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
    """Return the result of a coroutine that never waits, such as a method of `MemoryStateStore`."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise asyncio.InvalidStateError("it waited")
