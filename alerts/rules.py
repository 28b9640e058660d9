"""How an alert travels: as a CloudEvent, which Event Grid hands to a Storage Queue in base64, and once did plain."""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from core.changes import Event
from core.messages import Moment, decode


class CloudEvent(BaseModel):
    """The parts of a CloudEvent 1.0 that an alert uses; others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1, max_length=200)]
    type: Annotated[str, Field(max_length=200)]
    subject: Annotated[str, Field(max_length=200)] = ""
    time: Moment
    data: Mapping[str, Any]


def read(body: bytes) -> Event:
    """Read an alert as it comes off the queue; raises `InvalidError`."""
    event = decode(CloudEvent, _plain(body))
    return Event(event_id=event.id, type=event.type, subject=event.subject, at=event.time, data=event.data)


def _plain(body: bytes) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        return body
