"""A step in doubt whose service may have forgotten its key is not sent again (AGT-12)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decisions.operator_actions import possible
from engine.decisions.transitions import HistoryEntry, Transition
from engine.declarations.business import AgentDefinition, Application
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import (
    DeclarationError,
    StepDefaults,
    StepDefinition,
    WorkflowDefinition,
    Workflows,
)
from engine.domain.causes import Cause, Code
from engine.domain.effects import InDoubt, NotDone
from engine.domain.messages import AgentRequest, decode
from engine.domain.orders import InError
from engine.domain.states import Failed, Skipped, SkipReason, UndoFailed
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import OnFailure
from engine.features.key_generations import is_forgotten
from engine.words.causes import words_of
from engine.words.history import in_words
from engine.workflow import ERROR, Agent, Model, Operation, Text, Workflow, application
from operations.api.requests import OperatorRequest
from testkit import WorkflowTestEnvironment
from testkit.memory import in_memory
from tests.support.acting import act, alerts_of, cancel, is_refused, resubmit, skip
from tests.support.apps import app
from tests.support.builders import (
    COOLDOWN,
    NOW,
    ORDER_ID,
    PAYLOAD,
    THRESHOLD,
    TIMEOUT,
    answer,
    orders,
    refusal,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    timed_out,
)

DAY = timedelta(hours=24)
KEY = f"{ORDER_ID}:payment"
FORGETS = replace(
    scheduler,
    agents={
        "payment": AgentDefinition(name="payment", offers="payment", address="p", keys_last=DAY)
    },
)
REQUEST = OperatorRequest(operator="grace", note="asked the bank")
MONDAY = NOW + 2 * DAY


def renew(order, now):
    return act("retry-with-new-key", order, REQUEST, now)


def doubtful():
    """An order whose payment has timed out once, and when that was seen."""
    running = FORGETS.claim(orders.new(), NOW).after
    now = timed_out(running)
    return supervisor.recover(running, now).after


def in_error():
    """An order whose payment has timed out as often as the threshold allows."""
    order, now = orders.new(), NOW
    for _ in range(THRESHOLD):
        running = FORGETS.claim(order, max(now, order.derived.not_before or now)).after
        now = timed_out(running)
        order = supervisor.recover(running, now).after
    assert order.state == InError(Outcome.FAILED)
    return order


def forgotten(step="payment", *, is_undo=False):
    """The cause of a step whose key the service of payments may have forgotten."""
    known_until = (NOW + DAY).isoformat()
    facts = {"agent": "payment", "key": f"{ORDER_ID}:{step}", "known_until": known_until}
    return Cause(Code.KEY_FORGOTTEN, facts | {"is_undo": is_undo})


def key_in(change):
    (message,) = change.messages
    return decode(AgentRequest, message.body).idempotency_key


@pytest.mark.proves("AGT-12")
def test_a_step_in_doubt_is_not_sent_once_its_key_may_be_forgotten():
    """Nor if its time would only end then; the order waits for an operator, who reads what to do."""
    change = FORGETS.claim(doubtful(), NOW + DAY - TIMEOUT)
    step = change.after.step("payment")
    assert (change.after.state, change.messages) == (InError(Outcome.FAILED), ())
    assert step.state == Failed(forgotten(), operator_decides=True)
    assert isinstance(step.effect, InDoubt)
    assert change.after.cause == forgotten()
    shown = words_of(forgotten())
    assert all(
        fact in shown for fact in ("payment", KEY, "2026-02-01 08:15 UTC", "skip", "new key")
    )


@pytest.mark.proves("AGT-12")
def test_of_every_step_whose_key_is_forgotten_an_operator_reads():
    """Two might begin in one claim: neither hides the other."""
    payment = doubtful().step("payment")
    both = orders.having(doubtful(), steps=[payment, steps.like(payment, "stock")])
    ended = FORGETS.claim(both, MONDAY).after
    states = [step.state for step in ended.steps]
    assert states == [
        Failed(forgotten(name), operator_decides=True) for name in ("payment", "stock")
    ]


@pytest.mark.proves("ALR-1")
def test_the_alert_offers_what_an_operator_can_say():
    """And no resubmit, which would be refused."""
    (alert,) = alerts_of(FORGETS.claim(doubtful(), MONDAY))
    assert alert.data["actions"] == ["skip", "retry-with-new-key", "settle", "cancel"]


async def test_the_page_of_the_order_offers_what_makes_sense_now():
    """Not what made sense when the order failed."""
    now = NOW
    there = app(in_memory(clock=lambda: now))
    entry = HistoryEntry(at=NOW, actor="t", events=some("failed"))
    await there.engine.store.commit(Transition(before=None, after=in_error(), entry=entry))
    now = NOW + seconds(60)
    assert (await there.operations.orders.inspect(ORDER_ID)).actions == [
        "resubmit",
        "skip",
        "settle",
        "cancel",
    ]
    now = MONDAY
    assert (await there.operations.orders.inspect(ORDER_ID)).actions == [
        "skip",
        "retry-with-new-key",
        "settle",
        "cancel",
    ]


def test_until_then_it_is():
    """With the same key."""
    assert key_in(FORGETS.claim(doubtful(), NOW + DAY - TIMEOUT - seconds(0.001))) == KEY


def test_the_time_counts_from_the_first_attempt_of_what_is_in_doubt():
    """A later attempt does not put it off: the service counts from the key's first call."""
    again = FORGETS.claim(doubtful(), NOW + DAY / 2).after
    assert again.step("payment").key.known_until == NOW + DAY


