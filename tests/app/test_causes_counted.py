"""What operators see of causes: who has taken them, how many orders wait for each, and whether the mended hold."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError

from engine.alerts import events as alerts
from engine.alerts.events import Acknowledgement, Alert
from engine.decisions.lists import summary
from engine.decisions.transitions import HistoryEntry, OperatorEvent, Transition
from engine.domain.events import OrderEnded
from engine.domain.statuses import Outcome
from engine.domain.work_index import IndexRow
from operations.api.alerts import causes
from operations.api.overview import waiting_causes
from operations.api.requests import FollowRequest, OperatorRequest, Reading
from testkit.memory import in_memory
from tests.support.acting import resubmit
from tests.support.apps import app
from tests.support.builders import (
    NOW,
    ORDER_ID,
    answer,
    claimed,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    transition,
)


def id_of(number):
    return f"{ORDER_ID[:-2]}{number:02d}"


async def recorded(made, number, order):
    order = orders.having(order, order_id=id_of(number))
    entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
    return await made.engine.store.commit(Transition(before=None, after=order, entry=entry))


def failed(reason, minutes=0):
    """An order whose payment was refused."""
    refused = answer(outcome="failed", detail=reason)
    order = scheduler.receive(claimed(), refused, NOW).after
    return orders.having(order, updated_at=NOW + timedelta(minutes=minutes))


def failed_at_backup(reason):
    payment = steps.new("payment", capability="backup")
    return orders.in_error(steps=[steps.failed(payment, reason=reason)], updated_at=NOW)


async def test_of_very_many_causes_it_is_told_that_there_are_more(monkeypatch):
    """A service may give each order a text of its own."""
    monkeypatch.setattr("operations.api.overview.MAX_CAUSES", 2)
    made = app(in_memory(clock=lambda: NOW))
    for number in range(3):
        await recorded(made, number, failed(f"refused {'x' * number}"))
        overview = await made.operations.services.overview.look(Reading(fresh=True))
        listed = len(overview.waiting_for_operator)
        assert (listed, overview.more_causes) == (min(number + 1, 2), number == 2)


@pytest.mark.proves("OPR-1")
async def test_causes_are_counted_over_all_orders_that_wait_for_an_operator():
    """With the step, its agent, and since when the first has waited."""
    made = app(in_memory(clock=lambda: NOW))
    for number in range(3):
        await recorded(made, number, failed("card declined", minutes=number))
    await recorded(made, 3, failed("Card DECLINED", minutes=3))
    await recorded(made, 4, failed("no such account"))
    await recorded(made, 5, failed_at_backup("no such account"))
    await recorded(made, 6, orders.new())
    overview = await made.operations.services.overview.look()
    counted = [
        (cause.step, cause.agent, cause.cause, cause.reason, cause.count, cause.first)
        for cause in overview.waiting_for_operator
    ]
    assert counted == [
        ("payment", "payment", "refused: card declined", "card declined", 4, NOW),
        ("payment", "payment", "refused: no such account", "no such account", 1, NOW),
        ("payment", "backup", "refused: no such account", "no such account", 1, NOW),
    ]
    assert overview.open_orders["Error"].count == 6


@pytest.mark.proves("OPR-1")
def test_a_refusal_is_grouped_by_the_type_and_the_code_of_its_service():
    """Its text is for people, and may be in any language."""
    refused = answer(outcome="failed", detail="Karte abgelehnt", type="card_error", code="expired")
    order = scheduler.receive(claimed(), refused, NOW).after
    assert summary(order)["Cause"] == "refused: card_error expired"
    assert "Karte abgelehnt" in summary(order)["Reason"]


def test_orders_whose_rows_cannot_be_read_are_listed_one_by_one():
    """Nobody knows what they have in common."""
    rows = [IndexRow(key=f"!error|t|{order_id}", order_id=order_id, data={}) for order_id in "ab"]
    assert [(cause.cause, cause.count) for cause in waiting_causes(rows)] == [(None, 1), (None, 1)]


@pytest.mark.proves("OPR-1", "ALR-1")
@pytest.mark.parametrize("reason", ["card declined", "a word " * 60, "\n no, see 12345678"])
def test_an_order_and_its_alert_name_the_same_cause(reason):
    """So a page finds the alerts of the orders that it shows; the alert has the whole text."""
    refused = scheduler.receive(claimed(), answer(outcome="failed", detail=reason), NOW)
    (alert,) = alerts.of(refused.after, refused.entry)
    assert alert.data["cause"] == summary(refused.after)["Cause"]
    assert alert.data["cause"].startswith("refused: ")


def test_the_alert_of_an_end_without_a_cause_names_none():
    """The cause of an order that was undone is optional."""
    ended = HistoryEntry(at=NOW, actor="t", events=(OrderEnded(outcome=Outcome.UNDONE),))
    (alert,) = alerts.of(orders.in_error(outcome=Outcome.UNDONE), ended)
    assert (alert.data["cause"], alert.data["reason"]) == (None, None)


@pytest.mark.proves("OPR-7")
def test_the_cause_of_a_held_order_is_why_it_failed():
    """Its reason says who holds it: a bulk action on the cause finds it too."""
    order = orders.on_hold(failed("card declined"))
    assert summary(order)["Cause"] == "refused: card declined"


def alert(number, acknowledged=None):
    data = {"step": "payment", "reason": "card declined"}
    event = OperatorEvent(
        event_id=str(number), type="T", subject=f"orders/{number}", at=NOW, data=data
    )
    return Alert(key=f"key-{number}", event=event, acknowledged=acknowledged)


@pytest.mark.proves("ALR-1")
def test_alerts_without_a_cause_are_grouped_by_their_reason():
    """Those about no order have none; another step, type or cause is another group."""

    def of(type_="T", **data):
        return replace(alert(0), event=replace(alert(0).event, type=type_, data=data))

    declined = {"step": "payment", "cause": "refused: card declined"}
    found = [
        of(reason="no sweep"),
        of(reason="no sweep"),
        of(reason="clock"),
        of(**declined, reason="card declined"),
        of(**declined, reason="card declined again"),
        of(**declined | {"step": "capture"}),
        of(**declined | {"cause": "timed-out"}, reason="card declined"),
        of("Other", **declined),
    ]
    assert [cause.count for cause in causes(found, ())] == [2, 2, 1, 1, 1, 1]


def word(by, second):
    return Acknowledgement(by=by, at=NOW + seconds(second), note=f"note {second}")


@pytest.mark.proves("ALR-1")
def test_a_cause_says_who_has_taken_it_and_when():
    """The last first; of each how many, and the last note. What is closed counts no more."""
    found = [
        alert(1, word("ada", 1)),
        alert(2, word("grace", 3)),
        alert(3, word("ada", 2)),
        alert(4),
    ]
    [cause] = causes([*found, alert(5, word("eve", 9))], {"key-5"})
    assert cause.unacknowledged == ["key-4"]
    takers = [(taker.by, taker.at, taker.note, taker.count) for taker in cause.taken]
    assert takers == [
        ("grace", NOW + seconds(3), "note 3", 1),
        ("ada", NOW + seconds(2), "note 2", 2),
    ]


@pytest.mark.proves("OPR-3")
async def test_orders_that_were_acted_on_are_followed_until_they_end_or_fail_again():
    """An order that is owed nothing is over; each is told once."""
    made = app(in_memory(clock=lambda: NOW))
    await recorded(made, 1, failed("card declined"))
    await recorded(made, 2, orders.new())
    await recorded(made, 3, orders.processed())
    request = FollowRequest(orders=(id_of(1), id_of(2), id_of(3), id_of(1)))
    found = await made.operations.services.overview.follow(request)
    assert (found.failed, found.under_way, found.over) == ([id_of(1)], [id_of(2)], [id_of(3)])
    assert not found.may_be_open


@pytest.mark.proves("OPR-3")
async def test_what_is_shown_after_an_action_was_read_after_it():
    """Though another reading is shared at that moment (bugs2.md 66)."""
    made = app(in_memory(clock=lambda: NOW))
    before = await recorded(made, 1, failed("card declined"))
    operators = made.operations.services
    assert (await operators.overview.look()).open_orders["Error"].count == 1

    async def seen():
        followed = await operators.overview.follow(FollowRequest(orders=(id_of(1),)))
        overview = await operators.overview.look(Reading(fresh=True))
        live = await operators.live.look(Reading(fresh=True))
        (order,) = live.orders
        return followed.failed, overview.open_orders["Error"].count, order.situation

    again = await made.engine.store.commit(
        resubmit(before, OperatorRequest(operator="ada", note="mended"), NOW)
    )
    assert await seen() == ([], 0, "pending")
    await made.engine.store.commit(failing_again(again))
    assert await seen() == ([id_of(1)], 1, "failed")


def failing_again(order):
    """A change by which the order waits for an operator once more."""
    entry = HistoryEntry(at=NOW + seconds(1), actor="t", events=some("noted"))
    return transition(order, orders.in_error(order), entry)


@pytest.mark.parametrize("ids", [(), ("no id",), (ORDER_ID,) * 2001, (f"x{ORDER_ID}",)])
def test_only_ids_are_followed_and_not_any_number_of_them(ids):
    """The call is one of the app's, and somebody else may make it."""
    with pytest.raises(ValidationError):
        FollowRequest(orders=ids)
