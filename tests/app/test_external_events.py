"""Answers from outside: steps that ask no agent, from the question to the answer or its end."""

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import azure.functions as func
import pytest

from engine.alerts.events import STALLED
from engine.decisions.errors import ActionRefusedError
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import (
    LONGEST_WAIT,
    DeclarationError,
    WorkflowDefinition,
    Workflows,
)
from engine.domain import work_index
from engine.domain.causes import Cause, Code, step_failed
from engine.domain.effects import NothingSent
from engine.domain.errors import InvalidError, RefusedError, UnavailableError, UnknownOrderError
from engine.domain.orders import InError, Pending, Processing
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    Completed,
    RequestCancelled,
    Skipped,
    SkipReason,
    UnderWay,
)
from engine.domain.statuses import OrderStatus
from engine.domain.steps import Counts
from engine.domain.submitted_order import EXTERNAL_PARTY, Order
from engine.domain.work_index import WorkItemKind
from engine.features.external_events import decide
from engine.features.external_events.actions import extend_deadline
from engine.features.external_events.decide import ExternalEvent
from engine.words.catalogue import text
from engine.words.causes import words_of
from engine.workflow import CONTINUE, UNDO, Model, Personal, Workflow, application
from engine.workflow.drawing import mermaid
from operations.api.explain import explain
from operations.api.external_events import EventRequest
from operations.api.prospects import Actor
from operations.api.requests import OperatorRequest
from operations.api.retention import erase
from testkit import WorkflowTestEnvironment
from testkit.memory import in_memory
from tests.support.acting import act, is_refused
from tests.support.apps import bootstrap, functions, set_to
from tests.support.asking import (
    ADA,
    ASKING,
    BOTH,
    DAYS,
    SENT,
    YES,
    Approval,
    Pictures,
    Question,
    Request,
    Work,
    office,
)
from tests.support.builders import (
    NOW,
    ORDER_ID,
    SOMEWHERE,
    TOLERANCE,
    acting_rules,
    index_rows,
    orders,
    refusal,
    steps,
)
from tests.support.faults import without_lines

SECOND = timedelta(seconds=1)


def snapshot(environment, order):
    """The records of an order of a test environment."""
    return environment._world.run(environment._world.engine.store.load(order.id))


def begun(**settings):
    environment = WorkflowTestEnvironment(ASKING, **settings)
    return environment, environment.submit(ADA)


def kinds(order):
    return sorted(key.partition("|")[0] for key in index_rows(order))


def sent(name="pictures", result=None):
    return ExternalEvent(step=name, result=result or SENT.model_dump(mode="json"))


# The way of an answer


@pytest.mark.proves("ANS-1")
def test_an_order_waits_for_its_answers_and_continues_with_every_one():
    """Meanwhile it is Processing until the deadline, and nobody holds it."""
    environment, order = begun()
    assert (order.steps["check"], order.steps["pictures"]) == ("Completed", "Running")
    waiting = snapshot(environment, order)
    until = environment.now + 5 * DAYS
    assert (type(waiting.state), waiting.derived.locked_by) == (Processing, None)
    assert waiting.derived.complete_by == until
    assert waiting.step("pictures").state == AwaitingExternalEvent(until)
    assert waiting.status is OrderStatus.AWAITING
    environment.answer(order, "pictures", SENT)
    assert order.steps["approval"] == "Running"
    environment.answer(order, "approval", YES)
    assert (order.state, environment.effects("office")) == ("Processed", ["check", "pay"])


@pytest.mark.proves("ANS-1")
def test_no_message_goes_out_for_an_answer_and_no_agent_gets_a_request():
    """Its request is made all the same, so that a broken question fails the step."""
    environment, order = begun()
    queues = Counter(message.queue for message in environment._world.engine.adapters.bus.sent)
    assert queues == {"scheduler-requests": 1, "office-requests": 1, "office-responses": 1}
    assert kinds(snapshot(environment, order)) == [WorkItemKind.WAITING]


@pytest.mark.proves("ANS-2")
def test_a_missing_answer_is_requested_again_and_at_last_given_up():
    """The deadline is counted like any other time-out; then the rule of the step decides."""
    environment, order = begun()
    environment.advance(days=5, minutes=1)
    assert (order.state, order.steps["pictures"]) == ("Processing", "Running")
    assert snapshot(environment, order).step("pictures").counts.attempts == 2
    environment.advance(days=5)
    assert environment.effects("office") == ["check"]
    environment.advance(days=5, minutes=1)
    assert (order.outcome, environment.effects("office")) == ("undone", ["check", "uncheck"])
    missing = Cause(Code.EXTERNAL_EVENT_MISSING, {"step": "pictures", "failures": 3})
    assert order.reason == words_of(step_failed("pictures", missing))
    assert not [event for event in environment.alerts() if event.type == STALLED]


