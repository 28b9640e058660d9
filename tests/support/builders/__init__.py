"""Orders and steps in the states that the tests start from, and the deciders that they ask.

`orders` and `steps` build records: one function for each real state. The rest is imported by name.
"""

from . import orders, steps
from .changes import index_rows, order_ready, transition, turn_back, withdrawn
from .deciders import (
    PAYLOAD,
    WORKFLOWS,
    Recovery,
    Rules,
    acting_rules,
    answer,
    answer_to,
    begun_by,
    claimed,
    failed_for_good,
    fault_of_all,
    next_try,
    other_scheduler,
    scheduler,
    some,
    supervisor,
    timed_out,
    under_way,
)
from .values import (
    CONTENT,
    COOLDOWN,
    LONGEST_UPGRADE,
    NOW,
    ORDER_ID,
    PROVIDERS,
    SOMEWHERE,
    THRESHOLD,
    TIMEOUT,
    TOLERANCE,
    not_attempted,
    refusal,
    seconds,
)

__all__ = [
    "CONTENT", "COOLDOWN", "LONGEST_UPGRADE", "NOW", "ORDER_ID", "PAYLOAD", "PROVIDERS",
    "SOMEWHERE", "THRESHOLD", "TIMEOUT", "TOLERANCE", "WORKFLOWS", "Recovery", "Rules",
    "acting_rules", "answer", "answer_to", "begun_by", "claimed", "failed_for_good", "fault_of_all", "index_rows",
    "next_try", "not_attempted", "order_ready", "orders", "other_scheduler", "refusal", "scheduler", "seconds",
    "some", "steps", "supervisor", "timed_out", "transition", "turn_back", "under_way",
    "withdrawn",
]  # fmt: skip
