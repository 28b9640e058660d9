"""The requests and answers of the customers' API, independent of any business."""

import hmac
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from engine.decisions.operator_actions import cancel_for_customer, why_customer_cannot_cancel
from engine.decisions.transitions import Transition
from engine.declarations.business import EndpointDefinition
from engine.domain.contents import content_text
from engine.domain.errors import InputFault, InvalidError, UnknownOrderError
from engine.domain.exact_models import as_json
from engine.domain.messages import NotBefore, OrderId, Submission
from engine.domain.orders import OrderAggregate
from engine.domain.statuses import Outcome, ProcessState
from engine.http.models import Parameters, View

MIN_KEY, MAX_KEY = 20, 200
"""The length of an `Idempotency-Key`. A key that others can guess would show them its order."""
MIN_BITS = 1.0
"""The least information in a character of a key, in bits, by how often each character occurs in it.

Random digits have about three bits. A key that consists almost entirely of one character has less
than one bit, whatever its length: two customers could both choose it. A repeated text may have
more, and is refused separately. No check finds a counter.
"""
RECORDED_WITHIN = timedelta(minutes=11)
"""Up to this age, an order that is not recorded yet counts as accepted.

If the instance that records an order is ended, as in each deployment, Azure hides its message for
ten minutes.
"""
LARGEST_MESSAGE = 64 * 1024
"""The largest message that a Storage Queue accepts, in bytes."""
KEY_SCHEMA = {
    "description": (
        "The same key and content stand for the same order, however often they are sent. "
        "Use a UUID."
    ),
    "type": "string",
    "minLength": MIN_KEY,
    "maxLength": MAX_KEY,
    "pattern": "^[!-~]+$",
    "examples": ["5f0c7d0e-3b1f-4c55-9d0a-0f7f9a7a1c11"],
}
ASK_AGAIN_IN = {ProcessState.PENDING: 2, ProcessState.PROCESSING: 2, ProcessState.ERROR: 30}
"""The seconds until a client should ask again. In `Error`, an order waits for a person."""


def _hard_to_guess(key: str) -> str:
    fits = MIN_KEY <= len(key) <= MAX_KEY
    if not fits or _bits_of(key) < MIN_BITS or _is_repeated(key):
        message = "expected {least} to {most} random characters, such as a UUID"
        raise PydanticCustomError("guessable", message, {"least": MIN_KEY, "most": MAX_KEY})
    return key


def _bits_of(text: str) -> float:
    """Return the average information in a character of the text, in bits."""
    counts = Counter(text).values()
    return sum(count / len(text) * math.log2(len(text) / count) for count in counts)


def _is_repeated(text: str) -> bool:
    """Whether the text is a shorter text repeated several times."""
    return text in (text + text)[1:-1]


class IdempotencyKey(Parameters):
    """The optional header that makes one order of content that is sent several times."""

    place = "header"
    value: Annotated[
        str | None,
        AfterValidator(_hard_to_guess),
        WithJsonSchema(KEY_SCHEMA),
        Field(alias="Idempotency-Key"),
    ] = None


class Beginning(Parameters):
    """When the order may begin, if not immediately."""

    not_before: Annotated[NotBefore | None, Field(alias="notBefore")] = None
    """No step begins before this time, from 2000 to 2099 (SUB-9)."""


AskAgain = Field(exclude=True, description="Seconds until the next request")


class Placed(View):
    """An order that was accepted."""

    http_status = 202
    order_id: OrderId
    status_url: str
    location: Annotated[
        str, Field(exclude=True, description="Address at which to follow the order")
    ]
    retry_after: Annotated[int, AskAgain] = 1


class FollowedOrder(View):
    """The progress of an order, without its content, personal data, steps and reasons."""

    etag = True
    order_id: OrderId
    process_state: ProcessState | Literal["Accepted"]
    """`Accepted` while the order is only in the queue. No recorded order has this state."""
    placed_at: datetime
    updated_at: datetime
    outcome: Annotated[Outcome | SkipJsonSchema[None], Field(exclude_if=not_)] = None
    can_be_cancelled: bool = False
    """Whether its customer may cancel it now."""
    retry_after: Annotated[int | SkipJsonSchema[None], AskAgain] = 1


