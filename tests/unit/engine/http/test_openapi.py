"""The description of the calls over HTTP."""

from collections import Counter
from itertools import chain

import azure.functions as func
import pytest
from openapi_spec_validator import validate

from engine.http.openapi import description
from engine.runtime.api import http_functions
from operations.api.triggers import operator_routes
from shop.triggers import routes
from testkit.memory import in_memory
from tests.support.apps import app


@pytest.fixture(scope="module")
def described():
    """The description of all calls of the app and its shop."""
    made = app(in_memory())
    return description([*routes(made.engine.customers), *operator_routes(made.operations.services)])


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
