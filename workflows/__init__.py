"""The business: what is sold, and what has to be done for an order, as data plus small functions."""

from core.workflow import Workflows
from workflows.order import ORDER

ALL = Workflows(ORDER)
"""Every workflow, and every version that orders in flight may still be on."""