def test_of_what_is_not_in_doubt_the_time_counts_anew():
    """The agent made no call, so the service does not know the key."""
    running = FORGETS.claim(orders.new(), NOW).after
    waiting = FORGETS.receive(running, answer(outcome="notAttempted", detail="open"), NOW, {}).after
    again = FORGETS.claim(waiting, MONDAY).after
    assert again.step("payment").key.known_until == MONDAY + DAY


@pytest.mark.proves("AGT-12")
def test_what_is_forgotten_is_never_undone_by_itself():
    """Although the rule of the step says so: it is no word of the service."""
    order = doubtful()
    undo = steps.with_rules(order.step("payment"), on_failure=OnFailure.UNDO)
    ended = FORGETS.claim(orders.with_steps(order, undo), MONDAY).after
    assert ended.state == InError(Outcome.FAILED)


@pytest.mark.proves("AGT-12", "OPR-4")
def test_resubmit_is_refused_and_nothing_else_offers_it():
    """On Friday it is the right thing to do, on Monday it may charge twice."""
    order = in_error()
    assert possible(order, NOW + seconds(60)) == ["resubmit", "skip", "settle", "cancel"]
    assert possible(order, MONDAY) == ["skip", "retry-with-new-key", "settle", "cancel"]
    with is_refused(Code.KEYS_FORGOTTEN, steps=["payment"]):
        resubmit(order, REQUEST, MONDAY)
    assert resubmit(order, REQUEST, NOW + seconds(60))


@pytest.mark.proves("AGT-12", "AGT-3")
def test_the_operator_says_that_it_was_not_done():
    """It begins a new round, and nothing is in doubt any more."""
    change = renew(in_error(), MONDAY)
    assert (change.entry.event, in_words(change.entry.events)) == (
        "retried-with-new-key",
        "payment: asked the bank",
    )
    again = FORGETS.claim(change.after, MONDAY)
    step = again.after.step("payment")
    assert key_in(again) == f"{KEY}:1"
    assert isinstance(step.effect, NotDone)
    assert (step.counts.failures, step.key.known_until) == (0, MONDAY + DAY)


@pytest.mark.proves("AGT-12")
def test_the_operator_says_that_it_was_done():
    """As ever, by a skip."""
    skipped = skip(in_error(), REQUEST, MONDAY).after.step("payment")
    assert skipped.state == Skipped(SkipReason.OPERATOR)


def test_nothing_is_renewed_whose_key_is_known():
    """The service tells with the same key whether it was done: that is what resubmit asks."""
    with is_refused(Code.NO_KEY_FORGOTTEN):
        renew(in_error(), NOW + seconds(60))


def test_an_order_without_a_failure_is_not_renewed():
    """It says what it is."""
    with is_refused(Code.NOT_IN_ERROR, action="retry-with-new-key", state="Pending"):
        renew(orders.new(), MONDAY)


def test_one_step_is_renewed_and_the_order_waits_for_the_other():
    """Another one has failed too."""
    order = in_error()
    other = steps.failed("stock", reason="sold out")
    change = renew(orders.having(order, steps=[*order.steps, other]), MONDAY)
    assert (change.entry.event, change.after.cause) == (
        "step-retried-with-new-key",
        refusal("sold out"),
    )
    assert change.after.state == InError(Outcome.FAILED)


@pytest.mark.proves("AGT-12")
def test_of_two_steps_whose_keys_are_forgotten_one_is_named():
    """Both are named where a resubmit is refused; only one of them is renewed."""
    payment = in_error().step("payment")
    both = orders.having(in_error(), steps=[payment, steps.like(payment, "stock")])
    with is_refused(Code.KEYS_FORGOTTEN, steps=["payment", "stock"], is_undo=False):
        resubmit(both, REQUEST, MONDAY)
    with is_refused(Code.SEVERAL_STEPS, steps=["payment", "stock"]):
        renew(both, MONDAY)
    with is_refused(Code.NO_SUCH_STEP, steps=["payment", "stock"]):
        act("retry-with-new-key", both, REQUEST, MONDAY, step="capture")
    one = act("retry-with-new-key", both, REQUEST, MONDAY, step="stock").after
    assert [step.key.generation for step in one.steps] == [0, 1]


