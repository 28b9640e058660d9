"""What the simulated services do with a call, and which fault meets it."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from core.business import Agent, Business
from core.errors import InvalidError

LONGEST_WAIT_SECONDS = 10.0
"""How long `hang` and `late` hold an answer back unless told otherwise: longer than callers wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """The simulated service of one agent."""

    name: str
    """Whose effects and keys these are: agents that offer the same share them, though each fails by itself."""
    actions: frozenset[str]
    undoes: Mapping[str, str]
    """Which action each undo takes back: under the same key it is refused from then on (UND-2)."""
    refusal: str
    marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]]
    """As the business declares them: by what a fault may tell the calls that it meets."""


def simulated(business: Business) -> Mapping[str, Service]:
    """Return the service of each agent, which does what the workflows ask of it."""
    return {agent.name: _service(agent, business) for agent in business.agents}


def _service(agent: Agent, business: Business) -> Service:
    every = chain.from_iterable(workflow.steps for workflow in business.workflows.all)
    steps = [step for step in every if step.capability == agent.offers]
    undoes = {step.compensation: step.operation for step in steps if step.compensation}
    actions = frozenset([*undoes, *(step.operation for step in steps)])
    return Service(
        name=agent.offers,
        actions=actions,
        undoes=undoes,
        refusal=agent.refusal,
        marks=business.fault_marks,
    )


Name = Annotated[str, Field(min_length=1, max_length=64)]


class Match(BaseModel):
    """Which calls a fault meets; what is not named here is a mark of the business."""

    model_config = ConfigDict(
        frozen=True, extra="allow", strict=True, alias_generator=to_camel, populate_by_name=True
    )
    __pydantic_extra__: dict[str, Name] = Field(init=False)
    order_id: Name | None = None
    action: Name | None = None

    @property
    def marks(self) -> Mapping[str, str]:
        """What the calls have to say of themselves."""
        return self.__pydantic_extra__ or {}


class Fault(BaseModel):
    """The body of `PUT /simulator/{service}/faults`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True
    )
    mode: Literal["none", "down", "slow", "flaky", "reject", "hang", "late"]
    latency_ms: Annotated[int, Field(ge=0, le=30_000)] | None = None
    """How long `slow`, `hang` and `late` hold the answer back."""
    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The share of calls that `flaky` lets fail."""
    for_seconds: Annotated[float | None, Field(gt=0, le=86_400, alias="for")] = None
    """After this time the fault lapses."""
    match: Match = Match()

    def key(self) -> str:
        """Return what tells this fault from others of its service."""
        text = json.dumps(self.match.model_dump(), sort_keys=True)
        return "all" if self.match == Match() else hashlib.sha256(text.encode()).hexdigest()[:16]

    def meets(self, action: str, call: "Call", marks: Mapping[str, Collection[str]]) -> bool:
        """Whether the fault is meant for this call, which has these marks."""
        wanted = self.match
        fits = wanted.order_id in (None, call.order_id) and wanted.action in (None, action)
        return fits and all(value in marks.get(name, ()) for name, value in wanted.marks.items())


class Call(BaseModel):
    """What a client asks of a service."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )
    order_id: Annotated[str, Field(min_length=1, max_length=64)]
    step: str = ""
    order: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Something that really happened: at most once for each key and action."""

    key: str
    action: str
    order_id: str
    at: datetime
    result: Mapping[str, Any]


class FaultInForce(Fault):
    """A fault, and when it lapses."""

    until: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What happens to one call: a delay, perhaps an effect before or after it, and an answer."""

    effect: bool = True
    effect_is_late: bool = False
    status: int = 200
    reason: str = ""
    delay_seconds: float = 0


def in_force(faults: Iterable[FaultInForce], now: datetime) -> list[FaultInForce]:
    """Return the faults that have not lapsed."""
    return [fault for fault in faults if fault.until is None or fault.until > now]


def check(service: Service, fault: Fault) -> None:
    """Raise `InvalidError` with every mark by which no call of the service can be told."""
    unknown = fault.match.marks.keys() - service.marks.keys()
    if unknown:
        raise InvalidError(
            [f"match.{name[:40]}: the business knows no such mark" for name in sorted(unknown)]
        )


def fault_for(service: Service, faults: Iterable[Fault], action: str, call: Call) -> Fault | None:
    """Return the fault that meets this call: one for its order comes before one for a mark, and that before all."""
    marks = {name: set(said(call.order)) for name, said in service.marks.items()}
    meeting = (fault for fault in faults if fault.meets(action, call, marks))
    return max(meeting, key=_precedence, default=None)


def _precedence(fault: Fault) -> tuple[bool, int, str]:
    """Rank the faults that meet one call; the key comes last, so that every host takes the same one of two equals."""
    return fault.match.order_id is not None, len(fault.match.marks), fault.key()


def plan(service: Service, fault: Fault | None, chance: float) -> Plan:
    """Return what a call meets; `chance` is a random number from 0 to 1."""
    if fault is None:
        return Plan()
    wait = LONGEST_WAIT_SECONDS if fault.latency_ms is None else fault.latency_ms / 1000
    plans = {
        "none": Plan(),
        "down": Plan(effect=False, status=503, reason="the service is down"),
        "slow": Plan(delay_seconds=1.0 if fault.latency_ms is None else wait),
        "flaky": _flaky(fault.failure_rate, chance),
        "reject": Plan(effect=False, status=422, reason=service.refusal),
        "hang": Plan(effect=False, status=504, reason="no answer", delay_seconds=wait),
        "late": Plan(
            effect_is_late=True, status=504, reason="the answer came too late", delay_seconds=wait
        ),
    }
    return plans[fault.mode]


def _flaky(failure_rate: float, chance: float) -> Plan:
    """Half of the failures come before the effect, the other half lose the answer after it."""
    if chance >= failure_rate:
        return Plan()
    if chance < failure_rate / 2:
        return Plan(effect=False, status=503, reason="the service stumbled")
    return Plan(status=502, reason="the answer was lost")


def result_of(service: str, action: str, key: str, call: Call) -> dict[str, Any]:
    """Return what the service answers; the same for every repetition."""
    reference = hashlib.sha256(f"{service}:{action}:{key}".encode()).hexdigest()[:12]
    amount = call.order.get("amount")
    return {"reference": f"{service}-{reference}", "action": action} | (
        {"amount": amount} if isinstance(amount, str) else {}
    )
