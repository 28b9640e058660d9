"""The person behind an operator's call, if the platform's sign-in is on (OPR-10).

With sign-in, the platform sets these headers, and removes those that a caller sends. Without
sign-in, anybody could send them, so they are ignored.
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
"""The identity of a caller without a name, such as another app."""
PRINCIPAL = "X-MS-CLIENT-PRINCIPAL"
"""All claims, as base64 JSON."""
ROLE_CLAIMS = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class SignIn:
    """The sign-in of the operators."""

    role: str = ""
    """The role that an operator must have. Empty if everybody who signs in is an operator."""

    def in_the_name_of(
        self, headers: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the arguments of a call with the signed-in person as the operator.

        Raises `NotSignedInError`, or `NotAllowedError` for a person without the role.
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
    """Replace the operator in a body that names one."""
    if isinstance(value, BaseModel) and "operator" in type(value).model_fields:
        return value.model_copy(update={"operator": operator})
    return value


def _roles(principal: str) -> Iterable[str]:
    """Return the roles among the claims. None if the principal cannot be read."""
    try:
        claims = json.loads(base64.b64decode(principal))["claims"]
        return [claim["val"] for claim in claims if claim["typ"] in ROLE_CLAIMS]
    except (binascii.Error, ValueError, TypeError, LookupError, RecursionError):
        return []
