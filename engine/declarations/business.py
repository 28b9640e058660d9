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
"""Maximum length of the payload as compact JSON, in UTF-16 units. One property of a table row can
hold it."""


HIDDEN = "hidden"
"""The text in place of personal data that exists but is not shown."""

# A row key can hold them, even if each character has to be escaped.
MAX_KEY = 50
"""Maximum number of characters of a business key."""
# Each key is a row in the transaction that records the order.
MAX_KEYS = 10
"""Maximum number of business keys of an order."""


NO_DEFAULTS = StepDefaults()


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """The business's functions on a payload, which is a JSON object.

    `check` gets new submissions. The other functions get recorded payloads, possibly of another
    version, so they must not raise.
    """

    check: Callable[[Mapping[str, Any]], None]
    """Raises `InvalidError` with all faults. Raises `UnknownNameError` if a newer version of the
    app may accept the payload."""
    erased: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Returns the payload without personal data. An erased payload is returned unchanged."""
    personal: Callable[[Mapping[str, Any]], Iterable[str]]
    """Returns the values that must not appear in any log or history."""
    belongs_to: Callable[[Mapping[str, Any], str], bool]
    """Returns whether the order belongs to the person whom an operator searches for."""
    keys: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _: ()
    """Returns the business keys of the order. They are never personal."""
    text: Callable[[Mapping[str, Any]], str] = canonical_text
    """Returns a text that is the same for payloads with the same content, including erased
    payloads."""

    def hidden(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the payload as operators see it, with personal data hidden unless it is erased."""
        return dict(_hidden(payload, self.erased(payload)))

    def accept(self, payload: Mapping[str, Any]) -> None:
        """Raise `InvalidError` if no new order may have this payload (see `check`)."""
        errors = []
        for check in (self._check_rows, self.check):
            try:
                check(payload)
            except InvalidError as error:
                errors.append(error)
        if errors:
            raise as_one(errors)

    def distinct_keys(self, payload: Mapping[str, Any]) -> list[str]:
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
    """Return the value with `HIDDEN` in place of everything that an erasure would change."""
    if isinstance(value, Mapping) and isinstance(erased, Mapping):
        return {name: _hidden(value.get(name), member) for name, member in erased.items()}
    if isinstance(value, list) and isinstance(erased, list) and len(value) == len(erased):
        return [_hidden(*pair) for pair in zip(value, erased, strict=True)]
    return value if value == erased else HIDDEN


PASSING = (408, 425, 429)
"""Statuses by which a service, or a gateway before it, requests another call later."""


