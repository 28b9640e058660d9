"""Whatever the bytes: each decoder returns a value, or says what is wrong. Nothing else ever comes of them."""

import asyncio
import json
from base64 import b64encode
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta

import azure.functions as func
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import engine.http.public_api.triggers
import shop.triggers
from engine.azure.messaging.queues import NO_XML
from engine.decisions.transitions import OperatorEvent
from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefaults
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import Deadline, DeadlineState, WhenLate
from engine.domain.effects import RequestKey
from engine.domain.errors import InvalidError, UnreadableRowError
from engine.domain.keys import SCHEMA_VERSION
from engine.domain.messages import REPLIES, AgentRequest, OrderReady, Submission, decode
from engine.domain.orders import Hold, InError, Pending, Processing
from engine.domain.states import STATES, SkipReason
from engine.domain.statuses import Outcome
from engine.domain.steps import Counts, StepIn, StepKind, StepRules
from engine.domain.submitted_order import OnFailure
from engine.runtime.external_events import QueuedEvent
from engine.storage.order_rows import order_of, state_record
from engine.storage.orders import columns_of_record, of_transition, record_of
from engine.storage.outbox import EVENT
from engine.storage.poison import Arrival, PoisonStore
from engine.storage.step_rows import EFFECTS, WAITS
from engine.storage.tables import Insert, Stored, entity, stored_form
from operations.alerts import rules as alert_rules
from operations.api.requests import BulkRequest, OperatorRequest, RestoreRequest
from samples.claims.business import CLAIMS
from samples.simulator.rules import SimulatedCall, SimulatedFault
from samples.simulator.samples import SampleRequest
from shop.business import Content
from shop.rules import Purchase
from submission.rules import Terms, new_order, read
from testkit.memory import in_memory, of_columns
from tests.support.apps import app, bootstrap, functions, set_to
from tests.support.builders import CONTENT, ORDER_ID, PAYLOAD, WORKFLOWS, claimed, refusal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4)
    ),
    max_leaves=12,
)
MODELS = (
    Content,
    OrderReady,
    AgentRequest,
    *REPLIES.values(),
    QueuedEvent,
    OperatorRequest,
    BulkRequest,
    Purchase,
    SimulatedCall,
    SimulatedFault,
    SampleRequest,
)
EXAMPLES = {
    Submission: {
        "schemaVersion": 1,
        "orderId": ORDER_ID,
        "placedAt": "2026-01-31T08:15:00Z",
        **CONTENT,
    },
    Content: CONTENT,
    OrderReady: {"orderId": ORDER_ID, "steps": ["payment"]},
    AgentRequest: {
        "orderId": ORDER_ID,
        "step": "payment",
        "action": "do",
        "operation": "ship",
        "attempt": 1,
        "idempotencyKey": "k",
        "issuedAt": "2026-01-31T08:14:00Z",
        "completeBy": "2026-01-31T08:15:00Z",
        "content": {},
    },
    **{
        kind: {
            "schemaVersion": 2,
            "orderId": ORDER_ID,
            "step": "payment",
            "action": "do",
            "attempt": 1,
            "outcome": outcome,
            "completeBy": "2026-01-31T08:15:00Z",
            "result": {"a": 1},
            "origin": "service",
            "reason": "busy",
        }
        for outcome, kind in REPLIES.items()
    },
    QueuedEvent: {"orderId": ORDER_ID, "step": "payment", "answer": {"a": None}},
    OperatorRequest: {"operator": "grace", "note": "mended"},
    BulkRequest: {
        "operator": "grace",
        "note": "mended",
        "action": "resubmit",
        "where": {"since": "2026-01-31T08:15:00Z"},
        "until": "2026-01-31T08:16:00Z",
    },
    RestoreRequest: {
        "operator": "grace",
        "note": "restored",
        "lines": [
            {
                "table": "orders",
                "partition": "b03",
                "order": ORDER_ID,
                "at": "2026-01-31T08:15:00Z",
                "rows": [
                    {
                        "RowKey": f"{ORDER_ID}|history|000001",
                        "At": {"time": "2026-01-31T08:15:00Z"},
                    },
                    {"RowKey": f"{ORDER_ID}|order", "OrderID": ORDER_ID},
                    {"RowKey": f"{ORDER_ID}|state", "OrderID": ORDER_ID, "Version": 1},
                ],
            }
        ],
    },
    Purchase: {
        "customer": {"name": "A", "email": "a@b"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 1}],
    },
    SimulatedCall: {"orderId": ORDER_ID, "order": {"items": [{"sku": "X"}]}},
    SimulatedFault: {"mode": "slow", "latencyMs": 5, "for": 3, "match": {"sku": "X"}},
    SampleRequest: {"refuse": "payment"},
}