@pytest.mark.proves("ANS-2")
def test_a_late_answer_counts_until_somebody_has_given_up():
    """After its time, and while the next question is not asked yet."""
    environment, order = begun()
    waiting = snapshot(environment, order)
    late = environment.now + 6 * DAYS
    assert decide.recorded(waiting, sent(), "operator/x", late).after.step("pictures").result
    recovered = rules(environment).recover(waiting, late, ()).after
    assert recovered.state == Pending()
    assert recovered.step("pictures").effect == NothingSent()
    counted = decide.recorded(recovered, sent(), "operator/x", late).after
    assert counted.step("pictures").state == Completed()
    environment.advance(days=16)
    with is_refused(Code.EVENT_AFTER_FAILURE):
        environment.answer(order, "pictures", SENT)


def rules(environment):
    return environment._world.engine.supervisor_rules


@pytest.mark.proves("ANS-2", "SUP-4")
def test_at_the_deadline_the_answer_and_the_supervisor_are_two_decisions_on_one_etag():
    """Each makes the next version, so the store takes one of them."""
    environment, order = begun()
    waiting = snapshot(environment, order)
    now = environment.now + 5 * DAYS + 10 * SECOND
    recovered = rules(environment).recover(waiting, now, ())
    answered = decide.recorded(waiting, sent(), "operator/x", now)
    assert recovered.before.etag == answered.before.etag
    assert recovered.after.version == answered.after.version == 1 + waiting.version


@pytest.mark.proves("ANS-2")
def test_an_early_answer_is_kept_and_the_steps_after_it_still_wait_for_their_turn():
    """Its step is never asked; what comes after it waits for all that has to be done before."""
    environment = WorkflowTestEnvironment(ASKING)
    environment.down("office")
    order = environment.submit(ADA)
    environment.answer(order, "approval", YES)
    environment.answer(order, "pictures", SENT)
    environment.advance(seconds=20)
    assert order.steps["approval"] == order.steps["pictures"] == "Completed"
    assert (order.steps["check"] != "Completed", order.steps["pay"]) == (True, "NotStarted")
    environment.heal()
    environment.advance(minutes=5)
    assert (order.state, environment.effects("office")) == ("Processed", ["check", "pay"])
    assert "step-answered: approval was answered before its turn" in order.history


@pytest.mark.proves("ANS-3")
def test_an_answer_may_be_no_and_then_the_step_has_failed():
    """Its rule decides; the same again is known, another one is refused."""
    environment, order = begun()
    environment.answer(order, "pictures", refusal="there is no damage")
    assert (order.outcome, order.reason) == ("undone", "pictures: there is no damage")
    environment.answer(order, "pictures", refusal="there is no damage")
    with is_refused(Code.EVENT_AFTER_FAILURE):
        environment.answer(order, "pictures", SENT)


# What is waited for holds nothing up


@pytest.mark.proves("SCH-12", "ANS-4")
def test_what_is_awaited_is_withdrawn_when_another_step_fails():
    """The order ends at once; nothing of the answer is in doubt, and a resubmit asks anew."""
    environment = WorkflowTestEnvironment(ASKING)
    environment.refuse("office", "check")
    order = environment.submit(ADA)
    assert (order.state, order.outcome) == ("Error", "undone")
    assert order.steps["pictures"] == "NotStarted"
    assert any(text("history.request-cancelled", step="pictures") in line for line in order.history)
    with is_refused(Code.EVENT_DURING_UNDO):
        environment.answer(order, "pictures", SENT)


@pytest.mark.proves("SCH-12", "ANS-4")
def test_a_cancelled_order_is_undone_at_once_whatever_it_waits_for():
    """Nobody holds it meanwhile, so whichever scheduler is woken undoes it."""
    environment, order = begun()
    environment.act(order, "cancel")
    assert (order.outcome, environment.effects("office")) == ("undone", ["check", "uncheck"])


