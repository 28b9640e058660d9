"""The description of the calls over HTTP."""

import json
from collections import Counter
from itertools import chain

import azure.functions as func
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from engine.domain.errors import InvalidError
from engine.domain.messages import decode
from engine.http.openapi import description
from engine.runtime.api import http_functions
from operations.api.triggers import operator_routes
from shop.triggers import routes as shop_routes
from testkit.memory import in_memory
from tests.support.apps import app

PURCHASE = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


@pytest.fixture(scope="module")
def routes():
    """All calls of the app and its shop."""
    made = app(in_memory())
    return [*shop_routes(made.engine.customers), *operator_routes(made.operations.services)]


@pytest.fixture(scope="module")
def described(routes):
    """The description of all calls of the app and its shop."""
    return description(routes)


def parts_of(described):
    """Yield each object in a description."""
    if isinstance(described, dict):
        yield described
    parts = described.values() if isinstance(described, dict) else described
    for part in parts if isinstance(described, dict | list) else ():
        yield from parts_of(part)


async def test_its_text_is_made_once():
    """Another call costs no more than a look (http.md 3)."""
    app = func.FunctionApp()
    app.register_functions(http_functions([]))
    [described] = [function.get_user_function() for function in app.get_functions()]
    request = func.HttpRequest(method="GET", url="/api/openapi.json", body=b"")
    answers = [await described(request) for _ in range(2)]
    assert answers[0].get_body() is answers[1].get_body()
    assert answers[0].mimetype == "application/json"


def test_it_is_valid(described):
    """`P8`: null was a default of texts."""
    validate(described)


def test_each_call_has_a_name(described):
    """`P12`: generators made names of the paths."""
    calls = chain.from_iterable(path.values() for path in described["paths"].values())
    names = Counter(call["operationId"] for call in calls)
    assert set(names.values()) == {1}
    assert {"shopPlaceOrder", "operatorResubmit"} <= names.keys()


def test_a_value_that_may_be_null_is_no_choice_of_classes(described):
    """`P12`: Kiota and NSwag made a class of each."""
    choices = chain.from_iterable(part.get("anyOf", ()) for part in parts_of(described))
    schemas = described["components"]["schemas"]
    refs = [choice["$ref"].rpartition("/")[2] for choice in choices if "$ref" in choice]
    assert refs
    scalars = [
        part["anyOf"]
        for part in parts_of(described)
        if {"type": "null"} in part.get("anyOf", ())
        and not any("$ref" in choice or "enum" in choice for choice in part["anyOf"])
    ]
    assert scalars == []
    assert schemas["StateView"]["properties"]["completeBy"]["type"] == ["string", "null"]


def test_words_beside_an_enumeration_are_words_of_it(described):
    """`P12`: the state was in a class of its own, and always empty."""
    state = described["components"]["schemas"]["Status"]["properties"]["processState"]
    words = {"Pending", "Processing", "Processed", "Error", "Accepted"}
    assert (state["type"], set(state["enum"]), "anyOf" in state) == ("string", words, False)


def test_no_title_repeats_the_name_of_a_field(described):
    fields = [
        field
        for schema in described["components"]["schemas"].values()
        for field in schema.get("properties", {}).values()
    ]
    assert not [field["title"] for field in fields if "title" in field]