class Cancelled(View):
    """An order that is undone because its customer cancelled it."""

    http_status = 202  # what was done is undone later
    order_id: OrderId
    status: Literal["cancelled"] = "cancelled"
    retry_after: Annotated[int, AskAgain] = 1


def placed(order_id: str, address: str) -> Placed:
    """Return the answer for an order. `address` is the address of the orders."""
    url = f"{address}/{order_id}"
    return Placed(order_id=order_id, status_url=url, location=url)


Offer = Mapping[str, Any]
"""What the business adds to an order when it is placed, such as prices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewOrder:
    """A new order as it was sent."""

    content: BaseModel
    message: Callable[[Offer, str, datetime], Submission]
    """Makes the message that submits the order from the offer, the order id and the time of
    placement."""
    offer: Callable[[], Offer] = dict
    """Returns the current offer. Raises `InvalidError` for content that cannot be ordered."""
    kind: str = ""
    """Everything that distinguishes orders of equal content."""


def kind_of(beginning: Beginning, workflow: str = "") -> str:
    """Return what distinguishes orders of equal content: their workflow and their start time."""
    time = beginning.not_before
    return workflow + (time.astimezone(UTC).isoformat() if time else "")


def fingerprint(content: BaseModel, idempotency_key: str, kind: str = "") -> str:
    """Return a digest of an order, to compare orders with the same `Idempotency-Key`.

    The digest includes the kind and the key, which is not stored anywhere. Without the key, the
    customer could be found by trying. Fields with their default value are left out, so that the
    digest stays the same when the model gets another optional field.
    """
    key = idempotency_key.encode("utf-8", "surrogatepass")
    text = kind + content_text(type(content), payload_of(content))
    # Not SHA-256: HMAC hashes a long key first, and the store holds the SHA-256 of the key.
    return hmac.digest(key, text.encode(), "sha512").hex()


def payload_of(content: BaseModel) -> Mapping[str, Any]:
    """Return the payload as it was sent, without the defaults of the model."""
    return as_json(content, exclude_unset=True)


def submission(
    endpoint: EndpointDefinition,
    payload: Mapping[str, Any],
    beginning: Beginning,
    order_id: str,
    placed_at: datetime,
) -> Submission:
    """Make the message that submits the order (SUB-1)."""
    own = {
        "schemaVersion": 1,
        "orderId": order_id,
        "placedAt": placed_at,
        "workflow": endpoint.workflow,
        "notBefore": beginning.not_before,
    }
    return Submission.model_validate({**payload, **own}, by_alias=True, by_name=False)


def check_length(message: str) -> None:
    """Raise `InvalidError` if the message is too long for the queue. The message is ASCII."""
    if len(message) > LARGEST_MESSAGE:
        facts = {"length": len(message), "limit": LARGEST_MESSAGE}
        raise InvalidError([InputFault("body", "too-many-bytes-for-queue", facts)])


def is_of(order: OrderAggregate, endpoint: EndpointDefinition) -> bool:
    """Whether the order belongs to the workflow of this endpoint. Versions share an endpoint."""
    return order.workflow == endpoint.workflow


def followed(order: OrderAggregate, endpoint: EndpointDefinition) -> FollowedOrder:
    """Return the progress of a recorded order."""
    return FollowedOrder(
        order_id=order.order_id,
        process_state=order.process_state,
        placed_at=order.submitted.placed_at,
        updated_at=order.updated_at,
        outcome=order.outcome,
        can_be_cancelled=not why_customer_cannot_cancel(order, endpoint.cancel_until),
        retry_after=None if order.is_over else ASK_AGAIN_IN[order.process_state],
    )


def accepted(order_id: str, placed_at: datetime) -> FollowedOrder:
    """Return the progress of an order that is accepted but not recorded yet."""
    return FollowedOrder(
        order_id=order_id, process_state="Accepted", placed_at=placed_at, updated_at=placed_at
    )


def cancelled(order: OrderAggregate, endpoint: EndpointDefinition, now: datetime) -> Transition:
    """Return the transition that cancels the order.

    Raises `RefusedError` or `UnknownOrderError`.
    """
    if not is_of(order, endpoint):
        raise UnknownOrderError
    return cancel_for_customer(order, endpoint.cancel_until, now)
