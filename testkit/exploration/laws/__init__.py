"""The laws that must hold in every course of events of every world (docs/pattern.md, 10).

The package imports all of its modules, so that every law is registered.
"""

from testkit.exploration.laws import (
    attempts,
    changes,
    counting,
    deadlines,
    notifications,
    people,
    records,
    services,
    side_by_side,
    silence,
    work_index,
)

__all__ = [
    "attempts",
    "changes",
    "counting",
    "deadlines",
    "notifications",
    "people",
    "records",
    "services",
    "side_by_side",
    "silence",
    "work_index",
]