@pytest.mark.proves("SCH-12", "ANS-4")
def test_while_agents_are_at_work_on_a_cancelled_order_they_answer_first():
    """Only what is awaited from outside is withdrawn."""
    environment = WorkflowTestEnvironment(ASKING)
    environment.hang("office")
    order = environment.submit(ADA)
    environment.act(order, "cancel")
    going_back = snapshot(environment, order)
    assert isinstance(going_back.state, Processing)
    assert [step.name for step in going_back.in_state(UnderWay)] == ["check"]
    assert going_back.step("pictures").state == RequestCancelled()
    assert going_back.derived.complete_by == going_back.step("check").complete_by
    assert kinds(going_back) == [WorkItemKind.RUNNING]


@pytest.mark.proves("ANS-4")
def test_a_given_up_answer_is_requested_again_after_a_resubmit_and_may_be_skipped():
    """As any other failed step, where nothing needs its answer."""
    environment, order = begun()
    environment.answer(order, "pictures", SENT)
    environment.answer(order, "approval", refusal="too dear")
    assert (order.state, order.outcome) == ("Error", "failed")
    with is_refused(Code.RESULT_NEEDED, needed={"approval": ["pay"]}):
        environment.act(order, "skip")
    environment.act(order, "resubmit")
    assert order.steps["approval"] == "Running"
    environment.answer(order, "approval", YES)
    assert order.state == "Processed"


@pytest.mark.proves("OPR-7")
def test_a_hold_moves_the_deadline_by_the_time_held():
    """While it is held nothing is counted, and an answer is taken."""
    environment, order = begun()
    until = snapshot(environment, order).derived.complete_by
    environment.act(order, "hold")
    held = snapshot(environment, order)
    assert kinds(held) == [WorkItemKind.HELD]
    with pytest.raises(ActionRefusedError) as on_hold:
        extend_deadline(held, "pictures", until + DAYS, "y", environment.now)
    assert on_hold.value.cause.code is Code.DEADLINE_ON_HOLD
    environment.advance(days=7)
    assert snapshot(environment, order).step("pictures").counts.failures == 0
    environment.act(order, "release")
    released = snapshot(environment, order)
    moved = until + 7 * DAYS
    assert released.step("pictures").complete_by == released.derived.complete_by == moved
    tomorrow = environment.now + DAYS
    extended = extend_deadline(released, "pictures", tomorrow, "y", environment.now).after
    assert extended.derived.complete_by == tomorrow
    environment.act(order, "hold")
    environment.answer(order, "pictures", SENT)
    assert order.steps["approval"] == "NotStarted"
    environment.act(order, "release")
    assert order.steps["approval"] == "Running"


@pytest.mark.proves("SUP-7", "ANS-4")
def test_an_overdue_answer_raises_an_alert_the_usual_time_after_it_was_due():
    """No alert is raised before, however long the wait; nobody sweeps here."""
    environment, order = begun()
    world = environment._world

    async def nothing():
        return 0

    object.__setattr__(world.engine.supervisor, "sweep", nothing)
    late = world.operations.stall_detector.pending_alert_after
    environment.advance(days=5)

    def stalled():
        return [alert for alert in environment.alerts() if order.id in alert.data.get("orders", ())]

    assert not stalled()
    environment.advance(seconds=late.total_seconds() + 3700)
    assert [alert.type for alert in stalled()] == [STALLED]


@pytest.mark.proves("ANS-4")
def test_orders_that_wait_cost_rows_and_nothing_else():
    """In an hour the looks of a system with a hundred of them read what they read without any."""
    reads = {}
    for count in (0, 100):
        environment = WorkflowTestEnvironment(ASKING)
        for _ in range(count):
            environment.submit(ADA)
        environment.advance(minutes=5)
        reads[count] = cost_of_an_hour(environment)
    assert reads[100] == reads[0]


def cost_of_an_hour(environment):
    """The rows that were read, and the writes, in an hour in which the timers run as always."""
    table, counted = environment._world.orders, Counter()
    rows, submit = table.rows, table.submit

    async def counted_rows(*args, **more):
        found = await rows(*args, **more)
        counted["reads"] += 1
        counted["rows"] += len(found)
        return found

    async def counted_submit(*args, **more):
        counted["writes"] += 1
        return await submit(*args, **more)

    table.rows, table.submit = counted_rows, counted_submit
    environment.advance(hours=1)
    return counted


