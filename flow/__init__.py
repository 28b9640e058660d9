"""A business in one file: its services, its payload, and its workflows as functions."""

from core.business import Business
from core.code import Call, Later, Rejected, TryAgain
from core.credentials import ApiKey, ClientCertificate, ClientCredentials, EntraToken
from core.errors import InvalidError
from core.forms import Body
from core.messages import Name, Text
from core.orders import OnFailure, Order
from flow.businesses import business
from flow.doors import Door
from flow.model import Key, Model, Owner, Personal
from flow.services import Agent, Nothing, Operation
from flow.steps import Flow

ERROR, UNDO, COOLDOWN = OnFailure.ERROR, OnFailure.UNDO, OnFailure.COOLDOWN
GO_ON = OnFailure.GO_ON
ENVELOPE, CONTENT = Body.ENVELOPE, Body.CONTENT

__all__ = [
    "CONTENT",
    "COOLDOWN",
    "ENVELOPE",
    "ERROR",
    "GO_ON",
    "UNDO",
    "Agent",
    "ApiKey",
    "Business",
    "Call",
    "ClientCertificate",
    "ClientCredentials",
    "Door",
    "EntraToken",
    "Flow",
    "InvalidError",
    "Key",
    "Later",
    "Model",
    "Name",
    "Nothing",
    "Operation",
    "Order",
    "Owner",
    "Personal",
    "Rejected",
    "Text",
    "TryAgain",
    "business",
]
