"""The messages between the roles, version 1, and how they travel.

Decoding names every fault of a message at once. Fields that a later version may add are ignored between our own roles,
so that two versions of the app can run side by side; in what a submitter sends, they are the business's, which knows of
each what it is. A greater `schemaVersion`, or a value that a later version may have added, is told from other faults:
such a message is left to newer hosts (FLT-12).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from core.errors import InvalidError, NewerMessageError
from core.keys import ORDER_ID
from core.life import StepState
from core.orders import Priority, Step

MESSAGE_VERSION = 1
"""The `schema_version` of all messages."""

SCHEDULER_REQUESTS = "scheduler-requests"
OPERATORS = "operators"
"""Of what is in the outbox: stands for Event Grid; every other destination is the private queue of that name."""

SENDING = timedelta(seconds=5)
"""How long a request is tried to be sent: a batch waits for it, with the orders of other queues."""

OrderId = Annotated[str, Field(pattern=f"^{ORDER_ID.pattern}$")]
NO_TEXT = r"\x00-\x1f\x7f-\x9f\uFFFE\uFFFF"
"""Control characters, and those that are none: the XML in which Storage Queues travel cannot hold them."""
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=f"^[^{NO_TEXT}]+$")]
OPERATION = re.compile(r"[a-z][a-z0-9-]{0,40}")
"""What a remote service can be asked to do: part of an address, so never a path."""
Operation = Annotated[str, Field(pattern=f"^{OPERATION.pattern}$")]
Key = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
STEP_NAME = r"^[a-z][a-z0-9-]{0,40}$"
"""Also of a workflow."""
StepName = Annotated[str, Field(pattern=STEP_NAME)]
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC))
]
"""A time that everything of ours can hold: tables know none before 1601, and the ends of the calendar no other zone."""


def requests_queue(agent: str) -> str:
    """Queue on which the agent takes its requests (SCH-4)."""
    return f"{agent}-requests"


def responses_queue(agent: str) -> str:
    """Queue on which the agent's replies come back (SCH-4)."""
    return f"{agent}-responses"


@dataclass(frozen=True, kw_only=True, slots=True)
class BusMessage:
    """One Service Bus message to send; `body` is JSON text."""

    queue: str
    message_id: str
    correlation_id: str
    body: str
    reply_to: str | None = None
    time_to_live: timedelta | None = None
    not_before: datetime | None = None
    """When the queue may deliver it; its time to live begins then."""
    patience: timedelta | None = None
    """How long it is tried to be sent at most; None for as long as it lives."""

    def __post_init__(self) -> None:
        """Let nothing be sent without its ids: in a batch, Azure's host gives the id of the next message instead."""
        if not (self.message_id and self.correlation_id):
            raise ValueError(f"a message to {self.queue} needs a message id and a correlation id")


class Message(BaseModel):
    """Base of all messages: camelCase on the wire, immutable here."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )

    schema_version: Literal[1] = 1

    def to_json(self) -> str:
        """Return the message as it goes over the wire."""
        return self.model_dump_json(by_alias=True, exclude_none=True)


class Submission(Message):
    """What a submitter puts on the queue `order-submissions` (SUB-1); what is not named here is the payload."""

    model_config = ConfigDict(extra="allow", strict=True)

    schema_version: Literal[1]
    order_id: OrderId
    placed_at: Annotated[
        Moment,
        Field(
            strict=False, ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2100, 1, 1, tzinfo=UTC)
        ),
    ]
    workflow: StepName | None = None
    """None for what the business does unless told otherwise."""
    priority: Annotated[Priority, Field(strict=False)] = Priority.NORMAL
    reply_to: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")] | None = None

    @property
    def payload(self) -> Mapping[str, Any]:
        """What the business has to say of the order."""
        return self.model_extra or {}

    def to_json(self) -> str:
        """Return the message as it goes over the wire: in ASCII, which a Storage Queue can hold whatever it says."""
        return self.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True)


class WakeUp(Message):
    """Tells the scheduler to look at an order now; polling would find it too, only later (SUB-6, SUP-3)."""

    order_id: OrderId
    steps: tuple[StepName, ...] = ()
    needs: StepName | None = None
    """The capability that the order waits for; None if it needs none, and can only end."""
    priority: Priority = Priority.NORMAL
    since: Moment | None = None
    """Since when it waits."""
    again: bool = False
    """Whether it comes for the second time, since there was no room the first time."""

    def to_bus(self) -> BusMessage:
        """Address the wake-up to any scheduler."""
        return BusMessage(
            queue=SCHEDULER_REQUESTS,
            message_id=f"{self.order_id}:wake",
            correlation_id=self.order_id,
            body=self.to_json(),
        )


def request_id(order_id: str, step: str, attempt: int, action: str) -> str:
    """Return the message id of a request, and correlation id of its reply; different for every attempt."""
    return f"{order_id}:{step}:{attempt}:{action}"


def request_id_of(order_id: str, step: Step) -> str:
    """Return the message id of the request of the step's attempt that is under way."""
    return request_id(
        order_id, step.name, step.attempts, "undo" if step.state is StepState.UNDOING else "do"
    )