@pytest.mark.proves("SUP-2", "ANS-4")
def test_what_an_order_owes_is_a_row_of_its_own_that_no_scheduler_reads():
    """It sorts behind what schedulers and supervisors read each second, and names the deadline."""
    environment, order = begun()
    key, row = next(iter(index_rows(snapshot(environment, order)).items()))
    assert key.startswith(f"{WorkItemKind.WAITING}|")
    assert key > work_index.waiting_and_running()[1]
    assert (row.data["WaitsFor"], "Agents" in row.data) == ("pictures", False)
    start, end = work_index.overdue(environment.now + 6 * DAYS, WorkItemKind.WAITING)
    assert start <= key < end


def test_nothing_of_a_wait_counts_as_the_time_that_a_step_took():
    """Figures of how long steps take are of agents alone."""
    environment, order = begun()
    waiting = snapshot(environment, order)
    change = decide.recorded(waiting, sent(), "operator/x", environment.now + DAYS)
    assert change.seconds(Completed) == {}


def need_of(order):
    """The need that names the lane in which the order is claimed first."""
    return work_index.first_need(order, order.derived.ready_since)


def test_a_wait_needs_no_capacity_and_no_lane_of_an_agent():
    """Its order is claimed like one that is only to be ended, before agents have room for others."""
    environment = WorkflowTestEnvironment(ASKING)
    environment.hang("office")
    order = snapshot(environment, environment.submit(ADA))
    fresh = orders.pending(orders.with_steps(order, steps.waiting(order.step("pictures"))))
    assert need_of(fresh) == work_index.NO_AGENT
    change = environment._world.engine.scheduler_rules.claim(fresh, environment.now, SOMEWHERE)
    pictures = change.after.step("pictures")
    assert (type(pictures.state), pictures.key) == (AwaitingExternalEvent, None)


def test_an_order_whose_answer_can_be_requested_is_claimed_first():
    """Its question needs no room, so it does not wait for that of another step of the order."""
    environment, order = begun()
    order = snapshot(environment, order)
    fresh = orders.pending(order, steps=[steps.waiting(step) for step in order.steps])
    assert [step.name for step in fresh.ready] == ["check", "pictures"]
    assert need_of(fresh) == work_index.NO_AGENT


# Several answers at once


def assert_given_up(order):
    """The order is in `Error`, and awaits nothing."""
    assert isinstance(order.state, InError)
    assert not order.has_any(AwaitingExternalEvent)


def requested_twice(*, hang=False):
    """An order that awaits two answers, and may have a step at work."""
    environment = WorkflowTestEnvironment(BOTH)
    if hang:
        environment.hang("office")
    return environment, snapshot(environment, environment.submit(ADA))


def test_an_answer_leaves_the_others_awaited_and_wakes_a_scheduler_for_what_comes_next():
    """The deadline of the order is that of the first that is still awaited."""
    environment, order = requested_twice()
    until = order.derived.complete_by
    assert until == order.step("soon").complete_by
    answered = decide.recorded(order, sent("later", {"limit": 1}), "operator/x", environment.now)
    assert (answered.after.derived.complete_by, answered.messages) == (until, ())
    done = decide.recorded(order, sent("soon"), "operator/x", environment.now)
    assert done.after.state == Pending()
    assert [message.queue for message in done.messages] == ["scheduler-requests"]
    assert [step.name for step in done.after.in_state(AwaitingExternalEvent)] == ["later"]
    environment, order = requested_twice(hang=True)
    nothing_next = orders.having(order, steps=order.steps[:3])
    done = decide.recorded(nothing_next, sent("soon"), "operator/x", environment.now)
    derived = done.after.derived
    assert (done.after.state, derived.locked_by) == (Processing("test"), "test")
    assert derived.complete_by == order.step("first").complete_by


@pytest.mark.proves("SCH-12", "ANS-4")
def test_a_refusal_ends_the_order_at_once_whatever_else_it_awaits():
    """The other answer is withdrawn, and not taken any more, as the order is in Error."""
    environment, order = requested_twice()
    answer = ExternalEvent(step="later", refusal="no")
    ended = decide.recorded(order, answer, "operator/x", environment.now).after
    assert_given_up(ended)
    with is_refused(Code.EVENT_AFTER_END, state="Error"):
        decide.recorded(ended, sent("soon"), "operator/x", environment.now)


