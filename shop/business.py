"""The business of this deployment: a shop for tea."""

from core.business import Business, Payload
from core.workflow import Workflows
from shop import payload
from shop.workflows import ORDER, ORDER_1, RETURN

SHOP = Business(
    workflows=Workflows(ORDER_1, ORDER, RETURN),
    payload=Payload(
        check=payload.check, erased=payload.erased, personal=payload.personal, belongs_to=payload.belongs_to
    ),
)
