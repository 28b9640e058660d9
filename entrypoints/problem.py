"""How an error looks on the wire."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    model_config = ConfigDict(extra="forbid")

    type: str = "about:blank"
    title: str
    status: int
    detail: str | None = None
    faults: Sequence[str] | None = None
    """Everything that is wrong with the request."""
