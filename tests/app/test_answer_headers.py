"""The headers of the app's answers."""

import re
from itertools import product

import azure.functions as func
import pytest

from development.settings import app_settings
from engine.azure.settings import Settings
from functions_alone.ports import Ports
from shop.business import SHOP
from testkit.memory import in_memory
from tests.support.apps import bootstrap, functions

KNOWN = [{}, {"If-None-Match": "*"}]
BODIES = [b"", b"{}"]


@pytest.fixture
def calls(monkeypatch):
    """Each method of each HTTP function of the app, on parts in memory, with the names in its path."""
    for name, value in app_settings(Ports(), "key", "key", SHOP.agents).items():
        monkeypatch.setenv(name, value)
    bound = functions(bootstrap(Settings.read(SHOP.agents), SHOP, in_memory())).get_functions()
    triggers = [
        (function.get_trigger().get_dict_repr(), function.get_user_function()) for function in bound
    ]
    return [
        (function, str(method), re.findall(r"{\*?(\w+)}", trigger["route"]))
        for trigger, function in triggers
        if trigger["type"] == "httpTrigger"
        for method in trigger["methods"]
    ]


async def test_no_answer_has_two_headers_of_one_name(calls):
    """Of several Azure's worker sends the last, but every cookie (http.md 5)."""
    seen = set()
    for (call, method, names), known, body in product(calls, KNOWN, BODIES):
        request = func.HttpRequest(
            method=method,
            url="/",
            headers={"Content-Length": str(len(body))} | known,
            route_params=dict.fromkeys(names, "none"),
            body=body,
        )
        answer = await call(request)
        sent = [name.lower() for name, _ in answer.headers.items() if name.lower() != "set-cookie"]
        assert sorted(set(sent)) == sorted(sent), (call, sent)
        seen |= {(answer.status_code, name) for name in sent}
    assert {(200, "etag"), (304, "etag")} <= seen
