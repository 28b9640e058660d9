"""What a version of a workflow was when orders began to follow it, so that a change of it is noticed.

An order in flight has some of its workflow's rules in its records, and looks others up: after a change that is no new
version, the two do not fit together.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any

from core.workflow import StepDefinition, Workflow

NOT_TOLD_APART = ("name", "request")
"""A function cannot be told from another by what it does; and what it makes may be put right for orders in flight."""

Fingerprint = Mapping[str, Mapping[str, str]]
"""Of a workflow: by step, a digest of each thing that the step says."""


def fingerprint(workflow: Workflow) -> Fingerprint:
    """Return what tells this version of the workflow from a changed one."""
    return {step.name: dict(_digests(step)) for step in workflow.steps}


def _digests(step: StepDefinition) -> Iterator[tuple[str, str]]:
    """Leave out what a step has by default: so a field that a later version of the app adds is no change."""
    for field in fields(step):
        value = getattr(step, field.name)
        if field.name not in NOT_TOLD_APART and value != field.default:
            yield field.name, sha256(str(value).encode()).hexdigest()[:8]


def from_text(text: str) -> Fingerprint:
    """Return the fingerprint from what was kept; of what cannot be read everything differs."""
    try:
        known: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return known


def differences(known: Fingerprint, now: Fingerprint) -> list[str]:
    """Return what differs, step by step; nothing if it is the same."""
    both = [name for name in known if name in now]
    found = [f"step {name} is gone" for name in known if name not in now]
    found += [f"step {name} is new" for name in now if name not in known]
    found += [f"step {name}: {', '.join(names)}" for name in both if (names := _differing(known[name], now[name]))]
    return found or (["the order of the steps"] if list(known) != list(now) else [])


def _differing(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*known, *now} if known.get(name) != now.get(name))