class AttemptMessage(Message):
    """Base of what scheduler and agent tell each other of one attempt to do or undo a step."""

    order_id: OrderId
    step: StepName
    action: Literal["do", "undo"]
    attempt: Annotated[int, Field(ge=1, lt=10**9)]

    @property
    def request_id(self) -> str:
        """What the request is called that this is, or answers."""
        return request_id(self.order_id, self.step, self.attempt, self.action)


class AgentRequest(AttemptMessage):
    """Asks an agent to carry out one attempt of one step before `complete_by` (SCH-4)."""

    action: Literal["do", "undo"] = "do"
    operation: Operation
    """What the remote service is asked to do."""
    idempotency_key: Key
    issued_at: Moment
    complete_by: Moment
    content: Mapping[str, Any]
    """What the step's definition takes from the order, and from the results of steps before."""

    def to_bus(self, agent: str, time_to_live: timedelta) -> BusMessage:
        """Address the request to the agent's own queue; it dies there when its time is up (AGT-5)."""
        return BusMessage(
            queue=requests_queue(agent),
            message_id=self.request_id,
            correlation_id=self.order_id,
            body=self.to_json(),
            reply_to=responses_queue(agent),
            time_to_live=time_to_live,
            patience=SENDING,
        )


MAX_RETRY_AFTER_SECONDS = 86_400


class AgentReply(AttemptMessage):
    """What an agent says of a request it has carried out, or could not; it names what it answers (SCH-6)."""

    outcome: Literal["completed", "failed", "notTried"]
    instance: Annotated[str, Field(max_length=200)] | None = None
    """Which instance of the agent says it, as its health row does (AGT-10)."""
    result: Mapping[str, Any] | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    retry_after: Annotated[float, Field(ge=0, le=MAX_RETRY_AFTER_SECONDS)] | None = None
    """Seconds after which a request that was not tried may come again (AGT-8)."""
    circuit_open: bool = False
    """Whether this instance of the agent tries nothing at all until then."""
    asked: bool = False
    """Whether the service asked for that, which concerns all instances."""
    for_operator: bool = False
    """Whether it failed for what is no word of the service: an operator decides, whatever the step's policy."""
    in_doubt: bool = False
    """Whether a call before had no answer, so that its effect may have happened, or may still come (UND-2)."""
    complete_by: AwareDatetime
    """That of the request: until then the reply lives (AGT-4)."""

    def to_bus(self, agent: str, now: datetime) -> BusMessage:
        """Address the reply to the schedulers; the id of the request correlates it until complete-by (AGT-4)."""
        return BusMessage(
            queue=responses_queue(agent),
            message_id=f"{self.request_id}:{self.outcome}",
            correlation_id=self.request_id,
            body=self.to_json(),
            time_to_live=self.complete_by - now,
        )


class AnyAttempt(BaseModel):
    """What a request or a reply of any version says: which attempt it is about, and until when it counts."""

    model_config = Message.model_config

    order_id: OrderId
    step: StepName
    action: Annotated[str, Field(pattern=r"^[A-Za-z-]{1,16}$")] = "do"
    """So short that the id of which it is a part is none too long for a queue."""
    attempt: Annotated[int, Field(ge=1, lt=10**9)]
    complete_by: Moment

    @property
    def request_id(self) -> str:
        """What the request is called that this is, or answers."""
        return request_id(self.order_id, self.step, self.attempt, self.action)


PAUSE = timedelta(seconds=1)
"""After which a message comes again at the soonest that could not be acted on."""
LONGEST_PAUSE = timedelta(seconds=30)


