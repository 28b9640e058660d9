"""A business in one file: its services, its payload, and its workflows as functions."""

from core.business import Business
from core.messages import Text
from core.orders import OnFailure, Order
from flow.businesses import business
from flow.doors import Door
from flow.model import Key, Model, Owner, Personal
from flow.services import Agent, Nothing, Operation
from flow.steps import Flow

ERROR, UNDO, COOLDOWN = OnFailure.ERROR, OnFailure.UNDO, OnFailure.COOLDOWN

__all__ = [
    "COOLDOWN",
    "ERROR",
    "UNDO",
    "Agent",
    "Business",
    "Door",
    "Flow",
    "Key",
    "Model",
    "Nothing",
    "Operation",
    "Order",
    "Owner",
    "Personal",
    "Text",
    "business",
]
