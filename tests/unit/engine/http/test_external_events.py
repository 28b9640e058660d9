"""Links that carry their own right, by which people and services outside answer without a key."""

import json
import logging
import re
from dataclasses import replace
from datetime import datetime, timedelta

import azure.functions as func
import pytest

from development.settings import app_settings
from engine.azure.clock import new_callback_token
from engine.azure.settings import EXPECTED, Settings, SettingsError
from engine.decisions.transitions import HistoryEntry
from engine.declarations.faults import Fault, FaultCode
from engine.domain import states
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt, NotDone
from engine.domain.errors import InvalidCallbackUrlError, RefusedError, TooManyTriesError
from engine.domain.events import Claimed
from engine.domain.messages import AgentRequest, decode
from engine.features.external_events.callback_urls import CallbackUrls, masked, step_of
from engine.features.external_events.content import question
from engine.http.external_events import CallbackToken, EventBody
from engine.storage.external_events import MOST_TRIES, WITHIN
from engine.words.causes import words_of
from engine.workflow import (
    Agent,
    Call,
    DeferredResult,
    Model,
    Nothing,
    Operation,
    Workflow,
    application,
)
from functions_alone.ports import Ports
from operations.api.poison import shown
from operations.api.requests import OperatorRequest
from testkit import WorkflowTestEnvironment
from testkit.memory import in_memory
from tests.support.acting import is_refused
from tests.support.apps import bootstrap, functions, set_to
from tests.support.asking import ADA, ASKING, BOTH, DAYS, SENT, Request, Work, office
from tests.support.builders import NOW, ORDER_ID, orders, steps, transition


class Clerk(Agent):
    """A service that stamps papers, and calls back."""

    stamp = Operation(Work)


clerks = Workflow("clerks", Request)


@clerks.step(Clerk.stamp)
def stamped(request: Request) -> Work:
    """Stamp the request."""
    return Work(detail="stamp")


DECLARED = {"answer_within": timedelta(hours=2), "calls_back": True}


def at_the_clerk(declared=DECLARED, **settings):
    """A test environment whose service accepts everything and names no time, and its calls."""
    calls = []

    async def later(call: Call, ask: Work) -> Nothing:
        calls.append(call)
        raise DeferredResult

    clerk = Clerk("clerk", **declared)
    clerk.activity(Clerk.stamp)(later)
    business = application(clerks, agents=[clerk])
    environment = WorkflowTestEnvironment(business, call_functions_with={}, **settings)
    return environment, calls


GRACE = OperatorRequest(operator="grace", note="the mail was lost")
URLS = {"urls": ["https://pictures.example/1"]}
LINK = re.compile(r"https://in\.memory/api/answers/([^/]+)/([^/?]+)\?token=([\w-]{22})")


def snapshot(environment, order):
    return environment._world.run(environment._world.engine.store.load(order.id))


def right_of(environment, order, step="pictures"):
    return snapshot(environment, order).step(step).callback_token


def over(environment, order, step="pictures", right=None, **content):
    """Answer over the link, which is right unless the test gives another one."""
    given = CallbackToken(token=right or right_of(environment, order, step))
    service = environment._world.engine.callback_service
    taken = environment._world.run(service.record(order.id, step, EventBody(**content), given))
    return taken.status


def shows(environment, order, step="pictures", right=None):
    given = CallbackToken(token=right or right_of(environment, order, step))
    return environment._world.run(
        environment._world.engine.callback_service.show(order.id, step, given)
    )


def begun(business=ASKING, **settings):
    environment = WorkflowTestEnvironment(business, **settings)
    return environment, environment.submit(ADA)


# The right


@pytest.mark.proves("ANS-6")
def test_a_link_answers_its_step_without_a_key():
    """The same again is known; another answer is told why it does not count."""
    environment, order = begun()
    right = right_of(environment, order)
    assert over(environment, order, answer=URLS) == "recorded"
    assert order.steps["pictures"] == "Completed"
    assert over(environment, order, right=right, answer=URLS) == "known"
    with is_refused(Code.EVENT_AFTER_COMPLETION, step="pictures"):
        over(environment, order, right=right, answer={"urls": []})
    assert any(entry.actor == "outside" for entry in environment.inspect(order.id).history)


