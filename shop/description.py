"""The shop's calls, as the description of the API shows them (OpenAPI 3.1)."""

from typing import Any

from pydantic.json_schema import models_json_schema

from core.keys import ORDER_ID
from core.orders import Outcome, ProcessState, StepState
from shop.rules import ACCEPTED, CURRENCY, MAX_KEY, MIN_KEY, OperatorPurchase, Purchase

Schema = dict[str, Any]

SCHEMAS = "#/components/schemas"
EXAMPLE = {
    "customer": {"name": "Ada Lovelace", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}
TIME = {"type": "string", "format": "date-time"}
ID = {"type": "string", "pattern": f"^{ORDER_ID.pattern}$"}

IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key and purchase stand for the same order, however often they are sent. Use a UUID.",
    "schema": {"type": "string", "minLength": MIN_KEY, "maxLength": MAX_KEY, "pattern": "^[!-~]+$"},
    "example": "5f0c7d0e-3b1f-4c55-9d0a-0f7f9a7a1c11",
}
RETRY_AFTER = {"description": "In how many seconds it is worth asking again", "schema": {"type": "integer"}}
LOCATION = {"description": "Where to follow the order", "schema": {"type": "string"}}
ETAG = {"description": "Names this answer in If-None-Match", "schema": {"type": "string"}}


def _object(**properties: Schema) -> Schema:
    """Return the schema of an object; a property whose name ends in `_` may be missing."""
    return {
        "type": "object",
        "properties": {name.removesuffix("_"): schema for name, schema in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
    }


def _answer(text: str, schema: Schema, **headers: Schema) -> Schema:
    named = {name.replace("_", "-"): header for name, header in headers.items()}
    return {"description": text, "headers": named, "content": {"application/json": {"schema": schema}}}


def _refusal(text: str) -> Schema:
    return {
        "description": text,
        "content": {"application/problem+json": {"schema": {"$ref": f"{SCHEMAS}/Problem"}}},
    }


PRODUCT = _object(
    sku={"type": "string"},
    name={"type": "string"},
    description={"type": "string"},
    price=_object(amount={"type": "string", "examples": ["14.00"]}, currency={"const": CURRENCY}),
)
PLACED = _object(orderId=ID, statusUrl={"type": "string"})
STATUS = _object(
    orderId=ID,
    processState={"enum": [ACCEPTED, *ProcessState]},
    outcome_={"enum": [*Outcome]},
    placedAt=TIME,
    updatedAt=TIME,
    steps={
        "type": "array",
        "items": _object(name={"type": "string"}, state={"enum": [*StepState]}, tryingAgain_={"type": "boolean"}),
    },
)
AWAY = {"503": _refusal("Something that is needed is away; try again")}


def _placing(purchase: type[Purchase], summary: str, **more: Any) -> Schema:
    body = {"schema": {"$ref": f"{SCHEMAS}/{purchase.__name__}"}, "example": EXAMPLE}
    return {
        "summary": summary,
        "parameters": [IDEMPOTENCY_KEY],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "202": _answer(
                "Accepted",
                {"$ref": f"{SCHEMAS}/Placed"},
                Location={"schema": {"type": "string"}},
                Retry_After=RETRY_AFTER,
            ),
            "400": _refusal("The request is not valid; every fault is named"),
            "409": _refusal("The key stands for another purchase"),
            "411": _refusal("The body came without a Content-Length, or in chunks, and was not read"),
            **more.pop("refused", {}),
            **AWAY,
        },
        **more,
    }


def description() -> Schema:
    """Return the shop's paths, and the schemas to which they refer."""
    _, purchases = models_json_schema(
        [(Purchase, "validation"), (OperatorPurchase, "validation")], ref_template=f"{SCHEMAS}/{{model}}"
    )
    unchanged = {"description": "Nothing has changed", "headers": {"ETag": ETAG, "Retry-After": RETRY_AFTER}}
    known = {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}
    return {
        "paths": {
            "/api/products": {
                "get": {
                    "summary": "List what the shop sells",
                    "security": [],
                    "responses": {"200": _answer("Done", _object(products={"type": "array", "items": PRODUCT}))},
                }
            },
            "/api/orders": {"post": _placing(Purchase, "Place an order", security=[])},
            "/api/operator/orders": {
                "post": _placing(
                    OperatorPurchase,
                    "Place an order for a customer, before others if need be",
                    refused={"401": {"description": "The key is missing or wrong, and nothing was changed"}},
                )
            },
            "/api/orders/{orderId}": {
                "get": {
                    "summary": "Follow an order",
                    "security": [],
                    "parameters": [{"name": "orderId", "in": "path", "required": True, "schema": ID}, known],
                    "responses": {
                        "200": _answer("Done", {"$ref": f"{SCHEMAS}/Status"}, ETag=ETAG, Retry_After=RETRY_AFTER),
                        "304": unchanged,
                        "404": _refusal("There is no such order"),
                        "409": _refusal("The order cannot be read"),
                        **AWAY,
                    },
                }
            },
        },
        "schemas": {**purchases["$defs"], "Placed": PLACED, "Status": STATUS},
    }
