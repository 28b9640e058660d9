"""What the alerts about the deadline of an order tell operators."""

import pytest

from engine.alerts import events as alerts
from engine.decisions.operator_actions import possible
from engine.decisions.transitions import HistoryEntry, OperatorEvent
from engine.domain import events as e
from engine.domain.deadlines import WhenLate
from engine.domain.effects import InDoubt, RequestKey
from engine.domain.orders import InError
from engine.domain.states import Failed
from engine.domain.statuses import Outcome
from tests.support.due_orders import ALERT, DUE
from tests.support.engine_records import DECLINED, HOUR, NOW, ORDER_ID, order, step

FORGOTTEN = InDoubt(key=RequestKey(agent="bank", provider="psp", known_until=NOW))
FAILED = order(
    step(Failed(DECLINED), effect=FORGOTTEN), state=InError(Outcome.FAILED), deadline=ALERT
)


@pytest.mark.proves("ALR-6")
@pytest.mark.parametrize(
    ("it", "action"),
    [(order(step(), deadline=ALERT), "hold"), (FAILED, "retry-with-new-key")],
    ids=["open", "failed"],
)
@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        (e.DueSoon(due_by=DUE), alerts.ORDER_DUE_SOON, "due-soon"),
        (
            e.DeadlinePassed(due_by=DUE, when_late=WhenLate.ALERT),
            alerts.ORDER_LATE,
            "deadline-passed",
        ),
    ],
    ids=["soon", "late"],
)
def test_an_alert_has_the_deadline_its_rule_and_what_operators_can_do_then(
    it, action, event, kind, code
):
    """Even beside the end of the order: what they can do may depend on the time."""
    entry = HistoryEntry(at=NOW + HOUR, actor="supervisor/v1", events=(event,))
    actions = possible(it, NOW + HOUR)
    assert action in actions
    assert list(alerts.of(it, entry)) == [
        OperatorEvent(
            event_id=f"{ORDER_ID}:{code}",
            type=kind,
            subject=f"orders/{ORDER_ID}",
            at=NOW + HOUR,
            data={
                "orderId": ORDER_ID,
                "workflow": "claim",
                "reason": {"code": code, "facts": {"due_by": DUE.isoformat()}},
                "cause": code,
                "dueBy": DUE.isoformat(),
                "whenLate": "alert",
                "actionRequired": True,
                "actions": actions,
            },
        )
    ]
