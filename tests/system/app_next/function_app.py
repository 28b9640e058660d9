"""The next version of the shop: orders have one step more, and states one column more."""

from dataclasses import replace
from typing import Any

import shop.business
from development.business import load_app
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.storage.order_rows import StateRecord
from engine.storage.orders import OrderStore, Record, columns_of_record
from shop.business import ORDER

GIFT = replace(ORDER.steps[0], name="gift", after=("capture",))
NEXT = WorkflowDefinition(name=ORDER.name, version=ORDER.version + 1, steps=(*ORDER.steps, GIFT))


def columns(record: Record) -> dict[str, Any]:
    """Return the columns as a version writes them that knows one more."""
    more = {"Colour": "green"} if isinstance(record, StateRecord) else {}
    return {**columns_of_record(record), **more}


OrderStore.columns_of = staticmethod(columns)
known = Workflows(*shop.business.SHOP.workflows.all, NEXT)
shop.business.SHOP = replace(shop.business.SHOP, workflows=known)
app = load_app("shop.business:SHOP")