SIGNED = {"operator": "Ada", "note": "asked the bank"}
BODIES = {
    "an answer": ("operator_answer", {"operator": "Ada", "answer": {"isLate": False}}),
    "a refusal": ("operator_answer", {"operator": "Ada", "refusal": "no"}),
    "an answer without a refusal": (
        "operator_answer",
        {"operator": "Ada", "answer": {}, "refusal": None},
    ),
    "neither": ("operator_answer", {"operator": "Ada"}),
    "two times nothing": ("operator_answer", {"operator": "Ada", "answer": None, "refusal": None}),
    "both": ("operator_answer", {"operator": "Ada", "answer": {}, "refusal": "no"}),
    "a hold": ("operator_hold", SIGNED),
    "a hold of a step": ("operator_hold", SIGNED | {"step": "stock"}),
    "a skipped step": ("operator_skip", SIGNED | {"step": "stock"}),
    "a step that was done": ("operator_settle", SIGNED | {"wasDone": True, "answer": {}}),
    "a step that was not done": ("operator_settle", SIGNED | {"wasDone": False}),
    "an answer of what was not done": (
        "operator_settle",
        SIGNED | {"wasDone": False, "answer": {}},
    ),
    "a late effect of what was done": (
        "operator_settle",
        SIGNED | {"wasDone": True, "confirmLateEffect": True},
    ),
    "a late effect": ("operator_settle", SIGNED | {"wasDone": False, "confirmLateEffect": True}),
    "a purchase": ("shop_place_order", PURCHASE),
    "a purchase of nothing": ("shop_place_order", PURCHASE | {"items": []}),
    "a purchase of a half": (
        "shop_place_order",
        PURCHASE | {"items": [{"sku": "TEA-SENCHA", "quantity": 0.5}]},
    ),
    "a purchase of two with a point": (
        "shop_place_order",
        PURCHASE | {"items": [{"sku": "TEA-SENCHA", "quantity": 2.0}]},
    ),
    "a purchase with a tip": ("shop_place_order", PURCHASE | {"tip": 1}),
}


@pytest.mark.parametrize("label", BODIES)
def test_the_model_takes_what_the_description_allows_and_nothing_else(described, routes, label):
    """`P11`, `P9`: it allowed a step of a hold, and an answer that was neither answer nor refusal."""
    name, body = BODIES[label]
    [route] = [route for route in routes if route.name == name]
    [(_, model)] = route.bodies
    call = described["paths"][f"/{route.path}"]["post"]
    schema = call["requestBody"]["content"]["application/json"]["schema"]
    allowed = Draft202012Validator(schema | {"components": described["components"]}).is_valid(body)
    try:
        decode(model, json.dumps(body))
        taken = True
    except InvalidError:
        taken = False
    assert allowed == taken


def test_a_part_of_a_path_has_its_pattern(described):
    """`P11`: any text was allowed as the name of a copy."""
    restore = described["paths"]["/api/operator/restore/{copy}"]["post"]
    assert restore["parameters"][0]["schema"] == {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def test_a_refusal_that_may_end_by_itself_says_when_to_try_again(described):
    answers = described["paths"]["/api/orders"]["post"]["responses"]
    assert {
        status for status, answer in answers.items() if "Retry-After" in answer.get("headers", ())
    } == {"202", "429", "503"}


NAMES_OF_SCHEMAS = {
    *("$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum"),
    *("examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum"),
    *("maxLength", "minItems", "minLength", "minimum", "not", "pattern", "prefixItems"),
    *("properties", "propertyNames", "required", "title", "type"),
}


def schemas_in(described):
    """Yield each schema within one."""
    yield described
    inner = [*described.get("properties", {}).values(), *described.get("anyOf", ())]
    inner += [
        described[name] for name in ("items", "additionalProperties", "not") if name in described
    ]
    for part in inner:
        if isinstance(part, dict):
            yield from schemas_in(part)


def test_a_schema_has_the_names_of_json_schema_alone(described):
    """Redocly's validator found `ge` and `lt`, by which pydantic bounds a time; the other one did not."""
    of_parameters = [
        part["schema"] for part in parts_of(described) if "in" in part and "schema" in part
    ]
    every = [*described["components"]["schemas"].values(), *of_parameters]
    used = {name for schema in every for part in schemas_in(schema) for name in part}
    assert used - NAMES_OF_SCHEMAS == set()


def test_every_schema_is_used(described):
    """One that became a part of an enumeration made a class of its own."""
    text = json.dumps(described)
    schemas = described["components"]["schemas"]
    assert [name for name in schemas if f'"#/components/schemas/{name}"' not in text] == []