@pytest.mark.proves("ANS-6")
def test_a_right_is_that_of_one_step_of_one_order():
    """Neither the right of another step counts, nor that of another order, nor none."""
    environment, order = begun()
    other = environment.submit(ADA)
    for wrong in (
        right_of(environment, order, "check"),
        right_of(environment, other),
        "x" * 22,
        "ü",
    ):
        with pytest.raises(InvalidCallbackUrlError):
            over(environment, order, right=wrong, answer=URLS)
    with pytest.raises(InvalidCallbackUrlError):
        over(environment, order, "approval", right="None", answer=URLS)
    with pytest.raises(InvalidCallbackUrlError):
        over(environment, order, "nothing", right="x", answer=URLS)
    assert order.steps["pictures"] == "Running"


def test_a_right_has_128_random_bits_and_no_step_is_taken_for_one_without():
    """Twenty-two characters that may stand in an address."""
    rights = {new_callback_token() for _ in range(100)}
    assert len(rights) == 100
    assert {len(right) for right in rights} == {22}
    environment, order = begun()
    awaited = snapshot(environment, order)
    without = orders.with_steps(awaited, steps.with_link(awaited.step("pictures"), None))
    with pytest.raises(InvalidCallbackUrlError):
        step_of(without, "pictures", "")


@pytest.mark.proves("ANS-6")
def test_a_reminder_keeps_the_link_and_a_new_request_has_another():
    """After somebody has given up, the link of before is not valid any more."""
    environment, order = begun(BOTH)
    first = right_of(environment, order, "soon")
    environment.advance(seconds=16)
    assert snapshot(environment, order).step("soon").counts.attempts == 2
    assert right_of(environment, order, "soon") == first
    environment.advance(minutes=1)
    assert order.steps["soon"] == "Failed"
    with is_refused(Code.EVENT_CLOSED, step="soon"):
        over(environment, order, "soon", right=first, answer=URLS)
    environment.act(order, "resubmit")
    assert right_of(environment, order, "soon") not in (None, first)
    with pytest.raises(InvalidCallbackUrlError):
        over(environment, order, "soon", right=first, answer=URLS)


@pytest.mark.proves("ANS-6")
def test_an_operator_renews_a_link_which_ends_the_former_one():
    """The new one is told to the operator who asks for it, once, and the history says who did."""
    environment, order = begun()
    former, desk = (
        right_of(environment, order),
        environment._world.operations.services.external_events,
    )
    made = environment._world.run(desk.new_callback_url(order.id, "pictures", GRACE))
    assert LINK.fullmatch(made.callback_url).groups() == (
        order.id,
        "pictures",
        right_of(environment, order),
    )
    assert made.headers() == {"Cache-Control": "no-store"}
    with pytest.raises(InvalidCallbackUrlError):
        over(environment, order, right=former, answer=URLS)
    assert "link-renewed: pictures: the mail was lost" in order.history
    over(environment, order, answer=URLS)
    with is_refused(Code.EVENT_AFTER_COMPLETION, step="pictures"):
        environment._world.run(desk.new_callback_url(order.id, "pictures", GRACE))
    with is_refused(Code.NOT_EXTERNAL, step="check"):
        environment._world.run(desk.new_callback_url(order.id, "check", GRACE))
    object.__setattr__(desk, "callback_urls", None)
    with is_refused(Code.NO_CALLBACK_URLS):
        environment._world.run(desk.new_callback_url(order.id, "approval", GRACE))


# What a link shows


