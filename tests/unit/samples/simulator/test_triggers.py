"""The HTTP face of the simulated services, called as the Functions host calls it."""

import json

import azure.functions as func
import pytest

from engine.domain.errors import UnavailableError
from samples.simulator.ledger import Ledger
from samples.simulator.triggers import simulator_functions
from testkit.memory import of_columns

CALL = {"orderId": "o1", "step": "payment", "order": {"items": [{"sku": "TEA"}]}}


class AwayLedger(Ledger):
    """A ledger whose store cannot be reached."""

    async def count_call(self, service, key, action):
        raise UnavailableError

    async def contents(self, service, order_id):
        raise UnavailableError


class Api:
    """The functions of the blueprint by name."""

    def __init__(self, simulator, samples=None):
        app = func.FunctionApp()
        app.register_functions(simulator_functions(simulator, samples))
        self.functions = {
            function.get_function_name(): function for function in app.get_functions()
        }

    async def send(self, name, method, path, body=None, headers=None, **query):
        answer = await self.answer(name, method, path, body, headers, **query)
        return answer.status_code, json.loads(answer.get_body()), answer.mimetype

    async def answer(self, name, method, path, body=None, headers=None, **query):
        service, _, last = path.partition("/")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = func.HttpRequest(
            method=method,
            url=f"http://localhost/simulator/{path}",
            headers={"Content-Length": str(len(content))} | (headers or {}),
            params=query,
            route_params={"service": service, "path": last},
            body=content,
        )
        return await self.functions[name].get_user_function()(request)

    async def call(self, path="payment/authorise", body=CALL, key="o1:payment"):
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.send("simulator_service_call", "POST", path, body, headers)

    async def faults(self, body, service="payment", method="PUT"):
        return await self.send("simulator_faults", method, f"{service}/faults", body)

    async def ledger(self, service="payment", **query):
        return await self.send("simulator_ledger", "GET", f"{service}/ledger", **query)


@pytest.fixture
def api(world):
    """The functions, over memory."""
    return Api(world.host, world.samples())


def test_the_calls_are_open_and_the_rest_needs_the_key(api):
    """Agents call without a key; what is the operator's has auth level FUNCTION."""
    triggers = {
        name: function.get_trigger().get_dict_repr() for name, function in api.functions.items()
    }
    assert {
        name: (
            trigger["authLevel"].value.lower(),
            trigger["route"],
            sorted(method.value for method in trigger["methods"]),
        )
        for name, trigger in triggers.items()
    } == {
        "simulator_service_call": (
            "anonymous",
            "simulator/{service}/{*path}",
            ["DELETE", "GET", "PATCH", "POST", "PUT"],
        ),
        "simulator_services": ("function", "simulator", ["GET"]),
        "simulator_sample": ("function", "simulator/sample", ["POST"]),
        "simulator_ledger": ("function", "simulator/{service}/ledger", ["GET"]),
        "simulator_faults": ("function", "simulator/{service}/faults", ["GET", "PUT"]),
    }


@pytest.mark.proves("AGT-7")
async def test_a_call_answers_with_its_result_and_a_repetition_likewise(api):
    """One effect stands in the ledger for two calls."""
    first = await api.call()
    assert first[0] == 200
    assert first[2] == "application/json"
    assert await api.call() == first
    status, ledger, _ = await api.ledger()
    assert (status, ledger["calls"]) == (200, 2)
    assert [(effect["idempotencyKey"], effect["action"]) for effect in ledger["effects"]] == [
        ("o1:payment", "authorise")
    ]
    assert (await api.ledger(orderId="o2"))[1] == {"calls": 0, "effects": []}


@pytest.mark.parametrize(
    "path", ["bank/authorise", "payment/ship", "payment/ledger", "inventory/void", "payment/"]
)
async def test_an_unknown_service_or_action_is_not_found(api, path):
    """Nothing is counted for it."""
    status, body, kind = await api.call(path)
    assert (status, body["status"], kind) == (404, 404, "application/problem+json")
    assert (await api.ledger())[1]["calls"] == 0


@pytest.mark.parametrize(
    "call", [lambda api: api.ledger("bank"), lambda api: api.faults({"mode": "down"}, "bank")]
)
async def test_an_unknown_service_has_neither_ledger_nor_faults(api, call):
    """It is not found either."""
    assert (await call(api))[0] == 404


@pytest.mark.parametrize("key", [None, "", "a/b", "a\\b", "a#b", "a?b", "a\tb", "a\nb", "x" * 201])
async def test_a_key_that_no_row_can_hold_is_refused(api, key):
    """A missing one is refused too, and nothing happens."""
    status, body, kind = await api.call(key=key)
    assert (status, kind) == (400, "application/problem+json")
    assert "Idempotency-Key" in body["faults"][0]
    assert (await api.ledger())[1] == {"calls": 0, "effects": []}


