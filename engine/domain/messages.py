"""The messages between the roles, and their form on the wire.

Decoding reports all faults of a message. Between our own roles, unknown fields are ignored, so two
versions of the app can run side by side. In a submission, unknown fields are the payload, which the
business checks. A message with another `schemaVersion`, or with a value that a later version may
have added, is left to the hosts that know it (FLT-12).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from engine.domain import exact_json
from engine.domain.attempts import FailureOrigin, NotAttemptedReason, ReplyOutcome
from engine.domain.encodings import in_utf8, unpacked
from engine.domain.errors import InputFault, InvalidError, OtherVersionError
from engine.domain.exact_models import read_as
from engine.domain.keys import ORDER_ID
from engine.domain.states import Undoing
from engine.domain.steps import Step
from engine.domain.submitted_order import Priority
from engine.domain.texts import plain

SCHEDULER_REQUESTS = "scheduler-requests"
ANSWERS = "answers"
"""The queue of external events, if a workflow of the business waits for any (ANS-9)."""
DEAD_LETTERS = "dead-letters"
"""The queue to which all other queues forward the messages that Service Bus stops delivering
(FLT-6)."""
OPERATORS = "operators"
"""The destination of outbox rows for Event Grid. Any other destination is the name of a private
queue."""

# The other orders of its batch wait that long.
SENDING = timedelta(seconds=5)
"""How long the sending of a request is retried."""

OrderId = Annotated[str, Field(pattern=f"^{ORDER_ID.pattern}$")]
NO_TEXT = r"\x00-\x1f\x7f-\x9f\uFFFE\uFFFF"
"""Control characters and non-characters, which the XML of Storage Queues cannot hold."""
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=f"^[^{NO_TEXT}]+$")]
UNSEEN = r"\s\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufeff"
"""Blanks and characters without a width."""
Seen = Annotated[
    str, Field(min_length=1, pattern=f"^[^{NO_TEXT}]*[^{NO_TEXT}{UNSEEN}][^{NO_TEXT}]*$")
]
"""A text with at least one visible character."""
Name = Annotated[Seen, Field(max_length=200)]
"""The name of a person or a thing, with at least one visible character."""
OPERATION = re.compile(r"[a-z][a-z0-9-]{0,40}")
"""The name of an operation of a remote service. It is one part of its address, and never a path."""
Operation = Annotated[str, Field(pattern=f"^{OPERATION.pattern}$")]
Key = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
STEP_NAME = r"^[a-z][a-z0-9-]{0,40}$"
"""The pattern of the names of steps, workflows, agents and capabilities."""
StepName = Annotated[str, Field(pattern=STEP_NAME)]
LOST_PLUS = re.compile(r":[^ ]{2,20} [0-9]{2}:?[0-9]{2}\Z")
"""A time in which the `+` of the offset came as a blank, because it was not escaped in a query."""
NUMBER = re.compile(r"[+-]?[0-9.]+")


def _no_guess(time: Any) -> Any:
    """Return a time as it came.

    Raises `PydanticCustomError` for a number, and for a time whose offset lost its `+`.
    """
    if isinstance(time, str) and LOST_PLUS.search(time):
        raise PydanticCustomError("lost-plus", "the + of the offset came as a blank")
    # Nothing tells seconds from milliseconds.
    is_number = isinstance(time, int | float) and not isinstance(time, bool)
    if is_number or (isinstance(time, str) and NUMBER.fullmatch(time)):
        raise PydanticCustomError("number-for-time", "a number is no time")
    return time


# Tables have no time before 1601. Times at the ends of the calendar cannot change their zone.
Moment = Annotated[
    AwareDatetime,
    # Strict, it would refuse a text as soon as anything looks at it before.
    Field(strict=False, ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)),
    BeforeValidator(_no_guess),
]
"""A time between 1970 and 9000, which every part of the system can hold."""


def requests_queue(agent: str) -> str:
    """Return the queue from which the agent takes its requests (SCH-4)."""
    return f"{agent}-requests"


def responses_queue(agent: str) -> str:
    """Return the queue to which the agent sends its replies (SCH-4)."""
    return f"{agent}-responses"


@dataclass(frozen=True, kw_only=True, slots=True)
class BusMessage:
    """One Service Bus message to send. `body` is JSON text."""

    queue: str
    message_id: str
    correlation_id: str
    body: str
    reply_to: str | None = None
    time_to_live: timedelta | None = None
    not_before: datetime | None = None
    """The earliest delivery. The time to live begins then."""
    patience: timedelta | None = None
    """How long the sending is retried at most, or None for as long as the message lives."""

    def __post_init__(self) -> None:
        """Raise `ValueError` if the message has no message id or no correlation id."""
        # In a batch, the Azure host would fill in the ids of the next message.
        if not (self.message_id and self.correlation_id):
            raise ValueError(f"a message to {self.queue} needs a message id and a correlation id")


class Message(BaseModel):
    """Base of all messages. Fields are camelCase on the wire, and messages are immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
    )

    schema_version: int

    def to_json(self) -> str:
        return exact_json.write(self.model_dump(by_alias=True, exclude_none=True))


