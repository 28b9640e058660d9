"""The HTTP endpoint of a workflow, as a business declares it."""

from dataclasses import dataclass

from engine.declarations import business
from engine.workflow.model import Model


@dataclass(frozen=True, kw_only=True)
class OrderEndpoint:
    """Accepts orders of a workflow over HTTP, and shows their progress.

    endpoint = OrderEndpoint(open=True, cancel_until="charge")
    rental = Workflow("rental", Rental, endpoint=endpoint)
    """

    open: bool = False
    """If true, everybody can place orders and can follow an order whose id they know. Otherwise
    only operators can."""
    cancel_until: str | None = None
    """Customers can cancel an order until this step starts. None means that they cannot cancel."""

    def declaration(self, workflow: str, payload: type[Model]) -> business.EndpointDefinition:
        return business.EndpointDefinition(
            workflow=workflow, content=payload, open=self.open, cancel_until=self.cancel_until
        )