@pytest.mark.proves("ANS-6")
def test_a_link_that_is_opened_shows_the_question_and_changes_nothing():
    """A mail scanner opens it as well; nobody keeps what it shows."""
    environment, order = begun()
    version = snapshot(environment, order).version
    found = shows(environment, order)
    assert found.question == {"text": "Please send pictures, Ada"}
    assert (found.title, found.until) == ("The customer sends pictures", environment.now + 5 * DAYS)
    assert (found.is_open, found.why_closed) == (True, None)
    assert found.headers() == {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    assert snapshot(environment, order).version == version
    right = right_of(environment, order)
    environment.answer(order, "pictures", SENT)
    closed = shows(environment, order, right=right)
    assert (closed.is_open, closed.why_closed) == (
        False,
        words_of(Cause(Code.EVENT_AFTER_COMPLETION, {"step": "pictures"})),
    )
    assert (closed.question, closed.until) == (None, None)
    with pytest.raises(InvalidCallbackUrlError):
        shows(environment, order, right="x")


WORDS = "Ada Lovelace is insolvent"


def refused_elsewhere(environment, order):
    environment.answer(order, "approval", refusal=WORDS)


def refused_here(environment, order):
    environment.answer(order, "pictures", refusal=WORDS)


def cancelled(environment, order):
    environment.act(order, "cancel", operator=WORDS, note=WORDS)


def skipped(environment, order):
    environment.answer(order, "later", refusal=WORDS)
    environment.act(order, "skip", "later", operator=WORDS, note=WORDS)


ANSWERS = {"pictures": URLS, "later": {"limit": 1}}
CLOSED_BY = {
    "a refusal": (ASKING, "pictures", refused_here),
    "the refusal of somebody else": (ASKING, "pictures", refused_elsewhere),
    "a cancel": (ASKING, "pictures", cancelled),
    "a skip": (BOTH, "later", skipped),
}


@pytest.mark.proves("ANS-6")
@pytest.mark.parametrize("how", CLOSED_BY)
def test_a_link_that_is_closed_repeats_no_words_of_anybody_else(how):
    """Those of operators, of others outside and of services are for operators (engine 15)."""
    business, step, close = CLOSED_BY[how]
    environment, order = begun(business)
    right = right_of(environment, order, step)
    close(environment, order)
    shown = shows(environment, order, step, right=right)
    assert not shown.is_open
    assert WORDS not in shown.model_dump_json()
    with pytest.raises(RefusedError) as refused:
        over(environment, order, step, right=right, answer=ANSWERS[step])
    assert refused.value.cause.code is Code.EVENT_CLOSED
    assert WORDS not in str(refused.value)
    assert WORDS not in str(refused.value.cause)


def test_a_link_shows_nothing_of_the_request_to_a_service():
    """It is the service's own; and a question that cannot be made is told as that."""
    environment = WorkflowTestEnvironment(ASKING)
    environment.hang("office")
    order = environment.submit(ADA)
    assert shows(environment, order, "check").question is None
    definition = ASKING.workflows.latest("asking").definition("approval")
    with is_refused(Code.QUESTION_BROKEN, step="approval"):
        question(snapshot(environment, order), definition)


# Services


@pytest.mark.proves("ANS-6")
def test_every_request_to_an_agent_has_a_link_but_none_to_undo():
    """So a service that answers later needs no key of the app."""
    environment, order = begun()
    environment.act(order, "cancel")
    bus = environment._world.engine.adapters.bus
    requests = [
        decode(AgentRequest, message.body)
        for message in bus.sent
        if message.queue == "office-requests"
    ]
    urls = {request.action: request.callback_url for request in requests}
    assert urls["undo"] is None
    assert LINK.fullmatch(urls["do"]).groups()[:2] == (order.id, "check")
    assert urls["do"] not in repr(requests[0])


@pytest.mark.proves("ANS-6")
def test_a_service_answers_over_its_link_while_its_agent_still_waits():
    """What is kept of it is as from an agent; the agent's own time-out comes to nothing."""
    environment = WorkflowTestEnvironment(BOTH)
    environment.hang("office")
    order = environment.submit(ADA)
    assert over(environment, order, "first", answer={"more": 1}) == "recorded"
    done = snapshot(environment, order).step("first")
    assert done.state == states.Completed()
    assert done.effect == Done(key=done.key, result={})
    environment.advance(minutes=2)
    assert order.steps["first"] == "Completed"


@pytest.mark.proves("ANS-6", "AGT-11")
def test_a_service_that_calls_back_completes_its_step_and_is_not_called_again():
    """What it had accepted is not in doubt any more, and nothing is asked of it at the end."""
    environment, calls = at_the_clerk()
    order = environment.submit(ADA)
    step = snapshot(environment, order).step("stamped")
    assert (order.state, step.state) == ("Pending", states.Deferred(step.answer_by))
    assert step.effect == InDoubt(key=step.key, unanswered=False, answer_by=step.answer_by)
    assert snapshot(environment, order).derived.not_before == step.answer_by
    environment.advance(hours=1)
    (call,) = calls
    right = LINK.fullmatch(call.callback_url)[3]
    assert over(environment, order, "stamped", right, answer={}) == "recorded"
    assert order.state == "Processed"
    assert isinstance(snapshot(environment, order).step("stamped").effect, Done)
    environment.advance(hours=2)
    assert len(calls) == 1


@pytest.mark.proves("AGT-11")
def test_a_service_that_never_calls_back_is_called_when_its_time_is_up():
    """With the same key; from then on each attempt counts."""
    environment, calls = at_the_clerk(failure_threshold=1)
    order = environment.submit(ADA)
    environment.advance(hours=1, minutes=59)
    assert (order.state, len(calls)) == ("Pending", 1)
    environment.advance(minutes=10)
    assert (order.state, order.outcome) == ("Error", "failed")
    assert {call.key for call in calls} == {f"{order.id}:stamped"}


@pytest.mark.proves("ANS-8")
def test_a_service_of_which_nothing_is_declared_answers_over_its_link():
    """It is called once, and the order is still Processing until the time of its step."""
    environment, calls = at_the_clerk(declared={}, step_timeout_seconds=60)
    order = environment.submit(ADA)
    environment.advance(seconds=50)
    (call,) = calls
    step = snapshot(environment, order).step("stamped")
    assert (order.state, step.complete_by) == (
        "Processing",
        environment.now + timedelta(seconds=10),
    )
    right = LINK.fullmatch(call.callback_url)[3]
    assert over(environment, order, "stamped", right, answer={}) == "recorded"
    assert (order.state, len(calls)) == ("Processed", 1)


@pytest.mark.proves("ANS-8", "AGT-3")
@pytest.mark.parametrize(("remembers", "key"), [(True, "stamped:1"), (False, "stamped")])
def test_a_service_that_refused_over_its_link_is_called_with_a_key_of_the_next_round(
    remembers, key
):
    """If it remembers refusals: it would repeat the one of before, and nothing of it is in doubt."""
    declared = DECLARED | {"remembers_refusals": remembers}
    environment, calls = at_the_clerk(declared)
    order = environment.submit(ADA)
    assert over(environment, order, "stamped", refusal="no paper") == "recorded"
    step = snapshot(environment, order).step("stamped")
    assert order.state == "Error"
    # A refusal is the final answer (engine 5).
    assert step.effect == NotDone(key=step.key, refused_for_good=remembers)
    environment.act(order, "resubmit")
    assert calls[-1].key == f"{order.id}:{key}"


@pytest.mark.proves("ANS-8")
def test_a_service_that_does_not_answer_over_its_link_has_failed_in_doubt():
    """Each attempt counts when the time of its step is up, and has the same key."""
    environment, calls = at_the_clerk(declared={}, failure_threshold=2)
    order = environment.submit(ADA)
    environment.advance(minutes=10)
    step = snapshot(environment, order).step("stamped")
    assert (order.outcome, step.counts.failures) == ("failed", 2)
    assert step.effect == InDoubt(key=step.key, unanswered=True)
    assert [call.key for call in calls] == [f"{order.id}:stamped"] * 2


class Receipt(Model):
    """What a till answers."""

    number: str
    paid_at: datetime
    note: str | None = None


class Till(Agent):
    """A service that answers at once."""

    pay = Operation(Work, Receipt)


tills = Workflow("tills", Request)


@tills.step(Till.pay)
def paid(request: Request) -> Work:
    """Pay."""
    return Work(detail="cash")


REPLIED = {"number": "7", "paidAt": "2026-01-31T09:15:00+01:00"}


def paid_at_the_till(monkeypatch):
    """An order whose service has replied, with the right of its link."""
    environment = WorkflowTestEnvironment(application(tills, agents=[Till("till")]))
    simulated = type(environment._world.engine.adapters.services["till"])

    async def call(*_):
        return REPLIED

    monkeypatch.setattr(simulated, "call", call)
    order = environment.submit(ADA)
    assert snapshot(environment, order).step("paid").result == REPLIED
    requests = [
        message
        for message in environment._world.engine.adapters.bus.sent
        if message.queue == "till-requests"
    ]
    url = decode(AgentRequest, requests[-1].body).callback_url
    return environment, order, LINK.fullmatch(url)[3]


@pytest.mark.proves("ANS-3", "ANS-6")
@pytest.mark.parametrize(
    "result",
    [
        REPLIED,
        REPLIED | {"note": None},
        REPLIED | {"paidAt": "2026-01-31T09:15:00.000+01:00"},
        REPLIED | {"more": 1},
    ],
    ids=[
        "to the letter",
        "with a default",
        "with a time in another form",
        "with more than is kept",
    ],
)
def test_what_a_service_has_replied_is_known_when_it_comes_over_its_link(monkeypatch, result):
    """By its values, for its reply is kept as it was written (engine 29 b)."""
    environment, order, right = paid_at_the_till(monkeypatch)
    assert over(environment, order, "paid", right, answer=result) == "known"
    assert snapshot(environment, order).step("paid").result == REPLIED


@pytest.mark.proves("ANS-3", "ANS-6")
def test_another_answer_than_the_reply_is_refused_over_the_link(monkeypatch):
    """Also one that differs only in what the reply left out."""
    environment, order, right = paid_at_the_till(monkeypatch)
    for other in ({"number": "8"}, {"note": "paid twice"}):
        with pytest.raises(RefusedError):
            over(environment, order, "paid", right, answer=REPLIED | other)


def no_public_url(name):
    expected = EXPECTED["PUBLIC_URL"]
    return Fault(FaultCode.PUBLIC_URL_MISSING, "PUBLIC_URL", name=name, expected=expected)


def test_an_agent_whose_service_calls_back_needs_the_address_of_the_app():
    """Or it would wait in vain."""
    clerk = Clerk("clerk", answer_within=timedelta(hours=2), calls_back=True)
    unknown = set_to(addresses={"clerk": "http://clerk"}, public_url=None)
    with pytest.raises(SettingsError) as found:
        bootstrap(unknown, application(clerks, agents=[clerk]), in_memory())
    assert found.value.faults == [no_public_url("clerk")]


def test_without_an_address_there_are_no_rights_and_no_links():
    """As in a deployment that nobody has told its address."""
    callback_urls = CallbackUrls(address="https://x", new_token=lambda: "r")
    environment, order = begun()
    step = snapshot(environment, order).step("pictures")
    assert callback_urls.of("b00-1", steps.with_link(step, None)) is None
    rules = replace(environment._world.engine.scheduler_rules, callback_urls=None)
    bare = steps.waiting(steps.with_link(step, None))
    pending = orders.pending(orders.with_steps(snapshot(environment, order), bare))
    assert rules.claim(pending, environment.now, {}).after.step("pictures").callback_token is None


# Where it must not stand


@pytest.mark.proves("ANS-6", "OPR-1")
def test_no_right_stands_in_a_view_a_history_or_a_log_line(caplog):
    """Not even where a message that nobody could read is shown."""
    caplog.set_level(logging.DEBUG)
    environment, order = begun()
    rights = {step.callback_token for step in snapshot(environment, order).steps} - {None}
    assert len(rights) == 2
    over(environment, order, answer=URLS)
    listed = environment._world.run(environment._world.operations.orders.explain(order.id))
    texts = [
        environment.inspect(order.id).model_dump_json(),
        listed.model_dump_json(),
        *order.history,
        repr(snapshot(environment, order)),
        *(repr(record.__dict__) for record in caplog.records),
    ]
    assert not [text for text in texts for right in rights if right in text]
    body = json.dumps({"callbackUrl": "https://x/api/answers/b00-1/pay?token=s3-cr_t", "n": 1})
    assert shown(body.encode()) == body.replace("s3-cr_t", "...")
    assert masked("nothing") == "nothing"


# Who guesses


@pytest.mark.proves("ANS-6")
def test_who_guesses_at_an_order_is_turned_away_before_it_is_read():
    """For some minutes, also with the right link; other orders are not concerned."""
    environment, order = begun()
    other = environment.submit(ADA)
    for _ in range(MOST_TRIES):
        with pytest.raises(InvalidCallbackUrlError):
            over(environment, order, right="x", answer=URLS)
    for call in (shows, lambda *given: over(*given, answer=URLS)):
        with pytest.raises(TooManyTriesError):
            call(environment, order)
    assert over(environment, other, answer=URLS) == "recorded"
    environment.advance(seconds=WITHIN.total_seconds())
    assert over(environment, order, answer=URLS) == "recorded"


# The address of the app


def read_with(monkeypatch, address):
    for name, value in app_settings(Ports(), "k", "k", [office]).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PUBLIC_URL", address)
    return Settings.read([])


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("orders.example.com", FaultCode.SETTING_MALFORMED),
        ("https://orders.example.com/?x=1", FaultCode.SETTING_MALFORMED),
        ("https://user@orders.example.com", FaultCode.SETTING_MALFORMED),
        ("http://orders.example.com", FaultCode.NOT_HTTPS),
        ("http://localhost.example.com", FaultCode.NOT_HTTPS),
    ],
)
def test_an_address_of_which_no_safe_link_can_be_made_is_refused_at_the_start(
    monkeypatch, address, code
):
    """One without a scheme, with more than a path, or over which a right would travel openly."""
    with pytest.raises(SettingsError) as found:
        read_with(monkeypatch, address)
    assert [(fault.place, fault.code) for fault in found.value.faults] == [("PUBLIC_URL", code)]


