"""The operators' requests: a page of a list, or an action with the operator and a note."""

from collections.abc import Collection
from datetime import datetime
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model
from pydantic_core import PydanticCustomError

from engine.decisions.lists import ENDED_LISTS, LISTS
from engine.decisions.operator_actions import BY_NAME, AnyAction
from engine.declarations.business import MAX_KEY
from engine.domain.keys import ORDER_ID
from engine.domain.messages import Moment, OrderId, Seen, StepName, Text
from engine.domain.statuses import Outcome
from engine.http.models import Parameters, RequestBody
from operations.api.views import ListedOrder

KEY = r"^[A-Za-z0-9!_.:|=~-]{1,1000}$"
"""The characters of row keys. A text that matches may still name no row."""

Key = Annotated[str, Field(pattern=KEY)]


def _one_of(names: Collection[str], name: str) -> str:
    if name not in names:
        raise PydanticCustomError("one-of", "expected one of {names}", {"names": ", ".join(names)})
    return name


ActionName = Annotated[
    str, AfterValidator(partial(_one_of, BY_NAME)), Field(json_schema_extra={"enum": list(BY_NAME)})
]
LIST_NAMES = [*LISTS, *ENDED_LISTS]
ListName = Annotated[
    str, AfterValidator(partial(_one_of, LIST_NAMES)), Field(json_schema_extra={"enum": LIST_NAMES})
]


class Reading(Parameters):
    """How old the answer may be."""

    fresh: bool = False
    """Whether the data has to be read after the call arrived, as is necessary after an action.

    Otherwise a reading of the last seconds may be reused.
    """


SHARED = Reading()


class Page(Parameters):
    """One page of a list."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    continuation: Key | None = None
    """The value from the previous page."""


class Filter(BaseModel):
    """Selects orders of a list: an order matches if all given conditions hold."""

    model_config = ConfigDict(frozen=True)
    workflow: StepName | None = None
    step: StepName | None = None
    """A step that failed."""
    agent: StepName | None = None
    """The agent of a step that failed."""
    cause: Text | None = None
    """The order's exact cause, as lists name it, such as `refused: card declined`."""

    def fits(self, order: ListedOrder) -> bool:
        return (
            self.workflow in (None, order.workflow)
            and self.cause in (None, order.cause)
            and self.step in (None, *order.failed_steps)
            and self.agent in (None, *order.failed_agents)
        )


class OrdersPage(Filter, Page):
    """One page of a list of orders, or of orders of a key, that match all given conditions."""

    state: ListName | None = None
    """The list. Without a key, the default is Error."""
    key: Annotated[Text, Field(max_length=MAX_KEY)] | None = None
    """The beginning of a business key, such as a claim number. It finds orders in any state."""
    text: Annotated[Text, Field(max_length=200)] | None = None
    """A part of the order's id or reason. Case does not matter."""

    since: Moment | None = None
    """Orders that changed last at this time or later. Ended orders match if they ended then."""
    until: Moment | None = None
    """Orders that changed last, or ended, before this time."""

    @property
    def filters(self) -> bool:
        """Whether there is a condition, beside state and key, that has to be searched for."""
        in_range = self.state in ENDED_LISTS
        times = () if in_range else (self.since, self.until)
        return any((self.workflow, self.step, self.agent, self.cause, self.text, *times))

    def fits(self, order: ListedOrder) -> bool:
        searched = f"{order.order_id} {order.reason or ''}".casefold()
        has_text = (self.text or "").casefold() in searched
        in_time = self.state in ENDED_LISTS or self._in_time(order.updated_at)
        return self._lists(order) and has_text and in_time and super().fits(order)

    def _in_time(self, at: datetime | None) -> bool:
        """Whether a time is in the requested range.

        The unknown time of an unreadable row counts as in it.
        """
        if at is None:
            return True
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)

    def _lists(self, order: ListedOrder) -> bool:
        """Whether the order belongs to this list.

        A row in this list may also lead to an order of another one.
        """
        return self.state is None or order.in_list == self.state


class AuditPage(Page):
    """One page of what operators did to orders."""


AlertKey = Annotated[str, Field(pattern=r"^[0-9]{18}\|[A-Za-z0-9!_.:|=~-]{1,900}$")]
"""The key of an alert after which a page begins."""


