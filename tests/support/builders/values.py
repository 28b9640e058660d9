"""The times, names and texts that the tests share."""

from datetime import UTC, datetime, timedelta

from engine.declarations.workflow import StepDefaults
from engine.domain.causes import Cause, Code

NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
ORDER_ID = "b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W"
TIMEOUT = timedelta(seconds=5)
TOLERANCE = timedelta(seconds=1)
THRESHOLD = 3
LONGEST_UPGRADE = timedelta(days=1)
MAX_SILENCE = timedelta(hours=1)

COOLDOWN = timedelta(seconds=60)
DEFAULTS = StepDefaults(timeout=TIMEOUT, threshold=THRESHOLD, cooldown=COOLDOWN)
CONTENT = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
}


SOMEWHERE = {capability: (capability,) for capability in ("payment", "inventory", "shipping")}
"""Room at the agent that is named like the capability."""

PROVIDERS = {
    "payment": "psp",
    "payment-backup": "psp",
    "inventory": "inventory",
    "shipping": "shipping",
}


def seconds(count: float) -> timedelta:
    """Return a duration."""
    return timedelta(seconds=count)


def refusal(detail: str) -> Cause:
    """Return the cause of a step that its service refused in these words."""
    return Cause(Code.REFUSED, {"detail": detail})


def not_attempted(detail: str) -> Cause:
    """Return the cause of an attempt that made no call, as its agent says."""
    return Cause(Code.NOT_ATTEMPTED, {"detail": detail})
