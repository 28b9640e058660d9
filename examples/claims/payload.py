"""The payload of a claim: policy holder, description and amount."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from core.business import Payload
from core.messages import Text, decode
from core.orders import ERASED


class PolicyHolder(BaseModel):
    """The policy holder: personal data."""

    model_config = ConfigDict(extra="forbid")
    name: Text
    email: Text


class Claim(BaseModel):
    """The submitted payload; `amount` is a decimal string such as "950.00" (EUR)."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)
    claim_number: Annotated[str, Field(pattern=r"^C-\d{4,10}$")]
    policy_holder: PolicyHolder
    amount: Annotated[str, Field(pattern=r"^\d{1,7}\.\d{2}$")]
    description: Text


def check(payload: Mapping[str, Any]) -> None:
    """Raise `InvalidError` that names every fault."""
    decode(Claim, json.dumps(payload))


def erased(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claim without its person and its description, which is free text."""
    return {**payload, "policyHolder": {"name": ERASED, "email": ERASED}, "description": ERASED}


def personal(payload: Mapping[str, Any]) -> Iterable[str]:
    """Return the values that no log may show."""
    values = (*_holder(payload).values(), payload.get("description"))
    return [str(value) for value in values if value]


def belongs_to(payload: Mapping[str, Any], email: str) -> bool:
    """Whether the policy holder has this email address, in any case."""
    return str(_holder(payload).get("email")).casefold() == email.casefold()


def _holder(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    holder = payload.get("policyHolder")
    return holder if isinstance(holder, Mapping) else {}


PAYLOAD = Payload(check=check, erased=erased, personal=personal, belongs_to=belongs_to)
