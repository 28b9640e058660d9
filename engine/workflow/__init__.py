"""The public API for authors of a business.

A business declares its services (`Agent`, `Operation`), its payload (`Model`) and its workflows
(`Workflow`), whose steps are functions. `application` puts these parts together and checks them.
"""

from engine.declarations.activities import Call, DeferredResult, NonRetryable, Retryable
from engine.declarations.business import Application
from engine.declarations.credentials import ApiKey, ClientCertificate, ClientCredentials, EntraToken
from engine.declarations.service_forms import Body
from engine.domain.deadlines import WhenLate
from engine.domain.errors import InvalidError
from engine.domain.messages import Name, Text
from engine.domain.submitted_order import OnFailure, Order
from engine.words import faults  # noqa: F401 - by it the errors of a declaration have words
from engine.workflow.businesses import application
from engine.workflow.endpoints import OrderEndpoint
from engine.workflow.model import Key, Model, Owner, Personal
from engine.workflow.money import Money
from engine.workflow.services import Agent, Nothing, Operation
from engine.workflow.steps import Workflow

ERROR, UNDO, COOLDOWN = OnFailure.ERROR, OnFailure.UNDO, OnFailure.COOLDOWN
CONTINUE = OnFailure.CONTINUE
ENVELOPE, CONTENT = Body.ENVELOPE, Body.CONTENT

__all__ = [
    "CONTENT",
    "CONTINUE",
    "COOLDOWN",
    "ENVELOPE",
    "ERROR",
    "UNDO",
    "Agent",
    "ApiKey",
    "Application",
    "Call",
    "ClientCertificate",
    "ClientCredentials",
    "DeferredResult",
    "EntraToken",
    "InvalidError",
    "Key",
    "Model",
    "Money",
    "Name",
    "NonRetryable",
    "Nothing",
    "Operation",
    "Order",
    "OrderEndpoint",
    "Owner",
    "Personal",
    "Retryable",
    "Text",
    "WhenLate",
    "Workflow",
    "application",
]
