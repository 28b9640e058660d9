"""The effects of calls to the simulated services, and the faults that apply to them."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

from engine.declarations.business import REFERENCE, AgentDefinition, Application
from engine.declarations.service_forms import Body, Form
from engine.domain.digests import canonical_text
from engine.domain.errors import InvalidError
from engine.domain.messages import decode

BUSY_FOR_SECONDS = 5
"""The default pause that a `busy` service requests, in seconds."""

LONGEST_WAIT_SECONDS = 10.0
"""The default delay of answers for `hang` and `late`, in seconds. It is longer than callers wait.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedService:
    """The simulated service of one agent."""

    name: str
    """The capability. Agents that offer the same one share effects and keys, but not faults."""
    actions: frozenset[str]
    undoes: Mapping[str, str]
    """The action that each undo reverses. It is refused under the same key after its undo (UND-2).
    """
    refusal: str
    form: Form = field(default_factory=Form)
    """The form of the service's calls, as its agent declares it."""
    refuses_with: int = 422
    """The status of the service's refusals: the first one that its agent declares."""
    remembers_refusals: bool = False
    """Whether the service repeats a refusal for its key, and refuses a key with other content."""
    keys_last: timedelta | None = None
    """How long the service remembers a key. None means for ever."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """An example answer for each action."""
    marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]]
    """The marks that the business declares for calls. A fault can select calls by them."""


def simulated(business: Application) -> Mapping[str, SimulatedService]:
    """Make the service of each agent, with the actions that the workflows need."""
    return {agent.name: _service(agent, business) for agent in business.agents}


def _service(agent: AgentDefinition, business: Application) -> SimulatedService:
    every = chain.from_iterable(workflow.steps for workflow in business.workflows.all)
    steps = [step for step in every if step.capability == agent.offers]
    undoes = {step.compensation: step.operation for step in steps if step.compensation}
    actions = frozenset([*undoes, *(step.operation for step in steps)])
    return SimulatedService(
        name=agent.offers,
        actions=actions,
        undoes=undoes,
        refusal=agent.refusal,
        form=agent.form,
        refuses_with=next(iter(agent.refusals), 422),
        remembers_refusals=agent.remembers_refusals,
        keys_last=agent.keys_last,
        answers=agent.answers,
        marks=business.fault_marks,
    )


Name = Annotated[str, Field(min_length=1, max_length=64)]


class Match(BaseModel):
    """Selects the calls that a fault affects.

    Properties not listed here are marks of the business.
    """

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, alias_generator=to_camel, populate_by_name=True
    )
    __pydantic_extra__: dict[str, Name] = Field(init=False)
    order_id: Name | None = None
    action: Name | None = None

    @property
    def marks(self) -> Mapping[str, str]:
        """The marks that a call must have."""
        return self.__pydantic_extra__ or {}


class SimulatedFault(BaseModel):
    """The body of `PUT /simulator/{service}/faults`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True
    )
    mode: Literal[
        "none",
        "down",
        "slow",
        "flaky",
        "reject",
        "hang",
        "late",
        "busy",
        "unauthorized",
        "accept",
        "remember",
        "forget",
    ]
    latency_ms: Annotated[int, Field(ge=0, le=30_000)] | None = None
    """The delay of the answer for `slow`, `hang` and `late`.

    For `accept` it is the time until the deferred work is done. For `forget` it is the time for
    which a key is remembered.
    """
    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The share of calls that fail with `flaky`."""
    retry_after: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """The pause that `busy` requests, in seconds."""
    for_seconds: Annotated[float | None, Field(gt=0, le=86_400, alias="for")] = None
    """The fault expires after this time, in seconds."""
    match: Match = Match()

    def key(self) -> str:
        """Return the fault's key. It is unique for its match within its service."""
        text = json.dumps(self.match.model_dump(), sort_keys=True)
        return "all" if self.match == Match() else hashlib.sha256(text.encode()).hexdigest()[:16]

    def meets(
        self, action: str, call: "SimulatedCall", marks: Mapping[str, Collection[str]]
    ) -> bool:
        """Whether the fault applies to this call, which has these marks."""
        wanted = self.match
        fits = wanted.order_id in (None, call.order_id) and wanted.action in (None, action)
        return fits and all(value in marks.get(name, ()) for name, value in wanted.marks.items())


class SimulatedCall(BaseModel):
    """The body of a call to a service."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )
    order_id: Annotated[str, Field(min_length=1, max_length=64)]
    step: str = ""
    order: Mapping[str, Any] = {}


class PlainContent(RootModel[Mapping[str, Any]]):
    """The body of a call to a service that was not built for this app."""


def action_of(service: SimulatedService, method: str, path: str) -> str | None:
    """Return the action that is called at this path below the service's address, or None."""
    for action in sorted(service.actions):
        route = service.form.route(action)
        if route.method == method and route.leads_to(action, path):
            return action
    return None


def call_of(service: SimulatedService, action: str, key: str, body: bytes) -> SimulatedCall:
    """Return a call in the form that the agent declares. Raises `InvalidError`.

    If the body does not name the order and step, they come from the key, which begins with both.
    """
    has_body = service.form.route(action).has_body
    if has_body and service.form.body is Body.ENVELOPE:
        return decode(SimulatedCall, body)
    order_id, step, *_ = [*key.split(":"), ""]
    content = decode(PlainContent, body).root if has_body else {}
    return SimulatedCall(order_id=order_id, step=step, order=content)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedEffect:
    """An effect that happened. There is at most one for each key and action."""

    key: str
    action: str
    order_id: str
    at: datetime
    result: Mapping[str, Any]
    content: str = ""
    """The digest of the call's content, if the service refuses a key with other content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A refusal that is repeated for its key."""

    reason: str
    at: datetime
    content: str = ""
    """The same digest as in `SimulatedEffect`."""


