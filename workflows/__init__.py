"""The business: what is sold, and what has to be done for an order, as data plus small functions."""

from core.workflow import Workflows
from workflows.examples import IN_SEQUENCE, PAYMENT_ONLY
from workflows.order import ORDER, ORDER_1
from workflows.returns import RETURN

ALL = Workflows(ORDER_1, ORDER, RETURN, PAYMENT_ONLY, IN_SEQUENCE)
"""Every workflow, and every version that orders in flight may still be on."""
