"""The operators' API as it describes itself: what it answers is what it says, and nothing works without the key."""

import asyncio
import json
import os
import re
import sys
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from uuid import uuid4

import azure.functions as func
import pytest
from azure.storage.queue.aio import QueueClient

import operations.api.triggers
import shop.triggers
from engine.http.external_events import callback_routes
from engine.http.openapi import description
from engine.runtime.api import http_functions
from engine.words.catalogue import text
from functions_alone.tests.support.waiting import PATIENCE_SECONDS, eventually
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.failing import fault
from tests.support.interfaces import CommandLine
from tests.support.submitting import new_order_id, submit

ROOT = Path(__file__).parent.parent.parent
GRACE = {"operator": "grace", "note": "mended"}
SIMULATORS = (
    ("GET", "/simulator"),
    ("POST", "/simulator/sample"),
    ("GET", "/simulator/payment/ledger"),
    ("PUT", "/simulator/payment/faults"),
)
HOSTILE = "<script>alert(1)</script>'; DROP TABLE orders; -- \u202e %s {{x}} \U0001f9a0"
EXAMPLES = 25
"""Of each call."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "positive_data_acceptance",
)


@cache
def declared():
    """What the app declares of its routes."""
    made = app(in_memory())
    return [
        *shop.triggers.routes(made.engine.customers),
        *callback_routes(made.engine.callback_service),
        *operations.api.triggers.operator_routes(made.operations.services),
    ]


@cache
def described():
    """The description of these routes."""
    return description(declared())


async def order_in_error(client, stack):
    order_id = new_order_id()
    await fault(client, "payment", "reject", order_id)
    await submit(stack, order_id, workflow="order")
    await client.until(order_id, "Error")
    await eventually(partial(client.alerts, order_id))
    return order_id


async def poison_message(client, stack):
    body = f"{{broken {uuid4()}"
    async with QueueClient.from_connection_string(
        stack.storage_connection_string, "order-submissions"
    ) as queue:
        await queue.send_message(body)

    async def kept():
        _, answer = await client.request("GET", "/api/operator/poison?limit=500")
        return [message["id"] for message in answer["messages"] if message["body"] == body]

    return (await eventually(kept))[0]


async def test_the_description_is_served_to_anybody(client):
    """It says nothing of what is in the system."""
    assert await client.request("GET", "/api/openapi.json", key=False) == (
        200,
        json.loads(json.dumps(described())),
    )


def routes():
    """Every route of the operators and the shop, with its method and level, as the functions are bound."""
    app = func.FunctionApp()
    app.register_functions(http_functions(declared()))
    bound = [
        function.get_trigger().get_dict_repr()
        for function in app.get_functions()
        if function.is_http_function()
    ]
    return [
        (trigger["route"], trigger["methods"][0].value, trigger["authLevel"].value)
        for trigger in bound
        if trigger["route"] != "api/openapi.json"
    ]


def test_the_description_names_every_route_and_no_other():
    """As the triggers bind them."""
    named = {(path, method) for path, methods in described()["paths"].items() for method in methods}
    assert named == {(f"/{path}", method.lower()) for path, method, _ in routes()}


async def test_without_the_key_every_call_answers_401_and_changes_nothing(client, stack):
    """No key, a wrong one, and an empty one; on an order and a message that are there."""
    order_id, message_id = await order_in_error(client, stack), await poison_message(client, stack)
    before = await client.order(order_id), await client.request("GET", "/api/operator/poison")
    body = {
        **GRACE,
        "alerts": [alert["key"] for alert in await client.alerts(order_id)],
        "action": "cancel",
    }
    names = {
        "{name}": "payment",
        "{orderId}": order_id,
        "{step}": "payment",
        "{queue}": "order-submissions",
        "{messageId}": message_id,
        "{copy}": "a" * 32,
    }
    for path, method, level in routes():
        assert (level == "function") is path.startswith("api/operator"), path
        if level == "anonymous":
            continue
        place = re.sub(r"\{\w+\}", lambda found: names[found[0]], path)
        for headers in ({}, {"x-functions-key": "wrong"}, {"x-functions-key": ""}):
            status, _ = await client.request(
                method, f"/{place}", key=False, headers=headers, json=body
            )
            assert status == 401, (method, place, headers)
    for method, path in SIMULATORS:
        assert (await client.request(method, path, key=False, json={}))[0] == 401, path
    assert (
        await client.order(order_id),
        await client.request("GET", "/api/operator/poison"),
    ) == before
    assert [alert["acknowledged"] for alert in await client.alerts(order_id)] == [None]


@pytest.mark.soak
async def test_every_answer_is_as_it_is_described(client, stack, tmp_path):
    """Whatever is asked: no 5xx, no status, content or field that the description does not know (schemathesis)."""
    schema = deepcopy(described())
    ids = [await order_in_error(client, stack), await client.place("TEA-SENCHA"), new_order_id()]
    known = {
        "orderId": ids,
        "step": ["payment"],
        "name": ["fax"],  # what is held here would stop other tests
        "queue": ["order-submissions"],
        "messageId": [await poison_message(client, stack) for _ in range(3)],
        "copy": ["a" * 32],
    }
    calls = (call for path in schema["paths"].values() for call in path.values())
    for parameter in (argument for call in calls for argument in call.get("parameters", ())):
        if parameter["in"] == "path":
            parameter["schema"] = {
                "anyOf": [parameter["schema"], {"enum": known[parameter["name"]]}]
            }
    (tmp_path / "openapi.json").write_text(json.dumps(schema))
    code, output = await schemathesis(tmp_path, client, "openapi.json", "--url", client.url)
    assert code == 0, output


@pytest.mark.soak
async def test_an_answer_that_is_not_described_is_found(client, tmp_path):
    """So the test above can fail: the description forgets one field, and one status."""
    schema = deepcopy(described())
    del schema["components"]["schemas"]["OrderList"]["properties"]["continuation"]
    schema["paths"] = {
        path: calls for path, calls in schema["paths"].items() if path == "/api/operator/orders"
    }
    del schema["paths"]["/api/operator/orders"]["get"]["responses"]["400"]
    (tmp_path / "openapi.json").write_text(json.dumps(schema))
    code, output = await schemathesis(
        tmp_path, client, "openapi.json", "--url", client.url, "--continue-on-failure"
    )
    assert code == 1
    assert "Undocumented status code" in output
    assert "Response violates schema" in output


async def schemathesis(folder, client, *arguments):
    """Run it in a process of its own; return its exit code, and what it says."""
    key = f"x-functions-key:{client.key['x-functions-key']}"
    options = [
        "--checks",
        ",".join(CHECKS),
        "--phases",
        "fuzzing",
        "--seed",
        "6",
        "-n",
        str(EXAMPLES),
        "--no-color",
    ]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(ROOT / "tests" / "support"),
    }
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "schemathesis", "run", *arguments, *options, "-H", key,
        "--generation-database", "none",
        cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.proves("OPR-3")
async def test_hostile_text_is_kept_as_it_is_and_obeyed_by_nothing(client, stack):
    """An operator's note comes back as text over HTTP; a terminal is shown no character that it could obey."""
    order_id = await order_in_error(client, stack)
    status, _ = await client.request(
        "POST",
        f"/api/operator/orders/{order_id}/resubmit",
        json={"operator": HOSTILE[:80], "note": HOSTILE},
    )
    assert status == 202
    order = await client.until(order_id, "Error")
    assert HOSTILE in [entry["detail"] for entry in order["history"]]
    operator, shown = CommandLine(client), {}
    about_it = (f"show {order_id}", f"show {order_id} --json", f"explain {order_id}")
    for command in ("list", "alerts", *about_it):
        code, shown[command], err = await operator.run(*command.split())
        assert code == 0, err
        assert [
            character
            for character in shown[command]
            if not character.isprintable() and character != "\n"
        ] == []
    assert "\\u202e" in shown[f"show {order_id}"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "b00-00000000000000000000000000"), 1, "No such order is recorded"),
        (("resubmit", "not an id", "-m", "x"), 1, "No such order is recorded"),
        (("list", "--limit", "0"), 1, "limit: Input should be greater than or equal to 1"),
        (("bulk", "resubmit", "-m", "x", "--go"), 1, f"until: {text('fault.until-missing')}"),
        (("bulk", "resubmit", "-m", "x", "--since", "yesterday"), 1, "where.since"),
        (("resubmit", "b00-00000000000000000000000000"), 2, "--note"),
        (("list", "--state", "Accepted"), 2, "--state"),
    ],
)
async def test_the_command_line_says_what_is_wrong_and_its_exit_code_says_whose_fault_it_is(
    client, arguments, code, says
):
    """1 refused or not found, 2 wrong usage."""
    found, out, err = await CommandLine(client).run(*arguments)
    assert (found, out) == (code, "")
    assert says in err


async def test_the_command_line_tells_a_wrong_key_from_an_app_that_is_away(client):
    """4 and 3."""
    operator = CommandLine(client)
    code, _, err = await operator.run("list", OPERATOR_KEY="wrong")
    assert (code, text("cli.key-refused") in err) == (4, True)
    code, _, err = await operator.run("list", OPERATOR_URL="http://127.0.0.1:9")
    assert (code, "cannot be reached" in err) == (3, True)


async def test_the_command_line_watches_until_it_is_stopped(client, stack):
    """It shows the order anew as it changes."""
    order_id = await order_in_error(client, stack)
    watching = await CommandLine(client).start("show", order_id, "--watch", "0.2")
    shown = await until_it_shows(watching, "card declined")
    await fault(client, "payment", "none", order_id)
    await client.resubmit(order_id)
    shown += await until_it_shows(watching, "Processed")
    assert shown.count("STEP ") > 1
    watching.terminate()
    await watching.wait()


async def until_it_shows(process, text):
    shown = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while text not in shown:
            line = await process.stdout.readline()
            assert line, shown
            shown += line.decode()
    return shown