REFERENCE = "{reference}"
"""The text in an example that is replaced by a different reference in each call."""
READ = "a value that its functions read"
"""The meaning of the settings that an agent's functions read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentDefinition:
    """One agent. Its queues, settings and simulated service follow from this definition (AGT-1)."""

    name: str
    offers: str
    """The capability of the agent. If several agents share it, the first one is preferred
    (AGT-10)."""
    address: str
    """The setting with the address of the service, or empty if all operations are functions."""
    optional: bool = False
    """Whether the app runs without the agent if the address setting is empty."""
    calls_in_flight: int = 100
    """How many concurrent calls the service takes. A process makes at most this number, and all
    processes together make at most about twice this number. A setting can override it."""
    refusals: tuple[int, ...] = ()
    """The statuses of a final refusal in addition to 422, for example 402 for a declined card."""
    provider: str | None = None
    """The provider whose services share idempotency keys, or None if this service shares none."""
    answer_within: timedelta | None = None
    """The time in which the service finishes the work that it accepted with 202, or None if it
    never answers 202."""
    calls_back: bool = False
    """Whether the service uses the callback URL (ANS-6) if it answered 202 without a time."""
    remembers_refusals: bool = False
    """Whether the service repeats a refusal for the same idempotency key, whatever has changed
    since."""
    keys_last: timedelta | None = None
    """How long the service remembers an idempotency key, or None for longer than any order
    takes."""
    refusal: str = "refused"
    """The reason for a refusal by the simulated service."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """For each operation, an example of the service's answer. The simulated service returns it."""
    form: Form = field(default_factory=Form, hash=False)
    auth: Auth | None = None
    """The authentication of the calls. With None, calls have a token of the app's identity if a
    setting has its scope. Otherwise they have no credentials."""
    code: Mapping[str, ActivityFunction] = field(default_factory=dict, hash=False)
    """The operations that are functions of the business and are not called over HTTP."""
    reads: tuple[str, ...] = ()
    """The settings that these functions read. Any of them may be a secret."""

    @property
    def place(self) -> str:
        """The place that faults of this agent name."""
        return f"agent {self.name}"

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings that the agent reads.

        An optional agent may be switched off by an empty address, so none of its settings is
        required.
        """
        address = Setting(name=self.address, meaning=f"the address of the {self.name} service")
        others = (*self.auth_settings, *self.code_settings)
        named = (address, *others) if self.address else others
        optional = self.optional and self.address
        return tuple(
            replace(setting, required=setting.required and not optional) for setting in named
        )

    @property
    def code_settings(self) -> tuple[Setting, ...]:
        return tuple(Setting(name=name, secret=True, meaning=READ) for name in self.reads)

    @property
    def auth_settings(self) -> tuple[Setting, ...]:
        if self.auth is not None:
            return self.auth.settings(self.address)
        if not self.address:
            return ()
        name = self.address + SCOPE
        return (Setting(name=name, required=False, meaning=OAUTH_SCOPE),)

    def __post_init__(self) -> None:
        """Raise `DeclarationError` for a status that is not a refusal, or that may pass."""
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
    """The fields that only the business understands. They contain no data of a real person."""
    workflow: str | None = None
    """The name of the workflow, or None for the default workflow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointDefinition:
    """The HTTP endpoint at which orders of one workflow are placed, followed and cancelled."""

    workflow: str
    content: type[BaseModel]
    """The model of the request body, which is the payload."""
    open: bool
    """Whether everybody may call the endpoint. Otherwise only operators may."""
    cancel_until: str | None = None
    """Customers may cancel an order until this step starts. With None they can never cancel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Application:
    """The declarations of one business, which the engine runs."""

    workflows: Workflows
    """Every workflow, in every version that orders in flight may still follow."""
    default_workflow: str
    """The workflow of a submission that names none."""
    agents: Sequence[AgentDefinition]
    payload: Payload
    endpoints: Sequence[EndpointDefinition] = ()
    """The endpoints, at most one for each workflow. All versions of a workflow share its
    endpoint."""
    sample: Sample | None = None
    greeting: str = ""
    """A first suggestion for a person who has just started the app. `{url}` stands for the app's
    address."""
    fault_marks: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = field(
        default_factory=dict
    )
    """The marks of a request by which faults of a simulated service can be selected. Each function
    returns the values of its mark in the content of a request. The functions get any request, so
    they must not raise. Faults can also be selected by order and by action."""

    @property
    def waits_for_events(self) -> bool:
        return any(workflow.waits_for_events for workflow in self.workflows.all)

    def check(
        self,
        deployed: Sequence[AgentDefinition],
        defaults: StepDefaults = NO_DEFAULTS,
        *,
        reply_margin: timedelta = timedelta(),
    ) -> None:
        """Raise `DeclarationError` with every fault, given the agents of this deployment.

        `reply_margin` is the time before the complete-by time at which an agent stops (AGT-4).
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
    """Yield the faults of agents.

    The names of agents are parts of row keys, queues and functions.
    """
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
    """Yield the faults in the number, the form and the authentication of the agent's calls."""
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
    """Return whether the address is the agent's simulated service.

    A simulated service is called in the form that the agent declares, but without credentials.
    """
    return address.rstrip("/").endswith(f"/simulator/{agent}")


def _faults_of_times(agent: AgentDefinition) -> Iterator[Fault]:
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
    """Return the longest duration of all attempts up to the threshold, including their pauses."""
    timeout, longest = rules.timeout, rules.max_retry_pause
    pauses = (
        backoff.longest_retry_pause(failures, timeout=timeout, longest=longest)
        for failures in range(rules.threshold)
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
    """Return the agents that offer each capability. The preferred agent is first."""
    offers: dict[str, list[str]] = {}
    for agent in agents:
        offers.setdefault(agent.offers, []).append(agent.name)
    return offers
