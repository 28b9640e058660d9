"""The scheduler's decision about a waiting order: claim it or leave it (SCH-1 to SCH-3)."""

# The pattern in an hour, 12 of 23: the claim

from dataclasses import replace
from datetime import datetime, timedelta

from engine.decisions.drafts import Draft, NextVersion, end
from engine.decisions.proceed import (
    NO_SILENT_AGENTS,
    Capacity,
    Proceed,
    Scheduler,
    SilentAgents,
)
from engine.decisions.transitions import NotClaimed
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.causes import Cause, Code
from engine.domain.events import Claimed, WorkflowChanged
from engine.domain.orders import OrderAggregate, Pending
from engine.domain.states import AtWork
from engine.domain.statuses import NotClaimable, Outcome
from engine.domain.work_index import capability_of


def claim(
    order: OrderAggregate,
    now: datetime,
    capacity: Capacity,
    scheduler: Scheduler,
    silent: SilentAgents = NO_SILENT_AGENTS,
) -> NextVersion | NotClaimed:
    """Claim the order and start its ready steps in one write (SCH-2, SCH-3)."""
    # The clock of the process that changed the order last may be ahead, by the tolerance at most.
    now = max(now, min(order.updated_at, now + scheduler.clock_tolerance))
    if why_not := order.not_claimable(now):
        return NotClaimed(why_not)
    waited = now - order.derived.ready_since
    if not can_claim(scheduler, order.workflow, order.workflow_version, waited):
        return NotClaimed(NotClaimable.UNKNOWN_WORKFLOW)
    events = (Claimed(),) if isinstance(order.state, Pending) else ()
    draft = Draft(before=order, order=order, now=now, events=events)
    workflow = scheduler.workflows.find(order.workflow, order.workflow_version)
    if workflow is None:
        return _end_of_retired(draft)
    proceed = Proceed(scheduler=scheduler, workflow=workflow, capacity=capacity, silent=silent)
    next_version = proceed(draft)
    if next_version is None:
        return NotClaimed(_why_nothing_starts(order, now, proceed))
    return noting_workflow_changes(next_version, workflow)


def can_claim(scheduler: Scheduler, workflow: str, version: int, waited: timedelta) -> bool:
    """Return whether this app may claim orders on this workflow version (FLT-12).

    An order on an unknown version waits `version_overlap` for a newer app. Then it ends in `Error`.
    """
    workflows = scheduler.workflows
    is_known = workflows.find(workflow, version) is not None
    return (
        is_known or workflows.was_retired(workflow, version) or (waited > scheduler.version_overlap)
    )


def _end_of_retired(draft: Draft) -> NextVersion | NotClaimed:
    """End an order whose workflow this app does not have."""
    order = draft.order
    if order.has_any(AtWork):  # they answer or expire first (SCH-12)
        return NotClaimed(NotClaimable.RUNS)
    facts = {"workflow": order.workflow, "version": order.workflow_version}
    outcome = Outcome.UNDO_INCOMPLETE if order.is_undo else Outcome.FAILED
    return end(draft, outcome, None, Cause(Code.WORKFLOW_RETIRED, facts))


def _why_nothing_starts(order: OrderAggregate, now: datetime, proceed: Proceed) -> NotClaimable:
    if order.is_out_of_time(now):
        return NotClaimable.DEADLINE_PASSED
    if proceed.unreachable(order.ready):
        return NotClaimable.UNKNOWN_PROVIDER
    due = (step for step in order.ready if (order.starts_at(step) or now) <= now)
    has_capacity = any(capability_of(step) in proceed.capacity for step in due)
    return NotClaimable.NO_CAPACITY_AT_ITS_OWN if has_capacity else NotClaimable.NO_CAPACITY


def noting_workflow_changes(next_version: NextVersion, workflow: WorkflowDefinition) -> NextVersion:
    """Record once that definitions of steps changed while the order followed them."""
    fingerprints = {step.name: step.fingerprint for step in workflow.steps}
    stale = [
        step
        for step in next_version.after.steps
        if step.rules.fingerprint and step.rules.fingerprint != fingerprints.get(step.name)
    ]
    if not stale:
        return next_version
    now = {step.name: fingerprints.get(step.name, "") for step in stale}
    names = (f"{name} ({f'now {known}' if known else 'gone'})" for name, known in now.items())
    changed = WorkflowChanged(
        workflow=workflow.name, version=workflow.version, steps=", ".join(names)
    )
    fresh = (replace(step, rules=replace(step.rules, fingerprint=now[step.name])) for step in stale)
    after = next_version.after.with_steps(*fresh)
    return replace(next_version, after=after, events=(*next_version.events, changed))
