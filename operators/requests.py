"""What operators send: which part of what; or who it is, and why, which goes into the history of what they change."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from core.actions import BY_NAME
from core.life import Outcome
from core.messages import Moment, StepName, Text
from entrypoints.models import Body, Parameters
from operators.views import HELD, ListedOrder

KEY = r"^[A-Za-z0-9!_.:|=~-]{1,1000}$"
"""What keys of ours are made of; such a one may still name no row."""

Key = Annotated[str, Field(pattern=KEY)]


def _known(name: str) -> str:
    if name not in BY_NAME:
        raise ValueError(f"expected one of {', '.join(BY_NAME)}")
    return name


ActionName = Annotated[
    str, AfterValidator(_known), Field(json_schema_extra={"enum": list(BY_NAME)})
]


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
    """Which part of a list of open orders: those for which all that is said holds."""

    state: Literal["Pending", "Processing", "Error", "Held"] = "Error"
    text: Annotated[Text, Field(max_length=200)] | None = None
    """Stands in the order's id or reason, in capitals or not."""

    @property
    def filters(self) -> bool:
        """Whether anything but the state is asked for."""
        return any((self.workflow, self.step, self.reason, self.text))

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order, as the list shows it, is meant."""
        said = f"{order.order_id} {order.reason or ''}".casefold()
        in_list = (
            order.held_by is not None if self.state == HELD else order.process_state == self.state
        )
        return in_list and (self.text or "").casefold() in said and super().fits(order)


class AlertsPage(Page):
    """Which part of the alerts."""

    continuation: (
        Annotated[str, Field(pattern=r"^[0-9]{18}\|[A-Za-z0-9!_.:|=~-]{1,900}$")] | None
    ) = None


class PoisonPage(Page):
    """Which part of the messages that nobody could read."""

    limit: Annotated[int, Field(ge=1, le=500)] = 200
    continuation: (
        Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{32}$")] | None
    ) = None


class Search(Parameters):
    """Orders whose ids begin so: with the bucket at least."""

    id: Annotated[
        str,
        StringConstraints(strip_whitespace=True, pattern=r"^b[0-9]{2}-[0-9A-HJKMNP-TV-Z]{0,26}$"),
    ]


class OperatorRequest(Body):
    """The body of an operator's action."""

    operator: Annotated[Text, Field(max_length=80)]
    note: Annotated[Text, Field(max_length=1000)]


class ActRequest(OperatorRequest):
    """The body of an action on one order."""

    step: StepName | None = None
    """For an action on a step, which of those that failed; may be left out if there is only one."""


class Where(Body, Filter):
    """Which orders of the lists of an action are meant: those for which all that is said holds."""

    outcome: Outcome | None = None
    since: Moment | None = None
    """Orders that have been as they are since then or later."""

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order, as the list shows it, is meant, if it got there in time."""
        return self.outcome in (None, order.outcome) and super().fits(order)


class FindRequest(OperatorRequest):
    """The body that looks for a customer's orders. It is no query, so that no log shows it."""

    email: Annotated[Text, Field(max_length=200)]
    continuation: Key | None = None


class BulkRequest(OperatorRequest):
    """The body of an action on many orders."""

    action: ActionName
    where: Where = Where()
    until: Moment | None = None
    """Orders that have been as they are since before this time. A dry run needs none and says one; to act, name it.

    An order that was acted on is not as it was since before then, even if it fails again: so the
    same request, sent again after a crash, finishes the work and touches no order twice.
    """
    dry_run: bool = True
    limit: Annotated[int, Field(ge=1, le=200)] = 100
    """How many orders one call looks at."""
    continuation: Key | None = None
