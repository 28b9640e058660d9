"""The person behind an operator's call, where the platform's sign-in is on (OPR-10).

The platform then sets these headers, and removes those that a caller sends. Where sign-in is off,
anybody may send them, so nothing reads them.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from engine.domain.errors import NotAllowedError, NotSignedInError

NAME = "X-MS-CLIENT-PRINCIPAL-NAME"
IDENTITY = "X-MS-CLIENT-PRINCIPAL-ID"
"""What a caller without a name has, such as another app."""
PRINCIPAL = "X-MS-CLIENT-PRINCIPAL"
"""All claims, as JSON in base64."""
ROLE_CLAIMS = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class SignIn:
    """The sign-in of the operators."""

    role: str = ""
    """The role that an operator must have; empty if whoever signs in is one."""

    def in_the_name_of(
        self, headers: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the arguments of a call with the name of who signed in as that of the operator.

        Raises `NotSignedInError`, and `NotAllowedError` for somebody without the role.
        """
        operator = self._operator(headers)
        return {name: _named(value, operator) for name, value in arguments.items()}

    def _operator(self, headers: Mapping[str, str]) -> str:
        given = headers.get(NAME) or headers.get(IDENTITY) or ""
        name = "".join(filter(str.isprintable, given))[:LONGEST_NAME]
        if not name:
            raise NotSignedInError
        if self.role and self.role not in _roles(headers.get(PRINCIPAL, "")):
            raise NotAllowedError(self.role)
        return name


def _named(value: Any, operator: str) -> Any:
    """Return a body with that operator, if it names one."""
    if isinstance(value, BaseModel) and "operator" in type(value).model_fields:
        return value.model_copy(update={"operator": operator})
    return value


def _roles(principal: str) -> Iterable[str]:
    """Return the roles among the claims; none of a principal that cannot be read."""
    try:
        claims = json.loads(base64.b64decode(principal))["claims"]
        return [claim["val"] for claim in claims if claim["typ"] in ROLE_CLAIMS]
    except (binascii.Error, ValueError, TypeError, LookupError, RecursionError):
        return []