@pytest.mark.proves("SCH-12", "ANS-4")
def test_a_refusal_waits_for_the_agents_at_work():
    """Whoever holds the order keeps it until they have answered; then all that is awaited is withdrawn."""
    environment, order = requested_twice(hang=True)
    answer = ExternalEvent(step="later", refusal="no")
    refused = decide.recorded(order, answer, "operator/x", environment.now).after
    assert (refused.state, refused.derived.locked_by) == (Processing("test"), "test")
    assert [step.name for step in refused.in_state(AtWork)] == ["first"]
    recovered = rules(environment).recover(refused, environment.now + DAYS, ()).after
    assert_given_up(recovered)
    assert recovered.cause == refusal("no")


@pytest.mark.proves("SCH-12")
def test_the_count_of_what_was_withdrawn_begins_anew_with_a_resubmit():
    """As if nobody had been asked before: it is no reminder, and the former link has ended."""
    environment = WorkflowTestEnvironment(BOTH)
    order = environment.submit(ADA)
    environment.advance(seconds=16)
    step = snapshot(environment, order).step("soon")
    assert step.counts == Counts(attempts=2, failures=1)
    environment.answer(order, "later", refusal="no")
    assert (order.state, order.steps["soon"]) == ("Error", "NotStarted")
    environment.act(order, "resubmit")
    anew = snapshot(environment, order).step("soon")
    assert isinstance(anew.state, AwaitingExternalEvent)
    assert anew.counts == Counts(attempts=3)
    assert anew.callback_token not in (None, step.callback_token)


@pytest.mark.proves("SCH-12")
def test_an_order_whose_workflow_is_gone_is_given_up_whatever_it_awaits():
    """Only agents would have to answer first."""
    environment, order = requested_twice()
    now = environment.now + DAYS
    pending = rules(environment).recover(order, now, ()).after
    scheduler = replace(environment._world.engine.scheduler_rules, workflows=Workflows())
    ended = scheduler.claim(pending, now + DAYS * 99, {}).after
    assert_given_up(ended)


@pytest.mark.proves("OPR-7", "ANS-2")
def test_the_supervisor_counts_nothing_while_held_and_takes_nobody_outside_for_an_agent():
    """No agent is silent if nobody outside answers."""
    environment, order = requested_twice()
    late = environment.now + DAYS
    held = act("hold", order, OperatorRequest(operator="x", note="y"), environment.now).after
    assert rules(environment).recover(held, late, ()) is None
    assert list(rules(environment).unresponsive_agents(order, late, ())) == []


@pytest.mark.proves("OPR-7", "OPR-2")
def test_of_a_held_order_no_supervisor_is_awaited_for_an_answer_from_outside():
    """Its time is up, but the release moves it; an agent's step runs on, and has its own."""
    environment, order = requested_twice(hang=True)
    held = act("hold", order, OperatorRequest(operator="x", note="y"), environment.now).after
    late = order.step("soon").complete_by + timedelta(seconds=30)
    assert late < order.step("first").complete_by
    assert explain(order, [], acting_rules, late).next_actor is Actor.SUPERVISOR
    explanation = explain(held, [], acting_rules, late)
    until = order.step("first").complete_by
    assert (explanation.next_actor, explanation.next_at) == (Actor.AGENT, until)
    assert explanation.if_nothing_happens.startswith(
        f"At {until + TOLERANCE:%Y-%m-%d %H:%M:%S} UTC"
    )


# Judged when its turn comes, and done without


def judged(**rules):
    """A business that asks for pictures by these rules, and pays whether they come or not."""
    flow = Workflow("judged", Request)

    @flow.wait_for(Pictures, within=5 * DAYS, attempts=2, **rules)
    def pictures(request: Request) -> Question:
        return Question(text=request.who)

    @flow.step(office.pay)
    def pay(pictures: Pictures | None) -> Work:
        return Work(detail="with pictures" if pictures else "without")

    return application(flow, agents=[office])


def is_small(request: Request) -> bool:
    """No order is."""
    return request.who == ""


def in_a_week(order: Order) -> datetime:
    """Seven days after it was placed."""
    return order.placed_at + 7 * DAYS


@pytest.mark.proves("SCH-14", "ANS-1")
def test_an_answer_that_is_not_needed_is_never_awaited():
    """Its step is skipped, like that of an agent."""
    environment = WorkflowTestEnvironment(judged(condition=is_small))
    order = environment.submit(ADA)
    assert (order.state, order.steps["pictures"]) == ("Processed", "Skipped")


