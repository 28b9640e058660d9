"""Tries a service against the contract of `docs/reference/agents.md`, from outside.

Each check makes a few calls and compares the answers. The number of effects is only known from the
answers: two effects with the same answer look like one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import uuid4


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """An answer of the service. Its content is None if it is not a JSON object."""

    status: int
    content: Mapping[str, Any] | None = None

    @property
    def is_done(self) -> bool:
        """Whether the operation was done, in the view of an agent."""
        return 200 <= self.status < 300 and self.status != 202 and self.content is not None

    def __str__(self) -> str:
        return str(self.status) + ("" if self.content is not None else " without a JSON object")


Post = Callable[[str, str, Mapping[str, Any]], Awaitable[CallResult]]
"""Calls an operation with a key and a content."""


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    """The service keeps the contract, and the author of the agent should know about this result."""
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of one check, with its explanation."""

    name: str
    verdict: Verdict
    what: str
    """What the service did, and what it means."""


@dataclass(frozen=True, kw_only=True)
class CheckedService:
    """A service, and the calls that the checks make to it."""

    post: Post
    do: str
    """The operation that is checked."""
    undo: str | None
    """The operation that undoes it. None if there is none."""
    content: Mapping[str, Any]
    """The content of the request."""
    other: Mapping[str, Any] | None = None
    """Another valid content. None if this check is left out."""
    refused: Mapping[str, Any] | None = None
    """A content that the service refuses permanently. None if this check is left out."""
    refusals: Collection[int] = ()
    """The statuses of a final refusal that the agent declares, besides 422 and 410."""
    undo_needs_answer: bool = False
    """Whether the undo needs the answer to the operation that it undoes."""

    @property
    def effects(self) -> int:
        """The most effects that the checks have on a service that keeps the contract."""
        return 3 + sum(given is not None for given in (self.undo, self.other, self.refused))


async def findings(service: CheckedService) -> AsyncIterator[CheckResult]:
    """Yield the result of each check when it ends."""
    yield await same_key_twice(service)
    yield await twice_at_once(service)
    if service.other is not None:
        yield await other_content(service, service.other)
    if service.undo is not None:
        if not service.undo_needs_answer:
            yield await undo_of_unknown(service, service.undo)
        yield await undo_of_done(service, service.undo)
    if service.refused is not None:
        yield await refusal(service, service.refused)


async def same_key_twice(service: CheckedService) -> CheckResult:
    """Expect the same answer for the same key, and a different answer for another key."""
    name, key = "the same key twice", _new_key()
    first = await service.post(service.do, key, service.content)
    again = await service.post(service.do, key, service.content)
    other = await service.post(service.do, _new_key(), service.content)
    if not first.is_done:
        return _failed(name, f"the service answered {service.do} with {first}; expected 2xx")
    if again != first:
        return _failed(
            name,
            f"the second call differs, perhaps by a second effect: {_difference(first, again)}",
        )
    if other == first:
        what = "one answer, but another key got the same answer; the number of effects is unknown"
        return CheckResult(name=name, verdict=Verdict.NOTE, what=what)
    return _ok(name, "one effect, and the same answer")


async def twice_at_once(service: CheckedService) -> CheckResult:
    """Expect that of two concurrent calls, one is done, and the other waits or gets a 409."""
    name, key = "two calls at the same time", _new_key()
    both = await asyncio.gather(*(service.post(service.do, key, service.content) for _ in range(2)))
    after = await service.post(service.do, key, service.content)
    done = [result for result in both if result.is_done]
    if wrong := [result for result in both if not result.is_done and result.status != 409]:
        return _failed(
            name,
            f"the service answered one call with {wrong[0]}; expected 409, or the other answer",
        )
    if not done:
        return _failed(name, "the service answered both calls with 409, so the work is not done")
    if different := [result for result in [*done, after] if result != done[0]]:
        return _failed(
            name,
            f"the calls differ, perhaps by a second effect: {_difference(done[0], different[0])}",
        )
    return _ok(
        name, "409 while the first call runs" if len(done) == 1 else "the same answer for both"
    )