@pytest.mark.parametrize(
    "address", ["https://orders.example.com/app/", "http://127.0.0.1:7071", "http://localhost"]
)
def test_an_address_over_which_a_right_may_travel_is_taken(monkeypatch, address):
    """One over TLS, or on this machine."""
    assert read_with(monkeypatch, address).public_url == address


@pytest.mark.proves("ANS-6")
def test_where_a_workflow_waits_the_app_starts_only_with_its_address():
    """The fault names the setting, and the workflow."""
    unknown = set_to(addresses={"office": "http://office"}, public_url=None)
    with pytest.raises(SettingsError) as found:
        bootstrap(unknown, ASKING, in_memory())
    assert found.value.faults == [no_public_url("asking")]


# Over HTTP


@pytest.mark.proves("ANS-6")
async def test_a_link_over_http_needs_no_key_and_says_what_is_wrong():
    """404 for what is not recorded yet, 400 with every fault, 403, 409, 429; 200 again and again."""
    settings = set_to(addresses={"office": "http://office"}, public_url="https://in.memory/")
    app = bootstrap(settings, ASKING, in_memory())
    bound = {function.get_function_name(): function for function in functions(app).get_functions()}

    async def call(name, right="x", step="pictures", **content):
        trigger = bound[name].get_trigger().get_dict_repr()
        assert trigger["authLevel"] == func.AuthLevel.ANONYMOUS
        request = func.HttpRequest(
            method="POST",
            url="http://x/",
            body=json.dumps(content).encode(),
            headers={},
            params={"token": right} if right else {},
            route_params={"orderId": ORDER_ID, "step": step},
        )
        given = await bound[name].get_user_function()(request)
        return given.status_code, json.loads(given.get_body()), given.headers

    status, _, headers = await call("customers_answer", answer=URLS)
    assert (status, headers["Retry-After"]) == (404, "1")
    assert (await call("customers_question"))[0] == 404
    await app.engine.submission.record(
        json.dumps(
            {"schemaVersion": 1, "orderId": ORDER_ID, "placedAt": NOW.isoformat(), "who": "Ada"}
        ).encode()
    )
    order = await app.engine.store.load(ORDER_ID)
    right = "r" * 22
    step = steps.with_link(order.step("pictures"), right)
    await app.engine.unit_of_work.run(ORDER_ID, lambda order, now: _with(order, step, now))
    status, body, headers = await call("customers_question", right)
    assert (status, body["question"]) == (200, {"text": "Please send pictures, Ada"})
    assert headers["Cache-Control"] == "no-store"
    assert (await call("customers_question", None))[0] == 400
    status, problem, _ = await call("customers_answer", right, answer={"urls": 1, "more": 2})
    assert (status, len(problem["faults"])) == (400, 2)
    assert (await call("customers_answer", right, answer={"urls": ["x" * 300_000]}))[0] == 400
    assert (await call("customers_answer", right, answer=URLS))[0] == 200
    assert (await call("customers_answer", right, answer=URLS))[1]["status"] == "known"
    assert (await call("customers_answer", right, answer={"urls": []}))[0] == 409
    found = [(await call("customers_answer", answer=URLS))[0] for _ in range(MOST_TRIES + 1)]
    assert found == [403] * MOST_TRIES + [429]
    assert (await call("customers_question", right))[0] == 429


def _with(order, step, now):
    entry = HistoryEntry(at=now, actor="test", events=(Claimed(),))
    assert step.is_external
    return transition(order, orders.with_steps(order, step), entry)