@pytest.mark.parametrize("key", ["x", "x" * 200, "b07-01JCX:payment", "a|b", "it's~fine=100%"])
async def test_other_keys_are_accepted(api, key):
    """Colon and bar among them."""
    assert (await api.call(key=key))[0] == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", {"step": "payment"}, {"orderId": ""}, CALL | {"order": "tea"}]
)
async def test_a_body_that_is_no_call_is_refused(api, body):
    """The problem says what is wrong with it."""
    status, problem, kind = await api.call(body=body)
    assert (status, kind) == (400, "application/problem+json")
    assert problem["faults"]


@pytest.mark.proves("FLT-1")
async def test_a_failing_service_answers_with_a_problem(api):
    """Its detail says why, for the agent to report."""
    assert (await api.faults({"mode": "reject"}))[0] == 200
    got, body, kind = await api.call()
    assert (got, body["status"], kind) == (422, 422, "application/problem+json")
    assert body["detail"] == "card declined"


@pytest.mark.parametrize(
    ("fault", "status", "pause"),
    [
        ({"mode": "busy", "retryAfter": 7}, 429, "7"),
        ({"mode": "unauthorized"}, 401, None),
        ({"mode": "accept", "latencyMs": 1500}, 202, "2"),
    ],
)
async def test_a_service_that_wants_another_call_says_so_in_its_headers(api, fault, status, pause):
    """The agent reads `Retry-After`: whole seconds, no less than it takes."""
    assert (await api.faults(fault))[0] == 200
    answer = await api.answer(
        "simulator_service_call",
        "POST",
        "payment/authorise",
        CALL,
        {"Idempotency-Key": "o1:payment"},
    )
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, pause)


@pytest.mark.parametrize("pause", [0, -1, 86_401, "soon", 1.5])
async def test_a_pause_that_is_none_is_refused(api, pause):
    """With the name of the field."""
    status, body, _ = await api.faults({"mode": "busy", "retryAfter": pause})
    assert (status, body["faults"][0].partition(":")[0]) == (400, "retryAfter")


async def test_faults_are_set_shown_and_lifted(api):
    """Put answers with what is in force, and get shows the same."""
    status, put, _ = await api.faults(
        {"mode": "slow", "latencyMs": 5, "for": 60, "match": {"sku": "TEA"}}
    )
    assert status == 200
    (shown,) = put["faults"]
    assert (shown["mode"], shown["latencyMs"], shown["for"], shown["match"]) == (
        "slow",
        5,
        60,
        {"sku": "TEA"},
    )
    assert (await api.faults(None, method="GET"))[1] == put
    assert (await api.faults({"mode": "none"}))[1] == {"faults": []}


async def test_every_fault_of_a_faults_body_is_named(api):
    """Unknown fields included; nothing comes into force."""
    status, body, kind = await api.faults(
        {"mode": "sad", "latencyMs": "soon", "match": {"colour": ""}, "why": 1}
    )
    assert (status, kind) == (400, "application/problem+json")
    assert {text.partition(":")[0] for text in body["faults"]} == {
        "mode",
        "latencyMs",
        "match.colour",
        "why",
    }
    status, body, _ = await api.faults({"mode": "down", "match": {"colour": "red"}})
    assert (status, body["faults"]) == (400, ["match.colour: the business knows no such mark"])
    assert (await api.faults(None, method="GET"))[1] == {"faults": []}


async def test_without_its_store_a_service_is_unavailable(world):
    """503, so that the agent tries again."""
    world.host.ledger = AwayLedger(of_columns())
    api = Api(world.host)
    for status, body, kind in (await api.call(), await api.ledger()):
        assert (status, body["status"], kind) == (503, 503, "application/problem+json")


async def test_all_services_are_listed_with_what_is_wrong_with_them(api):
    """The fault panel need not know the business."""
    await api.faults({"mode": "down"})
    status, answer, _ = await api.send("simulator_services", "GET", "")
    assert status == 200
    assert {
        service["name"]: [fault["mode"] for fault in service["faults"]]
        for service in answer["services"]
    } == {
        name: ["down"] if name == "payment" else []
        for name in ("payment", "payment-backup", "inventory", "shipping")
    }
    assert answer["marks"] == ["sku"]
    assert [step["name"] for step in answer["sample"]["steps"]] == [
        "stock",
        "payment",
        "shipment",
        "capture",
    ]


async def test_a_sample_order_is_placed_like_any_other(api, world):
    """It lies on the queue; nobody is told more than its id."""
    status, answer, _ = await api.send("simulator_sample", "POST", "sample", {})
    assert status == 202
    (message,) = world.submissions.texts
    assert json.loads(message)["orderId"] == answer["orderId"]
    status, answer, _ = await api.send(
        "simulator_sample", "POST", "sample", {"refuse": "teatime", "by": 1}
    )
    assert (status, {text.partition(":")[0] for text in answer["faults"]}) == (400, {"by"})
