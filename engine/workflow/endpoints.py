"""The HTTP endpoint of a workflow, as a business declares it."""

from dataclasses import dataclass

from engine.declarations import business
from engine.workflow.model import Model


@dataclass(frozen=True, kw_only=True)
class OrderEndpoint:
    """Lets orders of a workflow come over HTTP, and be followed there."""

    open: bool = False
    """Whether everybody may place orders, and follow those whose id they know; else operators."""
    cancel_until: str | None = None
    """The step until whose begin customers may cancel an order; None if they never may."""

    def declaration(self, workflow: str, payload: type[Model]) -> business.EndpointDefinition:
        """Return the endpoint as the engine knows it."""
        return business.EndpointDefinition(
            workflow=workflow, content=payload, open=self.open, cancel_until=self.cancel_until
        )