class AlertsPage(Page):
    """One page of the alerts."""

    continuation: AlertKey | None = None


class CausesPage(Parameters):
    """One page of the alerts, grouped by their cause."""

    continuation: AlertKey | None = None
    """The value from the previous page; without it, the newest alerts are grouped."""


NEWEST = CausesPage()


class PoisonPage(Page):
    """One page of the poison messages."""

    limit: Annotated[int, Field(ge=1, le=500)] = 200
    continuation: (
        Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{32}$")] | None
    ) = None


class Search(Parameters):
    """The beginning of order ids. It must contain at least the bucket."""

    id: Annotated[
        str,
        StringConstraints(
            strip_whitespace=True, pattern=r"^b[0-9]{2}(-[0-9A-HJKMNP-TV-Z]{0,26})?$"
        ),
    ]


class OperatorRequest(RequestBody):
    """The body of an operator's action."""

    operator: Annotated[Seen, Field(max_length=80)]
    """The operator's name, which the history of the order keeps permanently."""
    note: Annotated[Seen, Field(max_length=1000)]


class PauseRequest(OperatorRequest):
    """The body that pauses an agent."""

    until: Moment
    """The end of the pause, at most 30 days from now."""


@cache
def act_request(action: AnyAction) -> type[OperatorRequest]:
    """Return the model of the body for an action on one order: operator, note and arguments."""
    return create_model(f"{_title(action)}Request", __base__=(OperatorRequest, action.asks))


@cache
def arguments_body(action: AnyAction) -> type[RequestBody]:
    """Return the arguments of the action as the model of a body."""
    return create_model(f"{_title(action)}Arguments", __base__=(RequestBody, action.asks))


def _title(action: AnyAction) -> str:
    return "".join(map(str.capitalize, action.name.split("-")))


class FollowRequest(RequestBody):
    """The body that asks for the states of some orders."""

    orders: Annotated[
        tuple[Annotated[str, Field(pattern=f"^{ORDER_ID.pattern}$")], ...],
        Field(min_length=1, max_length=2000),
    ]
    """The ids of the orders."""


class Where(RequestBody, Filter):
    """Selects orders in the lists of an action: an order matches if all given conditions hold."""

    outcome: Outcome | None = None
    since: Moment | None = None
    """Orders that changed last at this time or later."""

    def fits(self, order: ListedOrder) -> bool:
        """Whether an order in a list matches, apart from its time."""
        return self.outcome in (None, order.outcome) and super().fits(order)


class FindRequest(OperatorRequest):
    """The body that searches for a customer's orders. In a query, the address would be logged."""

    email: Annotated[Text, Field(max_length=200)]
    continuation: Key | None = None
    """The value from the previous page."""


class ExportRequest(OperatorRequest):
    """The body that asks for a page of a copy."""

    continuation: Key | None = None
    """The value from the previous page."""


class CopiedRows(RequestBody):
    """A line of a copy, or a part of one: rows of one order, or of another table."""

    table: Annotated[Text, Field(max_length=40)]
    partition: Annotated[Text, Field(max_length=100)]
    order: OrderId | None = None
    at: Moment
    """The moment before the rows were read."""
    rows: list[dict[str, Any]]
    """The columns of each row, with its `RowKey`. A time is an object: `{"time": "…"}`."""


class RestoreRequest(OperatorRequest):
    """The body that puts lines of a copy into the store."""

    lines: list[CopiedRows]


class BulkRequest(OperatorRequest):
    """The body of an action on many orders."""

    action: ActionName
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments of the action, except the step, which `where` names. A dry run needs no
    arguments. An action on a step needs the name of the step in `where`, in a dry run too.
    """
    where: Where = Where()
    until: Moment | None = None
    """Orders that changed last before this time, which must be in the past.

    A dry run returns the time. An action requires it.

    An order that was acted on has changed after this time, even if it fails again. So the same
    request, sent again after a crash, finishes the work and acts on no order twice.
    """
    dry_run: bool = True
    limit: Annotated[int, Field(ge=1, le=200)] = 100
    """The number of orders that one call examines."""
    continuation: Key | None = None
    """The value from the previous page."""
