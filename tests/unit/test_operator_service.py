"""What operators see of orders in memory."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import NOW, acting_rules, new_order, scheduler, seconds, supervisor, timed_out

import workflows
from adapters.memory import in_memory
from core.changes import Change, HistoryEntry
from core.measures import Measure
from core.orders import ProcessState
from core.transitions import Transitions
from operators.overview import OverviewService
from operators.poison import PoisonService
from operators.service import OperatorService
from scheduler.rules import LONGEST_UPGRADE
from workflows.order import ORDER


def service_on(parts):
    return OperatorService(
        transitions=Transitions(parts.store, parts.bus, parts.clock, parts.new_id),
        store=parts.store,
        archive=parts.archive,
        clock=parts.clock,
        workflows=workflows.ALL,
        acting=acting_rules,
        measures=parts.measures,
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


def overview_on(parts):
    poison = PoisonService(poison=parts.poison, bus=parts.bus, storage_queues={}, bus_queues=())
    return OverviewService(
        store=parts.store, measures=parts.measures, sweeps=parts.sweeps, poison=poison, clock=parts.clock, buckets=8
    )


@pytest.mark.proves("OPR-1")
async def test_the_overview_counts_each_order_once_and_what_is_not_sent():
    """A pending order of which another step runs on is pending, and not processing besides."""
    parts = in_memory(clock=lambda: NOW)
    steps = ORDER.initial_steps(allowance=seconds(5), threshold=3, rest=timedelta(0))
    steps = (steps[0], replace(steps[1], allowance=seconds(60)), *steps[2:])
    order = replace(new_order(workflow_version=2, reply_to="status-a").with_state(workflow="order"), steps=steps)
    entry = HistoryEntry(at=NOW, actor="submission/i", event="submitted")
    order = await parts.store.commit(Change(before=None, after=order, entry=entry))
    order = await parts.store.commit(scheduler.claim(order, NOW))
    claimed = await overview_on(parts).look()
    assert {str(state): each.count for state, each in claimed.open_orders.items()} == counts(processing=1)
    await parts.store.commit(supervisor.recover(order, timed_out(order)))
    given_back = await overview_on(parts).look()
    assert {str(state): each.count for state, each in given_back.open_orders.items()} == counts(pending=1)
    assert given_back.unsent_notices.count > 0
    assert given_back.unconfirmed_events.count == 0


def counts(pending=0, processing=0):
    return {"Pending": pending, "Processing": processing, "Error": 0}


def said(agent, open_for=None):
    """What an agent said of itself just now."""
    until = NOW + seconds(open_for) if open_for else None
    return Measure(agent=agent, instance="1", at=NOW, waited=0.0, running=0, open_until=until)


@pytest.mark.proves("OPR-2", "AGT-8")
async def test_an_explanation_says_that_circuits_are_open_and_until_when():
    """Nobody claims the order before; then it goes to the agent whose circuit is open for the shorter time."""
    parts = in_memory(clock=lambda: NOW)
    service = service_on(parts)
    order = new_order()
    entry = HistoryEntry(at=NOW, actor="submission/i", event="submitted")
    await parts.store.commit(Change(before=None, after=order, entry=entry))
    await parts.measures.publish(said("payment", open_for=30))
    one_open = await service.explain(order.order_id)
    assert one_open.next_at == NOW
    assert "payment attempt 1 started at payment-backup" in one_open.summary
    await parts.measures.publish(said("payment-backup", open_for=20))
    both_open = await service.explain(order.order_id)
    assert both_open.next_at == NOW + seconds(20)
    assert "circuits open: payment and payment-backup, until 2026-01-31 08:15:20 UTC" in both_open.waiting_for
    assert "payment attempt 1 started at payment-backup" in both_open.summary
    assert both_open.if_nothing_happens.startswith("From 2026-01-31 08:15:20 UTC on the scheduler's poll")


@pytest.mark.proves("OPR-2", "FLT-12")
async def test_an_explanation_says_that_only_a_newer_version_of_the_app_can_go_on():
    """Nobody else claims the order, until it is given up."""
    parts = in_memory(clock=lambda: NOW)
    order = new_order(workflow_version=9)
    entry = HistoryEntry(at=NOW, actor="submission/i", event="submitted")
    await parts.store.commit(Change(before=None, after=order, entry=entry))
    explanation = await service_on(parts).explain(order.order_id)
    assert explanation.waiting_for.endswith("this one does not know workflow payment-only version 9")
    assert explanation.next_at == NOW + LONGEST_UPGRADE + timedelta(microseconds=1)
