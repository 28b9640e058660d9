"""What a supervisor tells of its sweep, so that it shows when sweeps stay away (SUP-5, SUP-7)."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """One sweep."""

    at: datetime
    """When it ended."""
    instance: str
    """The supervisor that swept: the leader."""
    recovered: int
    """How many orders were overdue."""