def spoiled(example):
    """The example with some of its fields replaced by anything, taken away, or joined by others."""
    changes = st.dictionaries(
        st.sampled_from(sorted(example)) | st.text(max_size=10), JSON, max_size=3
    )
    return st.tuples(changes, st.sets(st.sampled_from(sorted(example)), max_size=2)).map(
        lambda drawn: json.dumps(
            {k: v for k, v in (example | drawn[0]).items() if k not in drawn[1]}
        ).encode()
    )


ANYTHING = st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode())


def decodes_or_says_why(decoder, body):
    try:
        return decoder(body)
    except InvalidError as error:
        faults = error.faults
    assert faults
    assert all(str(fault).strip() for fault in faults)
    return None


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@given(data=st.data())
def test_a_message_is_read_or_refused(model, data):
    """Any bytes, any JSON, and the real thing spoiled in any way."""
    body = data.draw(ANYTHING | spoiled(EXAMPLES[model]))
    value = decodes_or_says_why(lambda text: decode(model, text), body)
    if value is not None:
        again = value.model_dump_json(by_alias=True, exclude_none=True)
        assert decode(model, again) == value


@given(
    body=ANYTHING
    | spoiled(
        {"specversion": "1.0", "id": "a", "type": "t", "time": "2026-01-31T08:15:00Z", "data": {}}
    )
)
def test_an_alert_is_read_or_refused(body):
    """In base64, or not."""
    for form in (body, b64encode(body)):
        decodes_or_says_why(alert_rules.read, form)


ROW = EVENT.columns(
    OperatorEvent(
        event_id="e", type="t", subject="s", at=datetime(2026, 1, 31, tzinfo=UTC), data={"a": 1}
    )
)
CELLS = JSON | JSON.map(json.dumps) | st.datetimes()


@given(changes=st.dictionaries(st.sampled_from(sorted(ROW)), CELLS, max_size=2))
@example(changes={"At": datetime(2026, 1, 31)})  # noqa: DTZ001 - that is the point
@example(changes={"At": 5})
@example(changes={"Data": "[]"})
def test_the_row_of_an_event_is_read_or_refused(changes):
    """What is read of it is an event, which makes the same row again."""
    try:
        event = EVENT.record(ROW | changes)
    except ValueError:
        return
    assert event.at.tzinfo is not None
    assert {type(text) for text in (event.event_id, event.type, event.subject)} == {str}
    assert isinstance(event.data, dict)
    again = EVENT.columns(event)
    assert EVENT.columns(EVENT.record(again)) == again


TERMS = Terms(
    workflows=WORKFLOWS,
    default_workflow="order",
    payload=PAYLOAD,
    reply_to_prefix="status-",
    buckets=frozenset({"b03"}),
    defaults=StepDefaults(timeout=claimed().steps[0].rules.timeout, threshold=3),
)
ANY_BUSINESS = replace(
    TERMS,
    payload=Payload(
        check=lambda payload: None,
        erased=lambda payload: payload,
        personal=lambda payload: (),
        belongs_to=lambda payload, wanted: False,
    ),
)
"""Its payload may be whatever JSON can hold."""


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.parametrize("terms", [TERMS, ANY_BUSINESS], ids=["the shop's", "any"])
@given(body=ANYTHING | spoiled(EXAMPLES[Submission]))
def test_a_submission_is_read_or_refused_and_what_is_read_can_be_stored(terms, body):
    """The engine's own fields, and beside them a payload of the shop or of any other business."""
    accepted = decodes_or_says_why(lambda text: read(text, terms), body)
    if accepted is None:
        return
    change = new_order(*accepted, terms, datetime(2026, 1, 31, tzinfo=UTC), "submission/i")
    for write in of_transition(change)[1]:
        assert record_of(as_stored(write)) == write.row


NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=200)


@pytest.mark.proves("SUB-2")
@given(
    name=NAMES,
    mail=st.text("ab.+ü🍵\x00\x85\uffff", min_size=1, max_size=60),
    quantity=st.integers(1, 1000),
    lines=st.integers(1, 50),
)
@example(name="\ufffe", mail="a", quantity=1, lines=1)
@example(name="\x85", mail="a", quantity=1, lines=1)
def test_every_valid_submission_can_be_stored_and_read_again(name, mail, quantity, lines):
    """Nothing that is accepted is too long, too strange, or lost on the way through the queue to the rows and back."""
    line = {"sku": "TEA-SENCHA", "quantity": quantity, "unitPrice": "9999999.99"}
    changes = {"customer": {"name": name, "email": f"{mail}@{mail}"}, "items": [line] * lines}
    accepted = decodes_or_says_why(
        lambda body: read(body, TERMS), json.dumps(EXAMPLES[Submission] | changes).encode()
    )
    if accepted is None:
        return
    message, workflow = accepted
    assert not NO_XML.search(name + mail)
    assert message.to_json().isascii()
    assert read(message.to_json().encode(), TERMS) == accepted
    change = new_order(message, workflow, TERMS, datetime(2026, 1, 31, tzinfo=UTC), "submission/i")
    for write in of_transition(change)[1]:
        assert record_of(as_stored(write)) == write.row