@pytest.mark.proves("SCH-15", "ANS-1")
def test_an_answer_is_awaited_from_the_time_on_at_which_its_step_begins():
    """An earlier one is kept all the same."""
    environment = WorkflowTestEnvironment(judged(start_at=in_a_week))
    order = environment.submit(ADA)
    assert (order.state, order.steps["pictures"]) == ("Pending", "NotStarted")
    environment.advance(days=7, minutes=1)
    assert order.steps["pictures"] == "Running"
    early = environment.submit(ADA)
    environment.answer(early, "pictures", SENT)
    assert early.state == "Processed"


def refused_early(**rules):
    """An order of which an approval is refused before its turn, and its environment."""
    flow = Workflow("early", Request)

    @flow.step(office.check, undo=office.uncheck)
    def check(request: Request) -> Work:
        return Work(detail="check")

    @flow.wait_for(Approval, within=DAYS, after=[check], **rules)
    def approval(request: Request) -> Question:
        return Question(text=request.who)

    environment = WorkflowTestEnvironment(application(flow, agents=[office]))
    environment.down("office")
    order = environment.submit(ADA)
    environment.answer(order, "approval", refusal="no")
    return environment, order


def healed(environment):
    environment.heal()
    environment.advance(minutes=5)


def is_for_ada(request: Request) -> bool:
    """Every order is."""
    return request.who == "Ada"


@pytest.mark.proves("ANS-3", "SCH-14")
def test_an_early_refusal_of_a_step_that_is_not_needed_counts_for_nothing():
    """It is kept until then; the order had been undone for it (engine 29 h)."""
    environment, order = refused_early(condition=is_small, on_failure=UNDO)
    assert order.steps["approval"] == "NotStarted"
    assert order.history[-1].startswith("step-refused-early: approval ")
    healed(environment)
    assert (order.state, order.steps["approval"]) == ("Processed", "Skipped")


@pytest.mark.proves("ANS-3", "SCH-14", "SCH-15")
@pytest.mark.parametrize("rules", [{"condition": is_for_ada}, {"start_at": in_a_week}], ids="".join)
def test_an_early_refusal_counts_when_the_turn_of_its_step_comes(rules):
    """Nobody is asked for the answer then, and no start time is awaited (engine 29 h)."""
    environment, order = refused_early(on_failure=UNDO, **rules)
    assert (order.state, order.steps["approval"]) != ("Error", "Failed")
    healed(environment)
    assert (order.outcome, order.reason) == ("undone", "approval: no")
    assert snapshot(environment, order).step("approval").counts.attempts == 0


@pytest.mark.proves("ANS-3", "SCH-13")
def test_an_order_goes_on_without_a_step_that_was_refused_early():
    """Where the workflow says so."""
    environment, order = refused_early(condition=is_for_ada, on_failure=CONTINUE)
    healed(environment)
    assert (order.state, order.steps["approval"]) == ("Processed", "Skipped")
    skipped = snapshot(environment, order).step("approval")
    assert skipped.state == Skipped(SkipReason.FAILED, refusal("no"))


@pytest.mark.proves("ANS-3", "OPR-3")
def test_a_step_that_was_refused_early_is_requested_after_a_resubmit():
    """Whether it is needed, and from when on, is found out again."""
    environment, order = refused_early(condition=is_for_ada, start_at=in_a_week)
    healed(environment)
    assert (order.outcome, order.reason) == ("failed", "no")
    assert snapshot(environment, order).step("approval").effect == NothingSent()
    environment.act(order, "resubmit")
    assert (order.state, order.steps["approval"]) == ("Pending", "NotStarted")
    environment.advance(days=7)
    assert order.steps["approval"] == "Running"


@pytest.mark.proves("SCH-13", "ANS-2", "ANS-3")
def test_an_order_goes_on_without_an_answer_that_is_refused_or_never_comes():
    """Where the workflow says so; the same refusal again is known."""
    environment = WorkflowTestEnvironment(judged(on_failure=CONTINUE))
    order, other = environment.submit(ADA), environment.submit(ADA)
    environment.answer(order, "pictures", refusal="there is no damage")
    environment.answer(order, "pictures", refusal="there is no damage")
    assert (order.state, order.steps["pictures"]) == ("Processed", "Skipped")
    assert any(
        text("history.optional-step-failed", step="pictures") in line for line in order.history
    )
    environment.advance(days=10, minutes=1)
    assert (other.state, other.steps["pictures"]) == ("Processed", "Skipped")
    with is_refused(Code.EVENT_AFTER_SKIP, step="pictures"):
        environment.answer(other, "pictures", SENT)


