"""The claims and the shop as values, written by hand: what their flows and models compile to."""

from dataclasses import replace

from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefinition, WorkflowDefinition
from engine.domain import exact_json
from engine.domain.messages import decode
from engine.domain.submitted_order import ERASED
from engine.workflow import COOLDOWN, UNDO
from samples.claims.business import CLAIMS, Claim, worth_something
from shop.business import SHOP, Content, only_our_products


def damage(order, _):
    return {name: order.payload[name] for name in ("claimNumber", "amount", "description")}


def amount(order, _):
    return {name: order.payload[name] for name in ("claimNumber", "amount")}


def decision(order, results):
    return {**amount(order, results), "assessment": results["assess"].get("reference")}


def payout(order, results):
    return {**amount(order, results), "approval": results["approve"].get("reference")}


CLAIM = WorkflowDefinition(
    name="claim",
    version=1,
    steps=(
        StepDefinition(
            name="assess",
            capability="assessment",
            operation="assess",
            compensation="cancel",
            request=damage,
            result_fields=("reference",),
            on_failure=UNDO,
        ),
        StepDefinition(
            name="fraud",
            capability="banking",
            operation="screen",
            request=amount,
            threshold=1,
            on_failure=COOLDOWN,
        ),
        StepDefinition(
            name="approve",
            capability="assessment",
            operation="approve",
            compensation="withdraw",
            request=decision,
            after=("assess", "fraud"),
            uses=("assess",),
            result_fields=("reference",),
            on_failure=UNDO,
        ),
        StepDefinition(
            name="pay",
            capability="banking",
            operation="pay",
            compensation="recall",
            request=payout,
            after=("approve",),
            uses=("approve",),
            on_failure=UNDO,
        ),
    ),
)


def goods(order, _):
    items = order.payload["items"]
    return {"items": [{"sku": item["sku"], "quantity": item["quantity"]} for item in items]}


def payment(order, results):
    return {**goods(order, results), "amount": "30.50", "currency": "EUR"}


def shipment(order, results):
    return {**goods(order, results), "reservation": results["stock"].get("reference")}


def capture(order, results):
    return {**payment(order, results), "authorisation": results["payment"].get("reference")}


AUTHORISE = StepDefinition(
    name="payment",
    capability="payment",
    operation="authorise",
    request=payment,
    result_fields=("reference",),
)
ORDER_1 = WorkflowDefinition(name="order", version=1, steps=(AUTHORISE,))
ORDER_2 = WorkflowDefinition(
    name="order",
    version=2,
    steps=(
        StepDefinition(
            name="stock",
            capability="inventory",
            operation="reserve",
            compensation="release",
            request=goods,
            result_fields=("reference",),
            on_failure=UNDO,
        ),
        replace(AUTHORISE, compensation="void", result_fields=("reference", "amount")),
        StepDefinition(
            name="shipment",
            capability="shipping",
            operation="ship",
            compensation="cancel",
            request=shipment,
            uses=("stock",),
            after=("stock", "payment"),
            result_fields=("reference",),
            on_failure=UNDO,
        ),
        StepDefinition(
            name="capture",
            capability="payment",
            operation="capture",
            compensation="refund",
            request=capture,
            uses=("payment",),
            after=("shipment",),
            result_fields=("reference", "amount"),
        ),
    ),
)
RETURN = WorkflowDefinition(
    name="return",
    version=1,
    steps=(
        StepDefinition(name="restock", capability="inventory", operation="release", request=goods),
        StepDefinition(
            name="refund",
            capability="payment",
            operation="refund",
            request=payment,
            after=("restock",),
        ),
    ),
)
STORM = {
    "claimNumber": "C-2041",
    "policyHolder": {"name": "Ada", "email": "ada@example.com"},
    "amount": {"amount": "950.00", "currency": "EUR"},
    "description": "A storm took the roof",
}
TEA = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [
        {"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"},
        {"sku": "A-CUP", "quantity": 1, "unitPrice": "2.50"},
    ],
}


def payload_of(check, erased, person, personal, keys):
    """The functions on a payload; `person` is the field with a name and an email address."""
    return Payload(
        check=check,
        erased=erased,
        personal=lambda payload: [*payload[person].values(), *(payload[name] for name in personal)],
        belongs_to=lambda payload, email: payload[person]["email"].casefold() == email.casefold(),
        keys=lambda payload: [payload[name] for name in keys],
    )


def check_claim(payload):
    worth_something(decode(Claim, exact_json.write(payload)))


def check_order(payload):
    only_our_products(decode(Content, exact_json.write(payload)))


NOBODY = {"name": ERASED, "email": ERASED}


def erased(payload, known, **nothing):
    """A payload without these values, nor those that its version does not know."""
    kept = {name: value for name, value in payload.items() if name in known}
    unknown = dict.fromkeys(payload.keys() - known, ERASED)
    return kept | nothing | unknown


def erased_claim(payload):
    return erased(payload, set(STORM), policyHolder=NOBODY, description=ERASED)


def erased_order(payload):
    return erased(payload, set(TEA), customer=NOBODY)


OF_CLAIMS = payload_of(check_claim, erased_claim, "policyHolder", ["description"], ["claimNumber"])
OF_SHOP = payload_of(check_order, erased_order, "customer", [], [])
SAME = {
    "claim": (CLAIMS, CLAIM, STORM, OF_CLAIMS),
    "order 1": (SHOP, ORDER_1, TEA, OF_SHOP),
    "order 2": (SHOP, ORDER_2, TEA, OF_SHOP),
    "return": (SHOP, RETURN, TEA, OF_SHOP),
}
"""By workflow: the business, the same workflow by hand, a payload, and its functions by hand."""
