"""Notices when a version of a workflow is not any more what it was when orders began to follow it.

An order in flight has some of its workflow's rules in its records, and looks others up: after a change that is no new
version, the two do not fit together.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from core import alerts
from core.messages import json_in, json_text
from core.ports import Clock
from core.workflow import StepDefinition, Workflow, Workflows
from stores.orders import OrderStore
from stores.tables import Table, first

log = logging.getLogger(__name__)

NOT_TOLD_APART = ("name", "request")
"""A function cannot be told from another by what it does; and what it makes may be put right for orders in flight."""

Fingerprint = Mapping[str, Mapping[str, str]]
"""Of a workflow: by step, a digest of each thing that the step says."""


def fingerprint(workflow: Workflow) -> Fingerprint:
    """Return what tells this version of the workflow from a changed one."""
    return {step.name: dict(_digests(step)) for step in workflow.steps}


def _digests(step: StepDefinition) -> Iterator[tuple[str, str]]:
    """Leave out what a step has by default: so a field that a later version of the app adds is no change."""
    for each in fields(step):
        value = getattr(step, each.name)
        if each.name not in NOT_TOLD_APART and value != each.default:
            yield each.name, sha256(str(value).encode()).hexdigest()[:8]


def from_text(text: str) -> Fingerprint:
    """Return the fingerprint from what was kept; of what cannot be read everything differs."""
    try:
        known: dict[str, Any] = json_in(text)
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


@dataclass(kw_only=True)
class Versions:
    """Compares the workflows of this app with what they were, once for each process."""

    workflows: Workflows
    known: Table
    """Has a row for each version: what it was when this app first had it."""
    store: OrderStore
    clock: Clock
    _compared: set[tuple[str, int]] = field(default_factory=set)

    async def compare(self) -> None:
        """Tell the operators of each version that was changed: one alert for each change. Raises `UnavailableError`."""
        for workflow in self.workflows.all:
            version = (workflow.name, workflow.version)
            if version not in self._compared:
                await self._compare(workflow)
                self._compared.add(version)

    async def _compare(self, workflow: Workflow) -> None:
        now = fingerprint(workflow)
        text = json_text(now)
        row = f"{workflow.name}|{workflow.version}"
        kept = await first(self.known, "workflows", {row: {"Fingerprint": text}})
        known = from_text(kept["Fingerprint"])
        if different := differences(known, now):
            event = alerts.workflow_changed(workflow.name, workflow.version, different, text, self.clock())
            log.error("workflows.changed", extra={"what": event.subject, "why": event.data["reason"]})
            await self.store.announce(self.store.buckets[0], event)
