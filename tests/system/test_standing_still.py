"""Somebody notices when nobody claims orders, or nobody sweeps (SUP-7)."""

import pytest
from client import QUICK, eventually
from submitting import new_order_id, submit

LIMITS = {"WATCH_SCHEDULE": "* * * * * *", "LONGEST_PENDING_SECONDS": "2", "LONGEST_WITHOUT_SWEEP_SECONDS": "2"}
NEITHER_SCHEDULER_NOR_SUPERVISOR = (
    "health_report,submission_record,alerts_relay,alerts_record,alerts_watch,operator_alerts"
)


@pytest.mark.proves("SUP-7")
async def test_an_alert_comes_while_scheduler_and_supervisor_are_switched_off(own_stack):
    """One for the order that nobody claims, one for the sweep that stays away."""
    stack, client = await own_stack(functions=NEITHER_SCHEDULER_NOR_SUPERVISOR, settings=QUICK | LIMITS)
    order_id = new_order_id()
    await submit(stack, order_id)

    async def told():
        _, answer = await client.request("GET", "/api/operator/alerts")
        stalled = [alert for alert in answer["alerts"] if alert["type"] == "OrderProcessing.Stalled"]
        return {alert["subject"] for alert in stalled} == {f"orders/{order_id}", "supervisor"} and stalled

    assert len(await eventually(told, 30)) == 2