def put_off(message: BusMessage, now: datetime, until: datetime) -> BusMessage | None:
    """Return the message as it comes again after a pause; None if nobody wants it any more by then.

    It has an id of its own: a queue that drops what it has seen before would drop it.
    """
    begins = now + max(PAUSE, min(LONGEST_PAUSE, (until - now) / 10))
    if begins >= until:
        return None
    message_id = f"{message.message_id}:{begins.timestamp() * 1000:.0f}"
    return replace(message, message_id=message_id, not_before=begins, time_to_live=until - begins)


def bus_queues(agents: Iterable[str]) -> list[str]:
    """Return the queues by which schedulers and these agents talk."""
    return [
        SCHEDULER_REQUESTS,
        *(queue(agent) for agent in agents for queue in (requests_queue, responses_queue)),
    ]


Decoded = TypeVar("Decoded", bound=BaseModel)

MAX_FAULTS = 50
"""Of one message that are named: whoever sends a megabyte of nonsense gets no megabyte back, and none into the log."""

MAX_OF_NAME = 60


def json_text(value: Any, *, allow_nan: bool = True) -> str:
    """Return the value as compact JSON; raises ValueError for what is no finite number, unless that is allowed."""
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), default=dict, allow_nan=allow_nan
    )


def json_in(text: Any) -> Any:
    """Return the value that was kept as JSON; raises ValueError for what is none, or is nested too deeply."""
    try:
        return json.loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no JSON that can be read: {type(error).__name__}") from None


def utf16_units(text: str) -> int:
    """Return how long the text is for tables: characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def decode(model: type[Decoded], body: bytes | str) -> Decoded:
    """Read one message; raises `InvalidError` that names every fault by its place in the message.

    Raises `NewerMessageError` for a message between the roles that only a newer version of the app can read.
    """
    try:
        return model.model_validate_json(
            body, by_alias=True, by_name=False
        )  # our own names are no names on the wire
    except ValidationError as error:
        newer = issubclass(model, Message) and _is_newer(error)
        raise (NewerMessageError if newer else InvalidError)(faults_of(error)) from None


VALUES = {("outcome",), ("action",), ("priority",)}
"""The places where a newer version may have values that this one does not know."""
VALUE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,40}")


def _is_newer(error: ValidationError) -> bool:
    """Whether the message has a greater schema version, whatever else is wrong, or nothing but values that are new."""
    faults = error.errors(include_url=False, include_context=False)
    return any(_is_newer_version(fault) for fault in faults) or all(
        _is_new_value(fault) for fault in faults
    )


def _is_newer_version(fault: ErrorDetails) -> bool:
    version = fault["input"]
    return fault["loc"] == ("schemaVersion",) and type(version) is int and version > MESSAGE_VERSION


def _is_new_value(fault: ErrorDetails) -> bool:
    of_a_list = fault["type"] in ("literal_error", "enum") and fault["loc"] in VALUES
    return (
        of_a_list
        and isinstance(fault["input"], str)
        and VALUE.fullmatch(fault["input"]) is not None
    )


JSON_OBJECT = RootModel[dict[str, Any]]
"""Made once: pydantic forgets such a class when nobody holds it, and makes it anew for each message."""


def payload_in(body: bytes) -> Mapping[str, Any]:
    """Return the payload of a submission, whatever else is wrong; raises `InvalidError` if it is no JSON object."""
    own = {field.alias for field in Submission.model_fields.values()}
    fields = decode(JSON_OBJECT, body).root
    return {name: value for name, value in fields.items() if name not in own}


def faults_of(error: ValidationError) -> list[str]:
    """Return every fault as `place: what is wrong`, without repeating the input, which may hold personal data."""
    details = _own(error.errors(include_url=False, include_context=False, include_input=False))
    faults = [f"{_place(fault['loc'])}: {fault['msg']}" for fault in details[:MAX_FAULTS]]
    return (
        faults
        if len(details) <= MAX_FAULTS
        else [*faults, f"and {len(details) - MAX_FAULTS} more faults"]
    )


def _own(details: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Leave out that a list is too short where it is so only because what is in it has faults of its own."""
    within = {fault["loc"][:depth] for fault in details for depth in range(len(fault["loc"]))}
    return [
        fault for fault in details if fault["type"] != "too_short" or fault["loc"] not in within
    ]


def _place(location: Sequence[int | str]) -> str:
    """Return where a fault is; names of unknown fields are the sender's own words, and may be long."""
    return ".".join(str(part)[:MAX_OF_NAME] for part in location) or "body"