@pytest.mark.proves("AGT-12", "UND-4", "UND-5")
def test_the_undo_of_what_is_forgotten_is_left_to_an_operator():
    """Nobody can trust an undo under a key that the service does not know."""
    undoing = cancel(in_error(), REQUEST, MONDAY).after
    change = FORGETS.claim(undoing, MONDAY)
    order = change.after
    assert (order.state, change.messages) == (InError(Outcome.UNDO_INCOMPLETE), ())
    assert order.step("payment").state == UndoFailed(forgotten(is_undo=True), operator_decides=True)
    assert order.cause == forgotten(is_undo=True)
    assert possible(order, MONDAY) == ["skip"]
    with is_refused(Code.KEYS_FORGOTTEN, is_undo=True):
        resubmit(order, REQUEST, MONDAY)
    with is_refused(Code.BEING_UNDONE):
        renew(order, MONDAY)
    gone = FORGETS.claim(skip(order, REQUEST, MONDAY).after, MONDAY).after
    assert gone.state == InError(Outcome.UNDONE)


@pytest.mark.proves("AGT-12")
def test_what_is_completed_is_undone_whenever_that_is():
    """Its answer names what is undone; only an undo in doubt can be forgotten."""
    running = FORGETS.claim(orders.new(), NOW).after
    completed = orders.pending(running, steps=[done(running, reference="r")])
    undo = FORGETS.claim(cancel(completed, REQUEST, MONDAY).after, MONDAY)
    assert key_in(undo) == KEY
    assert undo.after.step("payment").key.known_until == MONDAY + DAY


def done(order, **result):
    return steps.completed(order.step("payment"), result=result)


# What is declared

RESTS, TRIES = FaultCode.COOLDOWN_OUTLASTS_KEY, FaultCode.ATTEMPTS_OUTLAST_KEY
LONGEST = (THRESHOLD + 1) * TIMEOUT
"""How long the attempts take at most: before the third one is a pause of up to one timeout."""
TOO_LONG = {
    "cooldown": ({"on_failure": OnFailure.COOLDOWN, "cooldown": 2 * DAY}, {}, RESTS),
    "usual cooldown": ({"on_failure": OnFailure.COOLDOWN}, {"cooldown": 2 * DAY}, RESTS),
    "attempts": ({"timeout": timedelta(minutes=4), "threshold": 500}, {}, TRIES),
    "usual attempts": ({}, {"timeout": timedelta(minutes=4), "threshold": 500}, TRIES),
}


def business(step, **agent):
    definition = StepDefinition(
        name="pay", capability="bank", operation="pay", request=lambda order, results: {}, **step
    )
    return Application(
        workflows=Workflows(WorkflowDefinition(name="claim", version=1, steps=(definition,))),
        default_workflow="claim",
        agents=[AgentDefinition(name="bank", offers="bank", address="BANK_URL", **agent)],
        payload=PAYLOAD,
    )


@pytest.mark.proves("AGT-12")
@pytest.mark.parametrize("why", TOO_LONG)
def test_a_wait_that_outlasts_the_key_is_a_fault_at_the_start(why):
    """It is named, whether the step says it or the settings do."""
    step, usual, code = TOO_LONG[why]
    made = business(step, keys_last=DAY)
    with pytest.raises(DeclarationError) as caught:
        made.check(made.agents, StepDefaults(**usual))
    (fault,) = caught.value.faults
    assert (fault.code, fault.place) == (code, "claim version 1: step pay")
    assert (fault.facts["agent"], fault.facts["keys_last"]) == ("bank", DAY)
    lasting = business(step)
    forgetful = replace(made.agents[0], name="till", offers="till")
    lasting.check([*lasting.agents, forgetful], StepDefaults(**usual))


def test_where_no_settings_are_known_a_step_is_tried_once_at_least():
    """No more is assumed of it, so that no business is refused for settings that nobody made."""
    made = business({"timeout": timedelta(minutes=4)}, keys_last=timedelta(minutes=5))
    made.check(made.agents)


