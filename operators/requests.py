"""What operators send: which part of what; or who it is, and why, which goes into the history of what they change."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from core.messages import Moment, StepName, Text
from core.orders import Outcome, ProcessState
from entrypoints.models import Body, Parameters
from operators.views import ListedOrder

KEY = r"^[A-Za-z0-9!_.:|=~-]{1,1000}$"
"""What keys of ours are made of; such a one may still name no row."""

Key = Annotated[str, Field(pattern=KEY)]


class Page(Parameters):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    continuation: Key | None = None
    """What the page before said."""


class Filter(BaseModel):
    """Which orders of a list are meant: those for which all that is said holds."""

    model_config = ConfigDict(frozen=True)
    workflow: StepName | None = None
    step: StepName | None = None
    """A step that failed."""
    reason: Annotated[Text, Field(max_length=1000)] | None = None
    """The order's reason, to the letter: what orders with one cause have in common."""

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order, as the list shows it, is meant."""
        return (
            self.workflow in (None, order.workflow)
            and self.reason in (None, order.reason)
            and self.step in (None, *order.failed_steps)
        )


class OrdersPage(Filter, Page):
    """Which part of the open orders of a state: those for which all that is said holds."""

    state: Literal[ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.ERROR] = ProcessState.ERROR
    text: Annotated[Text, Field(max_length=200)] | None = None
    """Stands in the order's id or reason, in capitals or not."""

    @property
    def filters(self) -> bool:
        """Whether anything but the state is asked for."""
        return any((self.workflow, self.step, self.reason, self.text))

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order, as the list shows it, is meant."""
        said = f"{order.order_id} {order.reason or ''}".casefold()
        return order.process_state is self.state and (self.text or "").casefold() in said and super().fits(order)


class AlertsPage(Page):
    """Which part of the alerts."""

    continuation: Annotated[str, Field(pattern=r"^[0-9]{18}\|[A-Za-z0-9!_.:|=~-]{1,900}$")] | None = None


class PoisonPage(Page):
    """Which part of the messages that nobody could read."""

    limit: Annotated[int, Field(ge=1, le=500)] = 200
    continuation: Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{32}$")] | None = None


class Search(Parameters):
    """Orders whose ids begin so: with the bucket at least."""

    id: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^b[0-9]{2}-[0-9A-HJKMNP-TV-Z]{0,26}$")]


class OperatorRequest(Body):
    """The body of an operator's action."""

    operator: Annotated[Text, Field(max_length=80)]
    note: Annotated[Text, Field(max_length=1000)]


class SkipRequest(OperatorRequest):
    """The body of a skip."""

    step: StepName | None = None
    """Which of the failed steps; may be left out if there is only one."""


class Where(Body, Filter):
    """Which orders in `Error` are meant: those for which all that is said holds."""

    outcome: Outcome | None = None
    since: Moment | None = None
    """Orders that went to `Error` at this time or later."""

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order, as the list shows it, is meant, if it went there in time."""
        return self.outcome in (None, order.outcome) and super().fits(order)


class FindRequest(OperatorRequest):
    """The body that looks for a customer's orders. It is no query, so that no log shows it."""

    email: Annotated[Text, Field(max_length=200)]
    continuation: Key | None = None


class BulkRequest(OperatorRequest):
    """The body of an action on many orders."""

    action: Literal["resubmit", "skip", "cancel"]
    where: Where = Where()
    until: Moment | None = None
    """Orders that went to `Error` before this time. A dry run needs none and says one; to act, name that one.

    An order that was acted on is not in `Error` since before then, even if it fails again: so the same request, sent
    again after a crash, finishes the work and touches no order twice.
    """
    dry_run: bool = True
    limit: Annotated[int, Field(ge=1, le=200)] = 100
    """How many orders one call looks at."""
    continuation: Key | None = None