TIMES = st.datetimes(
    datetime(2000, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
COUNTS = st.integers(0, 10**6)
CAUSES = st.builds(refusal, TEXTS) | st.builds(
    Cause, st.just("melted"), st.dictionaries(TEXTS, COUNTS, max_size=2)
)
RESULTS = st.dictionaries(TEXTS, TEXTS | COUNTS, max_size=2)


def instances(kind, **own):
    """Records of this kind; whatever has a default may be left out."""
    required = {field.name: own[field.name] for field in fields(kind) if field.default is MISSING}
    others = {field.name: own[field.name] for field in fields(kind) if field.default is not MISSING}
    return st.fixed_dictionaries(required, optional=others).map(lambda given: kind(**given))


IN_WAITS = {
    **dict.fromkeys(("until", "retry_by", "at", "ask_again_at"), TIMES),
    **dict.fromkeys(("complete_by", "started_at"), TIMES),
    **dict.fromkeys(("cause", "refusal"), CAUSES),
    **dict.fromkeys(("operator_decides", "condition_pending"), st.booleans()),
    "reason": st.sampled_from(SkipReason),
}
IN_STATES = {
    **IN_WAITS,
    "wait": st.one_of([instances(kind, **IN_WAITS) for kind in WAITS.values()]),
}
IN_EFFECTS = {
    "key": instances(
        RequestKey,
        agent=TEXTS,
        provider=st.none() | TEXTS,
        generation=COUNTS,
        known_until=TIMES,
        effects_final_at=TIMES,
    ),
    "result": RESULTS,
    "answer_by": TIMES,
    **dict.fromkeys(("unanswered", "refused_for_good"), st.booleans()),
}
STEPS = st.builds(
    StepIn,
    name=TEXTS,
    rules=st.builds(
        StepRules,
        kind=st.sampled_from(StepKind),
        capability=TEXTS,
        timeout=st.timedeltas(timedelta(), timedelta(days=30)),
        threshold=COUNTS,
        on_failure=st.sampled_from(OnFailure),
        after=st.lists(TEXTS, max_size=2).map(tuple),
        pivot=st.booleans(),
    ),
    counts=st.builds(
        Counts,
        attempts=COUNTS,
        failures=COUNTS,
        uncounted=COUNTS,
        cooldowns=COUNTS,
        overloaded=COUNTS,
    ),
    effect=st.one_of([instances(kind, **IN_EFFECTS) for kind in EFFECTS.values()]),
    state=st.one_of([instances(kind, **IN_STATES) for kind in STATES]),
    callback_token=st.none() | TEXTS,
)
ORDERS = st.builds(
    replace,
    st.just(claimed()),
    state=st.just(Pending())
    | st.builds(Processing, TEXTS)
    | st.builds(InError, st.sampled_from(Outcome)),
    cause=st.none() | CAUSES,
    hold=st.none() | st.builds(Hold, TEXTS, TEXTS, TIMES),
    deadline=st.none()
    | st.builds(
        Deadline,
        due_by=TIMES,
        due_soon_at=TIMES,
        when_late=st.sampled_from(WhenLate),
        state=st.sampled_from(DeadlineState),
    ),
    failures=COUNTS,
    steps=st.lists(STEPS, min_size=1, max_size=3).map(tuple),
)


@pytest.mark.proves("SUB-2")
@given(order=ORDERS)
def test_every_order_comes_back_from_its_row(order):
    """In whatever states its steps are, and whatever is known of their effects."""
    record = state_record(order)
    again = record_of(as_stored(Insert(f"{ORDER_ID}|state", record)))
    assert again == record
    assert order_of(order.submitted, again, order.etag) == order


@pytest.mark.proves("FLT-6", "FLT-12")
@given(data=st.data(), order=ORDERS)
def test_a_spoiled_state_row_is_read_or_refused(data, order):
    """Anything in the place of a part of a step, or beside it; what is read is written as it was, with its additions."""
    columns = stored_form(columns_of_record(state_record(order)))
    steps = json.loads(columns["Steps"])
    part = data.draw(st.sampled_from([*objects_in(steps[0])]))
    part[data.draw(st.sampled_from([*part, "Region", "Is", "Cause"]))] = data.draw(JSON)
    key = f"{ORDER_ID}|state"
    row = entity("b03", key, columns | {"Steps": json.dumps(steps)})
    try:
        record = record_of(Stored(key, row, "1"))
    except UnreadableRowError:
        return
    again = stored_form(columns_of_record(record))
    assert record_of(Stored(key, entity("b03", key, again), "1")) == record
    assert (
        stored_form(columns_of_record(record_of(Stored(key, entity("b03", key, again), "1"))))
        == again
    )


def objects_in(step):
    """Yield the step, and every object inside it."""
    yield step
    for part in step.values():
        if isinstance(part, dict):
            yield from objects_in(part)


def as_stored(write, **more):
    columns = stored_form(columns_of_record(write.row))
    return Stored(write.key, {**entity("b03", write.key, columns), **more}, "1")


@given(version=st.integers(SCHEMA_VERSION + 1, 99))
@example(version=0)
def test_a_row_of_a_version_that_this_one_cannot_read_is_refused(version):
    """It is not guessed at."""
    change = new_order(
        *read(json.dumps(EXAMPLES[Submission]).encode(), TERMS), TERMS, datetime.now(UTC), "s"
    )
    write = of_transition(change)[1][0]
    with pytest.raises(UnreadableRowError, match=Code.ROW_VERSION_UNKNOWN):
        record_of(as_stored(write, SchemaVersion=version))


@given(
    body=st.binary(max_size=300),
    reason=st.text(max_size=50),
    correlation_id=st.none() | st.text(max_size=20),
)
def test_a_poison_message_is_kept_as_it_is_whatever_it_is(body, reason, correlation_id):
    """With its reason, and its id if it has one."""

    async def stored():
        poison = PoisonStore(of_columns())
        await poison.put("q", body, refusal(reason), Arrival(at=datetime.now(UTC)), correlation_id)
        return await poison.page("q", 10)

    (message,) = asyncio.run(stored())
    assert (message.body, message.reason.facts["detail"], message.correlation_id) == (
        body,
        reason,
        correlation_id,
    )


def handlers():
    """Every HTTP function of the app, on parts in memory."""
    made = app(in_memory(), simulator_enabled=True)
    of_claims = {agent.name: f"http://{agent.name}" for agent in CLAIMS.agents}
    other = bootstrap(set_to(addresses=of_claims), CLAIMS, in_memory())
    endpoints = engine.http.public_api.triggers.endpoint_routes(
        other.engine.customers, CLAIMS.endpoints
    )
    routes = [*shop.triggers.routes(made.engine.customers), *endpoints]
    bound = functions(made, routes).get_functions()
    return {
        function.get_function_name(): function.get_user_function()
        for function in bound
        if function.is_http_function()
    }


HANDLERS = handlers()
PARAMETERS = {
    "orderId": st.text(max_size=60) | st.just(ORDER_ID),
    "queue": st.text(max_size=30) | st.just("order-submissions"),
    "messageId": st.text(max_size=30),
    "service": st.text(max_size=20) | st.sampled_from(["payment", "inventory", "shipping"]),
    "action": st.text(max_size=20) | st.sampled_from(["authorise", "void", "reserve"]),
    "name": st.text(max_size=30) | st.just("payment"),
    "copy": st.text(max_size=40) | st.just("a" * 32),
    "step": st.text(max_size=30) | st.just("payment"),
}


FEWER = settings(max_examples=settings.default.max_examples * 2 // 5)
"""Every function takes the same parts of a request, and there are many functions."""


@pytest.mark.parametrize("name", sorted(HANDLERS))
@FEWER
@given(data=st.data())
def test_an_http_function_never_breaks(name, data):
    """Any body, path, query and header: an answer below 500."""
    bodies = ANYTHING | st.sampled_from(
        [json.dumps(example).encode() for example in (*EXAMPLES.values(), CLAIMS.sample.payload)]
    )
    request = func.HttpRequest(
        method=data.draw(st.sampled_from(["GET", "POST", "PUT"])),
        url="http://x/",
        body=data.draw(bodies),
        headers={"Idempotency-Key": data.draw(st.text(max_size=40))},
        params={
            key: data.draw(st.text(max_size=30))
            for key in ("state", "limit", "continuation", "orderId", "id", "key")
        },
        route_params={key: data.draw(strategy) for key, strategy in PARAMETERS.items()},
    )
    answer = asyncio.run(HANDLERS[name](request))
    assert answer.status_code < 500
    assert "Traceback" not in answer.get_body().decode()


ENDS_OF_THE_CALENDAR = [
    "0001-01-01T00:00:00+01:00",
    "1600-12-31T00:00:00Z",
    "9999-12-31T23:59:59-01:00",
]


@pytest.mark.parametrize("field", ["where", "until"])
@pytest.mark.parametrize("time", ENDS_OF_THE_CALENDAR)
def test_a_time_that_nothing_can_hold_is_refused_by_name(time, field):
    """What is no time in another zone, or in a table, is the caller's fault and no failure of ours."""
    body = EXAMPLES[BulkRequest] | {field: {"since": time} if field == "where" else time}
    request = func.HttpRequest(method="POST", url="http://x/", body=json.dumps(body).encode())
    answer = asyncio.run(HANDLERS["operator_bulk"](request))
    assert answer.status_code == 400
    assert field in json.loads(answer.get_body())["faults"][0]


@pytest.mark.proves("SUB-4")
@pytest.mark.parametrize(
    "time", [*ENDS_OF_THE_CALENDAR, "1999-12-31T23:59:59Z", "2100-01-01T00:00:00Z"]
)
def test_an_order_that_was_placed_at_no_plausible_time_is_refused(time):
    """It could not be stored, or would sort before or after all others."""
    with pytest.raises(InvalidError, match="placedAt"):
        read(json.dumps(EXAMPLES[Submission] | {"placedAt": time}).encode(), TERMS)