NotBefore = Annotated[
    Moment, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2100, 1, 1, tzinfo=UTC))
]
"""The time before which no step of the order starts."""


class Submission(Message):
    """A message on the queue `order-submissions` (SUB-1).

    Fields that are not named here are the payload.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    schema_version: Literal[1]
    order_id: OrderId
    placed_at: Annotated[
        Moment, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2100, 1, 1, tzinfo=UTC))
    ]
    workflow: StepName | None = None
    """The workflow, or None for the default workflow of the business."""
    not_before: NotBefore | None = None
    """The earliest start of the first steps, or None for an immediate start (SUB-9)."""
    priority: Annotated[Priority, Field(strict=False)] = Priority.NORMAL
    reply_to: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")] | None = None

    @property
    def payload(self) -> Mapping[str, Any]:
        return self.model_extra or {}

    def to_json(self) -> str:
        """Return the message for the wire, in ASCII, which any Storage Queue can hold.

        A null in the payload stays, because its model may require the field.
        """
        unset = {name for name in type(self).model_fields if getattr(self, name) is None}
        return exact_json.write(self.model_dump(by_alias=True, exclude=unset), is_ascii=True)


class OrderReady(Message):
    """A wake-up: the scheduler can claim this order (SUB-6, SUP-3).

    Polling finds the order too, but later.
    """

    schema_version: Literal[1] = 1
    order_id: OrderId
    steps: tuple[StepName, ...] = ()
    needs: StepName | None = None
    """The capability that the order waits for, or None if it needs no agent."""
    priority: Priority = Priority.NORMAL
    since: Moment | None = None
    """The time at which the order began to wait."""
    again: bool = False
    """Whether this is the second wake-up, because no agent had capacity at the first."""

    def to_bus(self) -> BusMessage:
        return BusMessage(
            queue=SCHEDULER_REQUESTS,
            message_id=f"{self.order_id}:ready",
            correlation_id=self.order_id,
            body=self.to_json(),
        )


def request_id(order_id: str, step: str, attempt: int, action: str) -> str:
    """Return the message id of an attempt's request. It is the correlation id of the reply."""
    return f"{order_id}:{step}:{attempt}:{action}"


def order_id_in(request: str) -> str:
    return request.partition(":")[0]


def request_id_of(order_id: str, step: Step) -> str:
    """Return the message id of the request of the step's running attempt."""
    action = "undo" if isinstance(step.state, Undoing) else "do"
    return request_id(order_id, step.name, step.counts.attempts, action)


class AttemptMessage(Message):
    """Base of the messages between scheduler and agent about one attempt to do or undo a step."""

    order_id: OrderId
    step: StepName
    action: Literal["do", "undo"]
    attempt: Annotated[int, Field(ge=1, lt=10**9)]

    @property
    def request_id(self) -> str:
        """The id of this request, or of the request to which this reply belongs."""
        return request_id(self.order_id, self.step, self.attempt, self.action)


class AgentRequest(AttemptMessage):
    """A request to an agent: carry out one attempt of one step before `complete_by` (SCH-4)."""

    schema_version: Literal[1] = 1
    operation: Operation
    idempotency_key: Key
    issued_at: Moment
    complete_by: Moment
    answer_by: Moment | None = None
    """The time by which the service has to finish work that it accepted earlier, or None if it
    accepted none."""
    callback_url: str | None = Field(default=None, repr=False)
    """The address at which the service can answer later without a key of the app (ANS-6), or None
    in an undo."""
    content: Mapping[str, Any]
    """The content that the step's definition made from the order and the results of earlier
    steps."""

    def to_bus(self, agent: str, time_to_live: timedelta) -> BusMessage:
        """Address the request to the agent's queue, where it expires (AGT-5)."""
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


class ReplyMessage(AttemptMessage):
    """The fields of every reply of an agent to a request (SCH-6)."""

    schema_version: Literal[2] = 2
    outcome: ReplyOutcome
    instance: Annotated[str, Field(max_length=200)] = ""
    """The instance of the agent that replies, as named in its health row (AGT-10)."""
    complete_by: AwareDatetime
    """The complete-by time of the request, at which the reply expires (AGT-4)."""

    def to_bus(self, agent: str, now: datetime) -> BusMessage:
        """Address the reply to the schedulers, correlated by the id of its request (AGT-4)."""
        return BusMessage(
            queue=responses_queue(agent),
            message_id=f"{self.request_id}:{self.outcome}",
            correlation_id=self.request_id,
            body=self.to_json(),
            time_to_live=self.complete_by - now,
        )