# Personal data


@pytest.mark.proves("ANS-5", "OPR-1")
def test_the_personal_part_of_an_answer_is_shown_to_nobody_and_erased_with_the_order():
    """What is not personal stays, so that later steps can still be made."""
    environment, order = begun()
    environment.answer(order, "pictures", SENT)
    shown = {step.name: step.result for step in environment.inspect(order.id).steps}
    assert shown["pictures"] == {"urls": list(SENT.urls), "by": "erased"}
    assert not [line for line in order.history if "Ada" in line or "example" in line]
    request = OperatorRequest(operator="grace", note="asked for it")
    before = snapshot(environment, order)
    change = erase(before, request, ASKING.payload, environment.now)
    assert change.after.step("pictures").result == {"urls": list(SENT.urls), "by": "erased"}
    assert change.after.submitted.payload == {"who": "erased"}
    with pytest.raises(RefusedError):
        erase(change.after, request, ASKING.payload, environment.now)
    answered_later = orders.having(change.after, steps=before.steps)
    again = erase(answered_later, request, ASKING.payload, environment.now)
    assert again.after.steps == change.after.steps


# Who answers, and how


@pytest.mark.proves("ANS-3")
def test_every_fault_of_an_answer_is_named_and_changes_nothing():
    """By its place in what was sent; an answer that no row could hold is one."""
    environment, order = begun()
    with pytest.raises(InvalidError) as found:
        environment.answer(order, "pictures", {"urls": [1], "more": True})
    assert {str(fault).partition(":")[0] for fault in found.value.faults} == {
        "answer.urls.0",
        "answer.more",
    }
    with pytest.raises(InvalidError, match="answer-too-long"):
        environment.answer(order, "pictures", Pictures(urls=("x" * 10_001,)))
    assert order.steps["pictures"] == "Running"


def test_an_answer_is_of_one_kind_and_for_a_step_that_takes_one():
    """Neither both nor nothing; a step of an agent takes none, nor does an unknown order."""
    environment, order = begun()
    for content in ({}, {"answer": {}, "refusal": "no"}):
        with pytest.raises(ValueError, match="either an answer or a refusal"):
            EventRequest(operator="x", **content)
    for step in ("check", "nothing"):
        with is_refused(Code.NOT_EXTERNAL, steps=["pictures", "approval"]):
            environment.answer(order, step, SENT)
    with pytest.raises(UnknownOrderError):
        environment.answer(replace(order, id=f"{order.id[:-3]}999"), "pictures", SENT)


def test_only_an_app_that_knows_the_workflow_takes_an_answer():
    """Another host may know it; the caller is asked to come again."""
    environment, order = begun()
    service = environment._world.operations.services.external_events
    object.__setattr__(service, "workflows", type(service.workflows)())
    with pytest.raises(UnavailableError, match="newer version"):
        environment.answer(order, "pictures", SENT)


@pytest.mark.proves("ANS-1", "OPR-2")
def test_it_is_explained_what_is_awaited_until_when_and_what_comes_then():
    """And the list of what waits begins with the first that is due."""
    environment, order = begun()
    explanation = environment._world.run(environment._world.operations.orders.explain(order.id))
    request = "pictures (The customer sends pictures), request 1 of 3"
    assert explanation.waiting_for == f"an external event for {request}"
    assert (explanation.next_actor, explanation.next_at) == ("outside", environment.now + 5 * DAYS)
    assert "the supervisor's sweep finds the order" in explanation.if_nothing_happens
    environment.act(order, "hold")
    explanation = environment._world.run(environment._world.operations.orders.explain(order.id))
    assert (explanation.next_actor, explanation.if_nothing_happens) == (
        "operator",
        text("explain.stays"),
    )


# As it is declared


class Part(Model):
    """A part of an answer."""

    name: Personal[str]


class Parts(Model):
    """An answer whose personal data an erasure would not find."""

    parts: tuple[Part, ...]