async def other_content(service: CheckedService, content: Mapping[str, Any]) -> CheckResult:
    """Expect that a key is refused after it was used for other content."""
    name, key = "the same key, other content", _new_key()
    first = await service.post(service.do, key, service.content)
    other = await service.post(service.do, key, content)
    if other.status in {422, *service.refusals}:
        return _ok(name, f"{other.status}: refused")
    if other == first:
        what = (
            "the first answer again: no second effect, but the caller does not notice the mistake"
        )
        return CheckResult(name=name, verdict=Verdict.NOTE, what=what)
    return _failed(name, f"{_difference(first, other)}; expected 422")


async def undo_of_unknown(service: CheckedService, undo: str) -> CheckResult:
    """Expect that after an undo of an unknown key, the key is refused."""
    name, key = "undo of an unknown key", _new_key()
    undone = await service.post(undo, key, {**service.content, "result": {}})
    if not undone.is_done:
        return _failed(name, f"the service answered {undo} with {undone}; expected 2xx")
    done = await service.post(service.do, key, service.content)
    if done.status not in {410, *service.refusals}:
        what = f"the service answered a later {service.do} with {done}; expected 410, since"
        return _failed(name, f"{what} a late call would take effect")
    return _ok(name, f"undone, and {done.status} for later calls")


async def undo_of_done(service: CheckedService, undo: str) -> CheckResult:
    """Expect that an undo can be repeated, and that what was undone is not done again."""
    name, key = "undo of a done operation", _new_key()
    first = await service.post(service.do, key, service.content)
    content = {**service.content, "result": first.content or {}}
    undone = await service.post(undo, key, content)
    again = await service.post(undo, key, content)
    if not undone.is_done:
        return _failed(name, f"the service answered {undo} with {undone}; expected 2xx")
    if again != undone:
        return _failed(name, f"a second {undo} differs: {_difference(undone, again)}")
    done = await service.post(service.do, key, service.content)
    if done.status not in {410, *service.refusals}:
        return _failed(name, f"the service answered a later {service.do} with {done}; expected 410")
    return _ok(name, f"undone once, and {done.status} for later calls")


async def refusal(service: CheckedService, refused: Mapping[str, Any]) -> CheckResult:
    """Expect a final status, and report whether the key stays refused."""
    name, key = "a refusal", _new_key()
    first = await service.post(service.do, key, refused)
    if not 400 <= first.status < 500 or first.status in (408, 409, 425, 429):
        return _failed(name, f"the service answered {first}; expected a final status, such as 422")
    final = {410, 422, *service.refusals}
    statuses = "" if first.status in final else f"declare refusals=({first.status},); "
    again = await service.post(service.do, key, service.content)
    if again.is_done:
        remembers = "the key is free again, so the service remembers no refusals"
    elif {first.status, again.status} <= final:
        remembers = "the key stays refused, so declare remembers_refusals=True"
    else:
        remembers = (
            f"unknown whether the key stays refused: the next call was answered with {again}"
        )
    return CheckResult(
        name=name, verdict=Verdict.NOTE, what=f"{first.status}; {statuses}{remembers}"
    )


def _new_key() -> str:
    return f"testkit-check-{uuid4().hex}:check"


def _ok(name: str, what: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.OK, what=what)


def _failed(name: str, what: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.FAILED, what=what)


def _difference(one: CallResult, other: CallResult) -> str:
    """Describe how two answers differ, without their content, which may be personal."""
    if one.status != other.status:
        return f"{one} and {other}"
    names = {name for result in (one, other) for name in result.content or {}}
    differ = [
        name
        for name in sorted(names)
        if (one.content or {}).get(name) != (other.content or {}).get(name)
    ]
    return f"different answers ({json.dumps(differ)[:100]})"
