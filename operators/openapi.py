"""The OpenAPI description of the operators' API, made from the very models that read requests and write answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from core.keys import ORDER_ID
from operators.alerts import Acknowledged, AcknowledgeRequest, AlertList, CauseList
from operators.bulk import BulkPage
from operators.explain import Explanation
from operators.overview import Overview
from operators.poison import PoisonList, Settled
from operators.requests import BEGINNING_OF_ID, KEY, BulkRequest, FindRequest, OperatorRequest, SkipRequest
from operators.retention import Found
from operators.service import AGENDA_OF
from operators.views import Acted, FoundOrders, OrderList, OrderView, View

MOST_LISTED = 500

Schema = dict[str, Any]


class Problem(View):
    """Problem details (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str | None = None
    faults: list[str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One call: its own refusals beside those that every call knows."""

    method: str
    path: str
    summary: str
    answer: type[View]
    status: int = 200
    body: type[BaseModel] | None = None
    query: Sequence[Schema] = ()
    refusals: Sequence[int] = ()


def _query(name: str, **schema: Any) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema}


LIMIT = _query("limit", type="integer", minimum=1, maximum=MOST_LISTED, default=50)
CONTINUATION = _query("continuation", type="string", pattern=KEY)
STATE = _query("state", type="string", enum=[str(state) for state in AGENDA_OF], default="Error")
ORDER = "/api/operator/orders/{orderId}"
POISON = "/api/operator/poison/{queue}/{messageId}"

OPERATIONS = (
    Operation(
        method="get",
        path="/api/operator/overview",
        summary="Show how the system is doing",
        answer=Overview,
    ),
    Operation(
        method="get",
        path="/api/operator/orders",
        summary="List the open orders of a state, the longest waiting first",
        answer=OrderList,
        query=(STATE, LIMIT, CONTINUATION),
        refusals=(400,),
    ),
    Operation(
        method="get",
        path="/api/operator/search",
        summary="Find orders in any state by the beginning of their ids",
        answer=FoundOrders,
        query=({**_query("id", type="string", pattern=BEGINNING_OF_ID), "required": True},),
        refusals=(400,),
    ),
    Operation(
        method="get",
        path=ORDER,
        summary="Show an order with its steps and its whole history",
        answer=OrderView,
        refusals=(404,),
    ),
    Operation(
        method="get",
        path=f"{ORDER}/explain",
        summary="Say why an order is where it is, who acts next and when, and what happens if nothing comes",
        answer=Explanation,
        refusals=(404,),
    ),
    *(
        Operation(
            method="post",
            path=f"{ORDER}/{action}",
            summary=summary,
            answer=Acted,
            status=202,
            body=body,
            refusals=(400, 404, 409),
        )
        for action, summary, body in (
            ("resubmit", "Let an order in Error go on from the steps that failed", OperatorRequest),
            ("skip", "Leave out a failed step that was done, or taken back, by other means", SkipRequest),
            ("cancel", "Have an order undone that is not finished", OperatorRequest),
            ("erase", "Forget who the customer of an order is; its history stays", OperatorRequest),
        )
    ),
    Operation(
        method="post",
        path="/api/operator/bulk",
        summary="Resubmit, skip a step of, or cancel many orders in Error, page by page",
        answer=BulkPage,
        body=BulkRequest,
        refusals=(400,),
    ),
    Operation(
        method="post",
        path="/api/operator/customers/find",
        summary="Find a customer's orders, page by page through all orders",
        answer=Found,
        body=FindRequest,
        refusals=(400,),
    ),
    Operation(
        method="get",
        path="/api/operator/alerts",
        summary="List the alerts, newest first",
        answer=AlertList,
        query=(LIMIT, CONTINUATION),
        refusals=(400,),
    ),
    Operation(
        method="get",
        path="/api/operator/alerts/causes",
        summary="Group the newest alerts by their cause",
        answer=CauseList,
    ),
    Operation(
        method="post",
        path="/api/operator/alerts/acknowledge",
        summary="Take alerts upon yourself; the first one who does stays",
        answer=Acknowledged,
        body=AcknowledgeRequest,
        refusals=(400,),
    ),
    Operation(
        method="get",
        path="/api/operator/poison",
        summary="List the messages that nobody could read, with their reasons",
        answer=PoisonList,
    ),
    *(
        Operation(
            method="post",
            path=f"{POISON}/{action}",
            summary=summary,
            answer=Settled,
            status=202,
            body=OperatorRequest,
            refusals=(400, 404, 409),
        )
        for action, summary in (
            ("redrive", "Put a message back on its queue"),
            ("drop", "Remove a message for good"),
        )
    ),
)

PARAMETERS: Mapping[str, Schema] = {
    "orderId": {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"},
    "queue": {"type": "string", "minLength": 1},
    "messageId": {"type": "string", "minLength": 1},
}

REFUSALS = {
    400: "The request is not valid; every fault is named",
    404: "There is no such thing",
    409: "The request makes no sense in the present state, and nothing was changed",
    411: "The body came without a Content-Length, or in chunks, and was not read",
    503: "Something that is needed is away; try again",
}


@cache
def description() -> Schema:
    """Return the description as OpenAPI 3.1."""
    references, schemas = _schemas()
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Operators' API", "version": "1"},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-functions-key"}},
            "schemas": schemas,
        },
    }


def _schemas() -> tuple[Mapping[type[BaseModel], Schema], Schema]:
    """Return where the schema of each model stands, and all of them by name."""
    bodies = {operation.body for operation in OPERATIONS if operation.body}
    answers: set[type[BaseModel]] = {Problem, *(operation.answer for operation in OPERATIONS)}
    modes: dict[type[BaseModel], JsonSchemaMode] = dict.fromkeys(bodies, "validation")
    modes |= dict.fromkeys(answers, "serialization")
    models = sorted(modes.items(), key=lambda each: each[0].__name__)
    found, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
    return {model: found[model, mode] for model, mode in models}, definitions["$defs"]


def _operation(operation: Operation, references: Mapping[type[BaseModel], Schema]) -> Schema:
    described: Schema = {
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation.path), *operation.query],
        "responses": {
            str(operation.status): _json("Done", references[operation.answer]),
            "401": {"description": "The key is missing or wrong, and nothing was changed"},
            **{
                str(status): _json(REFUSALS[status], references[Problem], "application/problem+json")
                for status in (*operation.refusals, *((411,) if operation.body else ()), 503)
            },
        },
    }
    if operation.body:
        described["requestBody"] = {"required": True, **_json("", references[operation.body])}
    return described


def _path_parameters(path: str) -> Iterator[Schema]:
    for name, schema in PARAMETERS.items():
        if f"{{{name}}}" in path:
            yield {"name": name, "in": "path", "required": True, "schema": schema}


def _json(text: str, schema: Schema, kind: str = "application/json") -> Schema:
    return ({"description": text} if text else {}) | {"content": {kind: {"schema": schema}}}
