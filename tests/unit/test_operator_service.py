"""What operators see of orders in memory."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import NOW, acting_rules, new_order, scheduler, seconds, supervisor, timed_out

import workflows
from adapters.memory import in_memory
from core.changes import Change, HistoryEntry
from core.orders import ProcessState
from core.transitions import Transitions
from operators.service import OperatorService
from workflows.order import ORDER


def service_on(parts):
    return OperatorService(
        transitions=Transitions(parts.store, parts.bus, parts.clock, parts.new_id),
        store=parts.store,
        archive=parts.archive,
        clock=parts.clock,
        workflows=workflows.ALL,
        acting=acting_rules,
        buckets=8,
    )


async def listed(service):
    """In which lists the order stands, and as what."""
    pages = {state: await service.list(state, 10, None) for state in (ProcessState.PENDING, ProcessState.PROCESSING)}
    return {str(state): [str(order.process_state) for order in page.orders] for state, page in pages.items()}


@pytest.mark.proves("OPR-1")
async def test_an_order_is_listed_by_the_state_that_it_is_in_now():
    """Also when it was given back and claimed while another of its steps ran on: the row of that step is older."""
    parts = in_memory(clock=lambda: NOW)
    service = service_on(parts)
    steps = ORDER.initial_steps(allowance=seconds(5), threshold=3, rest=timedelta(0))
    steps = (steps[0], replace(steps[1], allowance=seconds(60)), *steps[2:])
    order = replace(new_order(workflow_version=2).with_state(workflow="order"), steps=steps)
    entry = HistoryEntry(at=NOW, actor="submission/i", event="submitted")
    order = await parts.store.commit(Change(before=None, after=order, entry=entry))
    assert await listed(service) == {"Pending": ["Pending"], "Processing": []}
    order = await parts.store.commit(scheduler.claim(order, NOW))
    assert await listed(service) == {"Pending": [], "Processing": ["Processing"]}
    order = await parts.store.commit(supervisor.recover(order, timed_out(order)))
    assert await listed(service) == {"Pending": ["Pending"], "Processing": []}
    order = await parts.store.commit(scheduler.claim(order, NOW + seconds(58)))
    assert await listed(service) == {"Pending": [], "Processing": ["Processing"]}