def test_an_author_learns_what_is_wrong_with_an_answer_when_the_app_starts():
    """With file and line: a mark that is too deep, a time that is too long, another model."""
    flow = Workflow("asking", Request)

    @flow.wait_for(Parts, within=31 * DAYS)
    def parts(request: Request) -> Question:
        return Question(text=request.who)

    @flow.wait_for(Approval, within=DAYS, attempts=2)
    def approval(parts: Pictures) -> Question:
        return Question(text=str(parts))

    with pytest.raises(DeclarationError) as found:
        application(flow, agents=[])
    place = "test_external_events.py:N: asking version 1"
    assert without_lines(found.value.faults) == [
        Fault(FaultCode.PERSONAL_INSIDE_FIELD, f"{place}: step parts: answer: field parts"),
        Fault(
            FaultCode.PARAMETER_TYPE,
            f"{place}: step approval: parameter parts",
            step="parts",
            expected="Parts",
            declared="Pictures",
        ),
        Fault(
            FaultCode.TOO_HIGH,
            f"{place}: step parts",
            field="timeout",
            value=31 * DAYS,
            limit=LONGEST_WAIT,
        ),
    ]


def test_the_engine_refuses_a_wait_without_time_or_answer_and_an_agent_of_that_name():
    """Nor is there anything to undo; the drawing shows who answers, and the definition is stable."""
    definition = ASKING.workflows.latest("asking").definition("pictures")
    broken = replace(definition, timeout=None, read_answer=None, compensation="undo")
    workflow = WorkflowDefinition(name="x", version=1, steps=(broken,))
    assert list(workflow.faults(())) == [
        Fault(FaultCode.EXTERNAL_WITHOUT_MODEL, "step pictures"),
        Fault(FaultCode.EXTERNAL_WITHOUT_TIMEOUT, "step pictures"),
        Fault(FaultCode.EXTERNAL_WITH_UNDO, "step pictures"),
    ]
    pivot = WorkflowDefinition(name="x", version=1, steps=(replace(definition, pivot=True),))
    assert list(pivot.faults(())) == [Fault(FaultCode.EXTERNAL_AS_PIVOT, "step pictures")]
    assert definition.fingerprint == replace(definition, read_answer=dict).fingerprint
    assert "external event within 5 days" in mermaid(ASKING.workflows.latest("asking"))
    agent = replace(ASKING.agents[0], offers=EXTERNAL_PARTY)
    with pytest.raises(DeclarationError) as found:
        replace(ASKING, agents=(agent,)).check([agent])
    reserved = Fault(FaultCode.CAPABILITY_RESERVED, agent.place, capability=EXTERNAL_PARTY)
    assert reserved in found.value.faults


# Over HTTP


@pytest.mark.proves("ANS-3", "OPR-5")
async def test_an_answer_over_http_is_taken_or_refused_with_the_reason():
    """Only with the operators' key; an order that is not recorded yet may be so in a moment."""
    app = bootstrap(set_to(addresses={"office": "http://office"}), ASKING, in_memory())
    bound = {function.get_function_name(): function for function in functions(app).get_functions()}
    answer = bound["operator_answer"]
    assert answer.get_trigger().get_dict_repr()["authLevel"] == func.AuthLevel.FUNCTION

    async def call(order_id=ORDER_ID, step="pictures", **content):
        body = json.dumps({"operator": "grace", **content}).encode()
        path = {"orderId": order_id, "step": step}
        given = await answer.get_user_function()(
            func.HttpRequest(
                method="POST", url="http://x/", body=body, headers={}, route_params=path
            )
        )
        return given.status_code, json.loads(given.get_body()), given.headers.get("Retry-After")

    urls = {"urls": ["https://pictures.example/1"]}
    status, _, again = await call(answer=urls)
    assert (status, again) == (404, "1")
    await app.engine.submission.record(
        json.dumps(
            {"schemaVersion": 1, "orderId": ORDER_ID, "placedAt": NOW.isoformat(), "who": "Ada"}
        ).encode()
    )
    status, problem, _ = await call(answer={"urls": 1, "more": 2})
    assert (status, len(problem["faults"])) == (400, 2)
    known = {"orderId": ORDER_ID, "step": "pictures"}
    assert await call(answer=urls) == (200, {**known, "status": "recorded"}, None)
    assert await call(answer=urls) == (200, {**known, "status": "known"}, None)
    status, problem, _ = await call(answer={"urls": []})
    assert (status, problem["detail"]) == (
        409,
        words_of(Cause(Code.EVENT_AFTER_COMPLETION, {"step": "pictures"})),
    )
    assert (await call(answer={"urls": ["x" * 300_000]}))[0] == 400