Detail = Annotated[str, Field(max_length=1000)]
RetryAfter = Annotated[float, Field(ge=0, le=MAX_RETRY_AFTER_SECONDS)]


class CompletedReply(ReplyMessage):
    """The service did the requested work, or undid it."""

    outcome: Literal[ReplyOutcome.COMPLETED] = ReplyOutcome.COMPLETED
    result: Mapping[str, Any] | None = None


class FailedReply(ReplyMessage):
    """The attempt failed, and no retry can help (AGT-6).

    Unless the service itself refused, an operator decides, regardless of the step's failure policy.
    """

    outcome: Literal[ReplyOutcome.FAILED] = ReplyOutcome.FAILED
    origin: FailureOrigin
    detail: Detail = ""
    type: Text | None = None
    """The type by which the service names a refusal, as in problem details (RFC 9457)."""
    code: Text | None = None
    """The code by which the service names a refusal."""
    in_doubt: bool = False
    """Whether an earlier call of the attempt had no answer, so its effect is unknown (UND-2)."""

    @property
    def identifiers(self) -> Mapping[str, str]:
        """The `type` and the `code` of the refusal, if the service gave them."""
        given = {"type": self.type, "code": self.code}
        return {name: value for name, value in given.items() if value}


class NotAttemptedReply(ReplyMessage):
    """The agent did not call the service, so the request may be sent again (AGT-8)."""

    outcome: Literal[ReplyOutcome.NOT_ATTEMPTED] = ReplyOutcome.NOT_ATTEMPTED
    reason: NotAttemptedReason
    detail: Detail = ""
    retry_after: RetryAfter = 0.0
    """Seconds after which the request may be sent again."""
    in_doubt: bool = False
    """As in `FailedReply`."""


class DeferredReply(ReplyMessage):
    """The service accepted the work and finishes it later. Its agent calls again (AGT-11)."""

    outcome: Literal[ReplyOutcome.DEFERRED] = ReplyOutcome.DEFERRED
    retry_after: RetryAfter = 0.0
    """Seconds after which the service may be asked again."""
    reason: NotAttemptedReason | None = None
    """The reason why the agent could not ask the service again in this attempt, or None if it
    could."""
    in_doubt: bool = False
    """As in `FailedReply`."""


AgentReply = CompletedReply | FailedReply | NotAttemptedReply | DeferredReply

REPLIES: Mapping[ReplyOutcome, type[AgentReply]] = {
    ReplyOutcome.COMPLETED: CompletedReply,
    ReplyOutcome.FAILED: FailedReply,
    ReplyOutcome.NOT_ATTEMPTED: NotAttemptedReply,
    ReplyOutcome.DEFERRED: DeferredReply,
}


class AnyAttempt(BaseModel):
    """The fields of a request or a reply of any version: its attempt and its complete-by time."""

    model_config = Message.model_config

    order_id: OrderId
    step: StepName
    action: Annotated[str, Field(pattern=r"^[A-Za-z-]{1,16}$")]
    """The action is short enough for the message id that contains it."""
    attempt: Annotated[int, Field(ge=1, lt=10**9)]
    complete_by: Moment

    @property
    def request_id(self) -> str:
        """The id of this request, or of the request to which this reply belongs."""
        return request_id(self.order_id, self.step, self.attempt, self.action)


PAUSE = timedelta(seconds=1)
"""The minimum pause before a message that could not be handled is delivered again."""
LONGEST_PAUSE = timedelta(seconds=30)


def later(message: BusMessage, begins: datetime) -> BusMessage:
    """Return the message with a later delivery: its queue delivers it at `begins`."""
    # The id is new, because a queue with duplicate detection would drop the old one.
    message_id = f"{message.message_id}:{begins.timestamp() * 1000:.0f}"
    return replace(message, message_id=message_id, not_before=begins)


def schedule_redelivery(message: BusMessage, now: datetime, until: datetime) -> BusMessage | None:
    """Return the message to redeliver after a pause, or None if that is not before `until`."""
    begins = now + max(PAUSE, min(LONGEST_PAUSE, (until - now) / 10))
    if begins >= until:
        return None
    return replace(later(message, begins), time_to_live=until - begins)


def bus_queues(agents: Iterable[str], *, answers: bool = False) -> list[str]:
    """Return the queues of the schedulers and of these agents.

    With `answers`, the queue of external events is one of them.
    """
    queues = [SCHEDULER_REQUESTS, *([ANSWERS] if answers else [])]
    for agent in agents:
        queues += [requests_queue(agent), responses_queue(agent)]
    return queues


