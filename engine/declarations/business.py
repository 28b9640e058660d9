"""The declarations of a business: its workflows, its agents and its payload."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import Any

from pydantic import BaseModel

from engine.declarations.activities import ActivityFunction
from engine.declarations.credentials import OAUTH_SCOPE, SCOPE, SETTING, Auth, Setting
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import Form
from engine.declarations.workflow import DeclarationError, StepDefaults, Workflows
from engine.domain import backoff, exact_json
from engine.domain.digests import canonical_text
from engine.domain.errors import InputFault, InvalidError, as_one
from engine.domain.messages import SCHEDULER_REQUESTS, STEP_NAME, requests_queue, utf16_units
from engine.domain.steps import Step, StepRules
from engine.domain.submitted_order import EXTERNAL_PARTY

MAX_PAYLOAD = 32 * 1024
"""The longest payload as compact JSON, in UTF-16 units: one property of a table can hold it."""


HIDDEN = "hidden"
"""The text in place of personal data that is there, and not shown."""

MAX_KEY = 50
"""How many characters a key can have: a row key holds them, even if each has to be escaped."""
MAX_KEYS = 10
"""How many keys an order can have: each is a row of the transaction that records the order."""


NO_DEFAULTS = StepDefaults()


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """The business's functions on a payload, a JSON object.

    `check` gets new submissions. The others get recorded payloads, even of another version, so they
    may not raise.
    """

    check: Callable[[Mapping[str, Any]], None]
    """Raises `InvalidError` with all faults.

    Raises `UnknownNameError` if a newer version of the app may accept the payload.
    """
    erased: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Returns the payload without personal data; an erased one is returned unchanged."""
    personal: Callable[[Mapping[str, Any]], Iterable[str]]
    """Returns the values that no log and no history may show."""
    belongs_to: Callable[[Mapping[str, Any], str], bool]
    """Returns whether the order belongs to the person whom an operator looks for."""
    keys: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _: ()
    """Returns the values by which the business names the order; they are never personal."""
    text: Callable[[Mapping[str, Any]], str] = canonical_text
    """Returns a text that payloads of the same content have in common, erased ones too."""

    def hidden(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the payload as operators see it: personal data is hidden, unless it is erased."""
        return dict(_hidden(payload, self.erased(payload)))

    def accept(self, payload: Mapping[str, Any]) -> None:
        """Raise `InvalidError`, as `check` does, if no new order may have this payload."""
        errors = []
        for check in (self._check_rows, self.check):
            try:
                check(payload)
            except InvalidError as error:
                errors.append(error)
        if errors:
            raise as_one(errors)

    def distinct_keys(self, payload: Mapping[str, Any]) -> list[str]:
        """Return the keys of an order, each once."""
        return list(dict.fromkeys(self.keys(payload)))

    def _check_rows(self, payload: Mapping[str, Any]) -> None:
        """Raise `InvalidError` if rows cannot hold the payload, now or after its erasure."""
        faults = [*self._faults_of_length(payload), *self._faults_of_keys(payload)]
        if faults:
            raise InvalidError(faults)

    def _faults_of_length(self, payload: Mapping[str, Any]) -> Iterator[InputFault]:
        versions = (payload, self.erased(payload))
        try:
            texts = [exact_json.write(version) for version in versions]
        except ValueError as fault:
            yield InputFault("body", "no-json", {"error": str(fault)})
            return
        length = max(map(utf16_units, texts))
        if length > MAX_PAYLOAD:
            yield InputFault("body", "content-too-long", {"length": length, "limit": MAX_PAYLOAD})

    def _faults_of_keys(self, payload: Mapping[str, Any]) -> Iterator[InputFault]:
        keys = self.distinct_keys(payload)
        if len(keys) > MAX_KEYS:
            yield InputFault("body", "too-many-keys", {"length": len(keys), "limit": MAX_KEYS})
        longest = max(map(len, keys), default=0)
        if longest > MAX_KEY:
            yield InputFault("body", "key-too-long", {"length": longest, "limit": MAX_KEY})


def _hidden(value: Any, erased: Any) -> Any:
    """Return the value with `HIDDEN` in place of all that an erasure would change."""
    if isinstance(value, Mapping) and isinstance(erased, Mapping):
        return {name: _hidden(value.get(name), member) for name, member in erased.items()}
    if isinstance(value, list) and isinstance(erased, list) and len(value) == len(erased):
        return [_hidden(*pair) for pair in zip(value, erased, strict=True)]
    return value if value == erased else HIDDEN


PASSING = (408, 425, 429)
"""Statuses by which a service, or a gateway before it, asks for another call later."""


REFERENCE = "{reference}"
"""The text of an example that is another one for each call."""
READ = "a value that its functions read"
"""What the settings hold that the functions of an agent read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentDefinition:
    """One agent, from which its queues, settings and simulated service follow (AGT-1)."""

    name: str
    offers: str
    """Its capability; of several agents that share it, the first one is preferred (AGT-10)."""
    address: str
    """The setting that holds the address of its service; empty if all operations are functions."""
    optional: bool = False
    """Whether the app runs without the agent if that setting is empty."""
    calls_in_flight: int = 100
    """How many concurrent calls its service takes, from all instances together.

    A setting can replace this number.
    """
    refusals: tuple[int, ...] = ()
    """The statuses of a final refusal, besides 422, such as 402 for a declined card."""
    provider: str | None = None
    """The provider whose services share idempotency keys; None if this service shares none."""
    answer_within: timedelta | None = None
    """How long the service may take for what it answered with 202; None if it never does so."""
    calls_back: bool = False
    """Whether the service answers over its link (ANS-6) what it answered with 202 and no time."""
    remembers_refusals: bool = False
    """Whether the service repeats a refusal for its idempotency key, whatever has changed since."""
    keys_last: timedelta | None = None
    """How long the service remembers an idempotency key; None for longer than any order takes."""
    refusal: str = "refused"
    """The reason of its simulated service for a refusal."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """By operation an example of its service's answer, which the simulated service gives."""
    form: Form = field(default_factory=Form, hash=False)
    """The form of the calls to its service."""
    auth: Auth | None = None
    """How its service is shown who calls.

    None for a token of the app's identity if a setting names its scope, and nothing else.
    """
    code: Mapping[str, ActivityFunction] = field(default_factory=dict, hash=False)
    """Its operations that are functions of the business, and not called over HTTP."""
    reads: tuple[str, ...] = ()
    """The settings that these functions read; any may be a secret."""

    @property
    def place(self) -> str:
        """The place of its faults."""
        return f"agent {self.name}"

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings that the agent reads; an optional agent that has no address reads none."""
        address = Setting(name=self.address, meaning=f"the address of the {self.name} service")
        others = (*self.auth_settings, *self.code_settings)
        named = (address, *others) if self.address else others
        optional = self.optional and self.address
        return tuple(
            replace(setting, required=setting.required and not optional) for setting in named
        )

    @property
    def code_settings(self) -> tuple[Setting, ...]:
        """The settings that its functions read."""
        return tuple(Setting(name=name, secret=True, meaning=READ) for name in self.reads)

    @property
    def auth_settings(self) -> tuple[Setting, ...]:
        """The settings by which a call over HTTP shows who calls."""
        if self.auth is not None:
            return self.auth.settings(self.address)
        if not self.address:
            return ()
        name = self.address + SCOPE
        return (Setting(name=name, required=False, meaning=OAUTH_SCOPE),)

    def __post_init__(self) -> None:
        """Raise `DeclarationError` for statuses that are no refusal, or that may pass."""
        faults = [
            Fault(FaultCode.NOT_A_REFUSAL, self.place, status=status, excluded=PASSING)
            for status in self.refusals
            if not 400 <= status < 500 or status in PASSING
        ]
        if faults:
            raise DeclarationError(faults)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sample order for people who try out the app with simulated services."""

    payload: Mapping[str, Any]
    """The fields that only the business understands, without data of a real person."""
    workflow: str | None = None
    """The name of its workflow; None for the default one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointDefinition:
    """The calls by which orders of one workflow are placed, followed and cancelled over HTTP."""

    workflow: str
    content: type[BaseModel]
    """The model of what is sent: the payload."""
    open: bool
    """Whether everybody may call it; otherwise only operators may."""
    cancel_until: str | None = None
    """The step until whose begin customers may cancel an order; None if they never may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Application:
    """The declarations of one business, which the engine runs."""

    workflows: Workflows
    """Every workflow, in every version that orders in flight may still follow."""
    default_workflow: str
    """The workflow of a submission that names none."""
    agents: Sequence[AgentDefinition]
    """The agents that carry out the steps."""
    payload: Payload
    endpoints: Sequence[EndpointDefinition] = ()
    """One endpoint for each workflow that has one; all versions of it share the endpoint."""
    sample: Sample | None = None
    greeting: str = ""
    """What a person who has just started the app may do first; `{url}` stands for its address."""
    fault_marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = field(
        default_factory=dict
    )
    """The marks of a request by which faults of a simulated service can be chosen.

    Each function returns the values of its mark in a request's content. They get any request, so
    they may not raise. Faults can also be chosen by order and by action.
    """

    @property
    def waits_for_events(self) -> bool:
        """Whether a workflow waits for answers from outside (ANS-1)."""
        return any(workflow.waits_for_events for workflow in self.workflows.all)

    def check(
        self,
        deployed: Sequence[AgentDefinition],
        defaults: StepDefaults = NO_DEFAULTS,
        *,
        reply_margin: timedelta = timedelta(),
    ) -> None:
        """Raise `DeclarationError` with every fault, given the agents of this deployment.

        `reply_margin` is how long before the complete-by time an agent stops (AGT-4).
        """
        faults = [*_faults_of(self.agents), *self.workflows.faults(offers_of(deployed))]
        for workflow in self.workflows.all:
            steps = workflow.initial_steps(defaults)
            of_steps = (*_outlasting_keys(steps, deployed), *_without_time(steps, reply_margin))
            faults += [fault.within(workflow.place) for fault in of_steps]
        faults += self._unknown_workflow("default_workflow", self.default_workflow)
        faults += self._faults_of_code()
        faults += self._faults_of_sample()
        faults += chain.from_iterable(map(self._faults_of_endpoint, self.endpoints))
        if faults:
            raise DeclarationError(faults)

    def _unknown_workflow(self, place: str, name: str) -> Iterator[Fault]:
        if self.workflows.latest(name) is None:
            yield Fault(FaultCode.UNKNOWN_WORKFLOW, place, workflow=name)

    def _faults_of_code(self) -> Iterator[Fault]:
        """Yield the operations that have neither a function nor an address."""
        requested = {
            (step.capability, operation)
            for workflow in self.workflows.all
            for step in workflow.steps
            for operation in (step.operation, step.compensation)
            if operation
        }
        for agent in self.agents:
            for capability, operation in sorted(requested):
                offered = capability == agent.offers and operation not in agent.code
                if offered and not agent.address:
                    yield Fault(FaultCode.OPERATION_NOT_REACHABLE, agent.place, operation=operation)

    def _faults_of_sample(self) -> Iterator[Fault]:
        if self.sample is None:
            return
        if self.sample.workflow:
            yield from self._unknown_workflow("sample", self.sample.workflow)
        try:
            self.payload.accept(self.sample.payload)
        except InvalidError as error:
            for message in error.faults:
                yield Fault(FaultCode.SAMPLE_INVALID, "sample", message=str(message))

    def _faults_of_endpoint(self, endpoint: EndpointDefinition) -> Iterator[Fault]:
        workflow = self.workflows.latest(endpoint.workflow)
        if workflow is None:
            yield from self._unknown_workflow("endpoint", endpoint.workflow)
            return
        names = [step.name for step in workflow.steps]
        if endpoint.cancel_until is not None and endpoint.cancel_until not in names:
            place = f"{workflow.place}: endpoint"
            fault = Fault(FaultCode.ENDPOINT_STEP_UNKNOWN, place, step=endpoint.cancel_until)
            yield fault.like(endpoint.cancel_until, names)


def _faults_of(agents: Sequence[AgentDefinition]) -> Iterator[Fault]:
    """Yield the faults of agents, whose names are parts of row keys, queues and functions."""
    for agent in agents:
        faults = chain(
            _faults_of_names(agent),
            _faults_of_calls(agent),
            _faults_of_times(agent),
        )
        yield from (fault.within(agent.place) for fault in faults)
    counted = Counter(agent.place for agent in agents)
    for place, count in counted.items():
        if count > 1:
            yield Fault(FaultCode.DUPLICATE_AGENT, place)


def _faults_of_names(agent: AgentDefinition) -> Iterator[Fault]:
    if not re.fullmatch(STEP_NAME, agent.name):
        yield Fault(FaultCode.PATTERN_MISMATCH, field="name", value=agent.name, pattern=STEP_NAME)
    if requests_queue(agent.name) == SCHEDULER_REQUESTS:
        yield Fault(FaultCode.QUEUE_OF_SCHEDULER, queue=SCHEDULER_REQUESTS)
    if agent.offers == EXTERNAL_PARTY:
        yield Fault(FaultCode.CAPABILITY_RESERVED, capability=EXTERNAL_PARTY)
    if not re.fullmatch(STEP_NAME, agent.offers):
        yield Fault(
            FaultCode.PATTERN_MISMATCH, field="capability", value=agent.offers, pattern=STEP_NAME
        )


def _faults_of_calls(agent: AgentDefinition) -> Iterator[Fault]:
    """Yield the faults in number and form of the agent's calls, and in how it shows who calls."""
    if agent.calls_in_flight < 1:
        yield Fault(FaultCode.NOT_POSITIVE, field="calls_in_flight", value=agent.calls_in_flight)
    yield from agent.form.faults()
    if agent.auth is not None:
        yield from (fault.within("auth") for fault in agent.auth.faults())
    if agent.auth is not None and not agent.address:
        yield Fault(FaultCode.AUTH_WITHOUT_CALLS)
    for setting in agent.settings:
        if not SETTING.fullmatch(setting.name):
            yield Fault(
                FaultCode.PATTERN_MISMATCH,
                field="setting",
                value=setting.name,
                pattern=SETTING.pattern,
            )


def is_simulated(agent: str, address: str) -> bool:
    """Whether the address leads to the simulated service of the agent.

    Such a service is called in the form that the agent declares, and is shown nothing.
    """
    return address.rstrip("/").endswith(f"/simulator/{agent}")


def _faults_of_times(agent: AgentDefinition) -> Iterator[Fault]:
    """Yield the faults of the times that an agent declares of its service."""
    for name in ("answer_within", "keys_last"):
        time = getattr(agent, name)
        if time is not None and time <= timedelta():
            yield Fault(FaultCode.NOT_POSITIVE, field=name, value=time)
    within, last = agent.answer_within, agent.keys_last
    if agent.calls_back and not within:
        yield Fault(FaultCode.CALLBACK_WITHOUT_TIME)
    if within and last and within > last:
        yield Fault(FaultCode.ANSWER_OUTLASTS_KEY, answer_within=within, keys_last=last)


def _outlasting_keys(steps: Sequence[Step], agents: Sequence[AgentDefinition]) -> Iterator[Fault]:
    """Yield a fault for each time after which a service may have forgotten a step's key."""
    for step in steps:
        place, rules = f"step {step.name}", step.rules
        attempts = _longest_attempts(rules)
        for agent in agents:
            if agent.offers != rules.capability or agent.keys_last is None:
                continue
            if rules.cooldown > agent.keys_last:
                yield Fault(
                    FaultCode.COOLDOWN_OUTLASTS_KEY,
                    place,
                    time=rules.cooldown,
                    agent=agent.name,
                    keys_last=agent.keys_last,
                )
            if attempts > agent.keys_last:
                yield Fault(
                    FaultCode.ATTEMPTS_OUTLAST_KEY,
                    place,
                    attempts=rules.threshold,
                    time=attempts,
                    agent=agent.name,
                    keys_last=agent.keys_last,
                )


def _longest_attempts(rules: StepRules) -> timedelta:
    """Return how long the attempts up to the threshold take at most, with the pauses between."""
    timeout, longest = rules.timeout, rules.max_retry_pause
    pauses = (
        backoff.longest_retry_pause(failures, timeout=timeout, longest=longest)
        for failures in range(1, rules.threshold)
    )
    return sum(pauses, timeout * rules.threshold)


def _without_time(steps: Sequence[Step], reply_margin: timedelta) -> Iterator[Fault]:
    """Yield a fault for each step whose agent would drop every request as too late (AGT-4)."""
    for step in steps:
        timeout = step.rules.timeout
        if not step.is_external and timedelta() < timeout <= reply_margin:
            yield Fault(
                FaultCode.TIMEOUT_WITHIN_MARGIN,
                f"step {step.name}",
                timeout=timeout,
                margin=reply_margin,
            )


def offers_of(agents: Sequence[AgentDefinition]) -> Mapping[str, Sequence[str]]:
    """Return the agents that offer each capability, the preferred first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