class FaultInForce(SimulatedFault):
    """A fault with the time at which it expires."""

    until: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The course of a call: a delay, an answer, and perhaps an effect before or after the delay."""

    effect: bool = True
    effect_is_late: bool = False
    status: int = 200
    reason: str = ""
    delay_seconds: float = 0
    retry_after: timedelta | None = None
    """The pause that the answer requests."""
    done_after: timedelta | None = None
    """How long after its first call the action is done. None means immediately."""
    is_remembered: bool = False
    """Whether the call is refused for this reason, now and in each repeat with its key."""
    keys_last: timedelta | None = None
    """How long the service remembers a key. None means for ever."""


def in_force(faults: Iterable[FaultInForce], now: datetime) -> list[FaultInForce]:
    return [fault for fault in faults if fault.until is None or fault.until > now]


def check(service: SimulatedService, fault: SimulatedFault) -> None:
    """Raise `InvalidError` with every mark that the business does not declare."""
    unknown = sorted(fault.match.marks.keys() - service.marks.keys())
    if unknown:
        raise InvalidError(
            [f"match.{name[:40]}: the business knows no such mark" for name in unknown]
        )


def fault_for(
    service: SimulatedService, faults: Iterable[SimulatedFault], action: str, call: SimulatedCall
) -> SimulatedFault | None:
    """Return the fault for this call: first by its order, then by marks, then a general fault."""
    marks = {name: set(marks_of(call.order)) for name, marks_of in service.marks.items()}
    meeting = (fault for fault in faults if fault.meets(action, call, marks))
    return max(meeting, key=_precedence, default=None)


def _precedence(fault: SimulatedFault) -> tuple[bool, int, str]:
    """Rank the faults of a call. The key breaks ties, so that every host chooses the same fault."""
    return fault.match.order_id is not None, len(fault.match.marks), fault.key()


def plan(
    service: SimulatedService, fault: SimulatedFault | None, chance: float, calls: int = 1
) -> Plan:
    """Return the course of a call.

    `chance` is a random number from 0 to 1. `calls` is the number of calls with its key so far.
    """
    if fault is None:
        return Plan(keys_last=service.keys_last)
    wait = LONGEST_WAIT_SECONDS if fault.latency_ms is None else fault.latency_ms / 1000
    refused = Plan(effect=False, status=service.refuses_with, reason=service.refusal)
    remembered = Plan(is_remembered=True, reason=service.refusal)
    plans = {
        "none": Plan(),
        "down": Plan(effect=False, status=503, reason="the service is down"),
        "slow": Plan(delay_seconds=1.0 if fault.latency_ms is None else wait),
        "flaky": _flaky(fault.failure_rate, chance),
        "reject": remembered if service.remembers_refusals else refused,
        "hang": Plan(effect=False, status=504, reason="no answer", delay_seconds=wait),
        "late": Plan(
            effect_is_late=True, status=504, reason="the answer came too late", delay_seconds=wait
        ),
        "busy": _busy(fault.retry_after or BUSY_FOR_SECONDS),
        "unauthorized": UNAUTHORIZED if calls <= 1 else Plan(),
        "accept": Plan(done_after=timedelta(seconds=1.0 if fault.latency_ms is None else wait)),
        "remember": remembered,
        "forget": Plan(keys_last=timedelta(seconds=wait)),
    }
    found = plans[fault.mode]
    return replace(found, keys_last=found.keys_last or service.keys_last)


UNAUTHORIZED = Plan(effect=False, status=401, reason="the token is not accepted")
"""The course of the first call with a key, as if its token had just expired."""


def _busy(seconds: int) -> Plan:
    return Plan(
        effect=False, status=429, reason="too many calls", retry_after=timedelta(seconds=seconds)
    )


def _flaky(failure_rate: float, chance: float) -> Plan:
    """Return a success or a failure.

    Half of the failures come before the effect, and the others lose the answer.
    """
    if chance >= failure_rate:
        return Plan()
    if chance < failure_rate / 2:
        return Plan(effect=False, status=503, reason="the service stumbled")
    return Plan(status=502, reason="the answer was lost")


def content_of(service: SimulatedService, call: SimulatedCall) -> str:
    """Return the digest of a call's content. Empty if the service does not compare content."""
    if not service.remembers_refusals:
        return ""
    text = canonical_text(call.order)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def result_of(
    service: SimulatedService, action: str, key: str, call: SimulatedCall
) -> dict[str, Any]:
    """Return the result of a call, which is the same for every repeat.

    It contains the example of the agent's answer, a reference, and the amount of the request.
    """
    digest = hashlib.sha256(f"{service.name}:{action}:{key}".encode()).hexdigest()[:12]
    reference = f"{service.name}-{digest}"
    example = filled(service.answers.get(action, {}), reference)
    result = {"reference": reference, "action": action, **example}
    amount = call.order.get("amount")
    if isinstance(amount, str) and isinstance(example.get("amount", ""), str):
        result["amount"] = amount
    return result


def filled(example: Any, reference: str) -> Any:
    """Return an example answer. Each text that may be anything becomes the reference."""
    if isinstance(example, Mapping):
        return {name: filled(value, reference) for name, value in example.items()}
    if isinstance(example, list):
        return [filled(value, reference) for value in example]
    return reference if example == REFERENCE else example
