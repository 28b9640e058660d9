"""Notices when a version of a workflow is not any more what it was when orders began to follow it."""

import logging
from dataclasses import dataclass, field

from alerts.fingerprints import differences, fingerprint, from_text, to_text
from core import alerts
from core.ports import Clock
from core.workflow import Workflow, Workflows
from stores.orders import OrderStore
from stores.workflow_log import WorkflowLog

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Versions:
    """Compares the workflows of this app with what they were, once for each process."""

    workflows: Workflows
    known: WorkflowLog
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
        known = from_text(await self.known.first(workflow.name, workflow.version, to_text(now)))
        if different := differences(known, now):
            event = alerts.workflow_changed(workflow.name, workflow.version, different, to_text(now), self.clock())
            log.error("workflows.changed", extra={"what": event.subject, "why": event.data["reason"]})
            await self.store.announce(self.store.buckets[0], event)