@pytest.mark.proves("AGT-12")
@pytest.mark.parametrize(
    ("keys_last", "code", "facts"),
    [
        (COOLDOWN - seconds(1), RESTS, {"time": COOLDOWN}),
        (LONGEST - seconds(1), TRIES, {"attempts": THRESHOLD, "time": LONGEST}),
    ],
)
def test_the_settings_count_when_the_app_starts(keys_last, code, facts):
    """Where the step does not say otherwise."""
    rests = business({"on_failure": OnFailure.COOLDOWN}).workflows
    with pytest.raises(DeclarationError) as caught:
        app(
            in_memory(),
            workflows=rests,
            offers={"bank": ("bank",)},
            declared={"keys_last": keys_last},
            max_retry_pause_seconds=TIMEOUT.total_seconds(),
        )
    place = "claim version 1: step pay"
    fault = Fault(code, place, agent="bank", keys_last=keys_last, **facts)
    assert fault in caught.value.faults


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        (
            {"keys_last": timedelta()},
            Fault(FaultCode.NOT_POSITIVE, "agent bank", field="keys_last", value=timedelta()),
        ),
        ({"calls_back": True}, Fault(FaultCode.CALLBACK_WITHOUT_TIME, "agent bank")),
        (
            {"answer_within": -DAY},
            Fault(FaultCode.NOT_POSITIVE, "agent bank", field="answer_within", value=-DAY),
        ),
        (
            {"keys_last": DAY, "answer_within": 2 * DAY},
            Fault(
                FaultCode.ANSWER_OUTLASTS_KEY,
                "agent bank",
                answer_within=2 * DAY,
                keys_last=DAY,
            ),
        ),
    ],
)
def test_impossible_times_of_an_agent_are_faults(declared, fault):
    """Whatever the service does, it is asked with a key that it knows."""
    made = business({}, **declared)
    with pytest.raises(DeclarationError) as caught:
        made.check(made.agents)
    assert fault in caught.value.faults


@pytest.mark.proves("AGT-12")
def test_an_answer_of_nothing_but_nulls_names_nothing_to_undo():
    """Only the key does (engine 4)."""
    for reference, forgotten in ((None, True), ("r", False)):
        completed = steps.completed(result={"reference": reference})
        undo = steps.undo_pending(steps.with_key(completed, known_until=NOW))
        assert is_forgotten(undo, MONDAY) is forgotten


class Content(Model):
    """What is sold."""

    item: Text


class Bank(Agent):
    """A bank of whose answers nothing is kept."""

    charge = Operation(Content)
    refund = Operation(Content)


class Post(Agent):
    """Tells the customer."""

    tell = Operation(Content)


@pytest.mark.proves("AGT-12")
@pytest.mark.parametrize(("days", "outcome"), [(0, "undone"), (7, "undo-incomplete")])
def test_a_step_is_not_undone_by_a_key_that_was_forgotten(days, outcome):
    """By a service of whose answer nothing is kept: it would say "undone" of any key (engine 4)."""
    bank, post = Bank("bank", keys_last=timedelta(days=1)), Post("post")
    sale = Workflow("sale", Content)

    @sale.step(bank.charge, undo=bank.refund)
    def charge(content: Content) -> Content:
        return content

    @sale.step(post.tell, after=[charge], on_failure=ERROR)
    def tell(content: Content) -> Content:
        return content

    environment = WorkflowTestEnvironment(
        application(sale, agents=[bank, post], sample=Content(item="x"))
    )
    environment.refuse("post")
    order = environment.submit(Content(item="x"))
    environment.advance(days=days)
    environment.act(order, "cancel")
    environment.advance(minutes=1)
    assert order.outcome == outcome
    undos = [
        message
        for message in environment._world._parts.bus.sent
        if '"operation":"refund"' in message.body
    ]
    assert len(undos) == (outcome == "undone")


@pytest.mark.proves("AGT-12", "UND-2")
@pytest.mark.parametrize("last", ["refused", "not tried"])
def test_what_was_certainly_not_done_needs_no_operator_to_be_undone(last):
    """Nothing stands at the service, so it is no harm that it forgot the key (engine 4)."""
    running = FORGETS.claim(orders.new(), NOW).after
    if last == "refused":
        reply = answer(outcome="failed", detail="declined")
    else:
        reply = answer(outcome="notAttempted", detail="open")
    stopped = FORGETS.receive(running, reply, NOW, {}).after
    assert not stopped.step("payment").may_be_done
    undo = FORGETS.claim(cancel(stopped, REQUEST, MONDAY).after, MONDAY)
    assert key_in(undo) == KEY
    assert undo.after.step("payment").key.known_until == MONDAY + DAY


@pytest.mark.proves("AGT-12")
def test_an_undo_keeps_the_time_at_which_the_key_of_what_was_done_is_forgotten():
    """An attempt to undo it does not renew the key (engine 4)."""
    running = FORGETS.claim(orders.new(), NOW).after
    order = orders.pending(running, steps=[done(running)])
    soon = NOW + DAY / 2
    undo = FORGETS.claim(cancel(order, REQUEST, soon).after, soon)
    assert undo.after.step("payment").key.known_until == NOW + DAY
