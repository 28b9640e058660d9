"""The business of this deployment: a shop for tea."""

from core.business import Business
from core.workflow import Workflows
from shop.payload import PAYLOAD
from shop.workflows import ORDER, ORDER_1, RETURN

SHOP = Business(workflows=Workflows(ORDER_1, ORDER, RETURN), payload=PAYLOAD)