Decoded = TypeVar("Decoded", bound=BaseModel)

MAX_FAULTS = 50
"""The maximum number of reported faults of one message, so that a large invalid message does not
fill logs."""

MAX_OF_NAME = 60


def utf16_units(text: str) -> int:
    """Return the length of the text in tables. Characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def decode(model: type[Decoded], body: bytes | str) -> Decoded:
    """Return the message with exact numbers.

    Raises `InvalidError` with every fault and its place in the message. Raises `OtherVersionError`
    for a message that only another version of the app can read.
    """
    text = in_utf8(body).decode() if isinstance(body, bytes) else body
    try:
        # Only the camelCase names are valid on the wire.
        if not exact_json.NEEDS_CARE.search(text):
            return model.model_validate_json(text, by_alias=True, by_name=False)
        try:
            value = exact_json.read(text)
            exact_json.write(value).encode()  # half of a surrogate pair is no Unicode
        except ValueError as fault:
            # Pydantic names the fault, unless it is a number that it accepts.
            model.model_validate_json(text, by_alias=True, by_name=False)
            facts = {"error": str(fault)}
            raise InvalidError([InputFault("body", "no-json", facts)]) from None
        return read_as(model, value, by_name=False)
    except ValidationError as error:
        is_other = issubclass(model, Message) and _is_of_other_version(error)
        raise (OtherVersionError if is_other else InvalidError)(faults_of(error)) from None


def decode_queued(model: type[Decoded], body: bytes | str) -> Decoded:
    """Return the message of a queue, which may be base64.

    Raises the errors of `decode`.
    """
    return decode(model, unpacked(body) if isinstance(body, bytes) else body)


def decode_reply(body: bytes | str) -> AgentReply:
    """Return an agent's reply.

    Raises the errors of `decode`.
    """
    # The common fields come first. They show whether the reply has another version.
    outcome = decode_queued(ReplyMessage, body).outcome
    return decode_queued(REPLIES[outcome], body)


VALUES = {("outcome",), ("origin",), ("reason",), ("action",), ("priority",)}
"""The places in which a newer version may have values that this version does not know."""
VALUE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,40}")


def _is_of_other_version(error: ValidationError) -> bool:
    """Return whether the message has another schema version, or only new values as faults."""
    faults = error.errors(include_url=False, include_context=False)
    if any(_is_other_version(fault) for fault in faults):
        return True
    return all(_is_new_value(fault) for fault in faults)


def _is_other_version(fault: ErrorDetails) -> bool:
    version = fault["input"]
    return fault["loc"] == ("schemaVersion",) and type(version) is int and version > 0


def _is_new_value(fault: ErrorDetails) -> bool:
    if fault["type"] not in ("literal_error", "enum") or fault["loc"] not in VALUES:
        return False
    value = fault["input"]
    return isinstance(value, str) and VALUE.fullmatch(value) is not None


# Kept here, because pydantic would otherwise build the class again for each message.
JSON_OBJECT = RootModel[dict[str, Any]]


def payload_in(body: bytes) -> Mapping[str, Any]:
    """Return the payload of a submission, even of an invalid one.

    Raises `InvalidError` if the body is not a JSON object.
    """
    own = {field.alias for field in Submission.model_fields.values()}
    fields = decode_queued(JSON_OBJECT, body).root
    return {name: value for name, value in fields.items() if name not in own}


def faults_of(error: ValidationError) -> list[InputFault]:
    """Return every fault, without the input."""
    # The input may contain personal data.
    found = error.errors(include_url=False, include_input=False)
    details = _without_consequences(found)
    faults = [_fault(detail) for detail in details[:MAX_FAULTS]]
    if (more := len(details) - MAX_FAULTS) > 0:
        faults.append(InputFault("", "more-faults", {"more": more}))
    return faults


def _fault(detail: ErrorDetails) -> InputFault:
    """Return the fault that pydantic found. Its type is the code."""
    facts = {
        name: value if isinstance(value, str | int | float) else str(value)
        for name, value in detail.get("ctx", {}).items()
    }
    return InputFault(_place(detail["loc"]), detail["type"], facts, detail["msg"])


def _without_consequences(details: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Return the faults without "too short" for a list whose items have faults of their own."""
    parents: set[tuple[int | str, ...]] = set()
    for fault in details:
        parents |= {fault["loc"][:depth] for depth in range(len(fault["loc"]))}
    return [
        fault for fault in details if fault["type"] != "too_short" or fault["loc"] not in parents
    ]


def _place(location: Sequence[int | str]) -> str:
    """Return the place of a fault. Field names of the sender are cut and made printable."""
    return ".".join(plain(str(part), MAX_OF_NAME) for part in location) or "body"
