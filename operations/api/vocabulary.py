"""The vocabulary of orders, steps and actions, for the pages and the command line (OPR-2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from pydantic.alias_generators import to_camel

from engine.alerts.events import (
    NOTICE_GIVEN_UP,
    ORDER_DUE_SOON,
    ORDER_LATE,
    STALLED,
    SUBMISSION_REJECTED,
    WORKFLOW_CHANGED,
)
from engine.decisions.actions.arguments import Argument, ArgumentKind, arguments_of
from engine.decisions.lists import ENDED_LISTS, LISTS, status_in
from engine.decisions.operator_actions import ACTIONS, AnyAction
from engine.domain.history import EVENT_INFO, EventInfo, names_of_action
from engine.domain.statuses import (
    ORDER_FAILED,
    ORDER_UNDONE,
    STATUS_INFO,
    STEPS,
    Mark,
    OrderStatus,
    StatusInfo,
    StepMeaning,
    StepState,
)
from engine.http.models import View
from engine.words.catalogue import text

RUNBOOK: Mapping[str, str] = {
    ORDER_FAILED: "order-failed",
    ORDER_UNDONE: "order-undone",
    SUBMISSION_REJECTED: "submission-rejected",
    NOTICE_GIVEN_UP: "notice-given-up",
    WORKFLOW_CHANGED: "workflow-changed",
    ORDER_DUE_SOON: "order-due-soon",
    ORDER_LATE: "order-late",
    STALLED: "stalled",
    "circuit-open": "alert-circuit-open",
}
"""The runbook in `docs/operations/runbooks.md` for each alert, and for a circuit that is open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutsideLinks:
    """The addresses outside the console to which it links. Each may be empty."""

    log: str = ""
    """The address of an order's log, with `{orderId}` in the place of its id."""
    runbook: str = ""
    """The address of `docs/operations/runbooks.md`."""


NOWHERE = OutsideLinks()


class Term(View):
    """The term for a state, and its mark."""

    word: str
    mark: Mark


class OrderTerm(Term):
    """The term for the status of an order, and its mark."""

    is_over: bool
    """Whether the order is finished and needs no operator."""
    waits_for_operator: bool
    """Whether nothing happens to the order until an operator acts on it."""


ACCEPTED = "accepted"
"""The status of an order that is only in the queue. No recorded order has it."""


class StepTerm(Term):
    """The term for the state of a step, and its mark."""

    may_be_tried_again: bool
    """Whether a step in this state that has failed before is being tried again."""


class EventTerm(View):
    """The term for an event of the history, and its meaning."""

    word: str
    is_failure: bool
    """Whether something went wrong."""
    changes_nothing: bool
    """Whether the order stayed as it was."""
    begins_attempt: bool
    ends_attempt: Term | None
    """How this event ends the attempt at its step; null if it does not."""


class ListTerm(View):
    """A list of open orders, as pages show it."""

    title: str
    mark: Mark
    parts: list[str]
    """The values of `state` by which `GET /api/operator/orders` returns the orders of this list."""
    situation: str | None = None
    """The status of all orders in the list, if it has only orders of one status."""
    waits_for_operator: bool
    """Whether its orders wait for an operator's action."""
    is_under_way: bool
    """Whether its orders continue without an operator."""
    is_counted: bool
    """Whether the overview counts it, and bulk actions go through it."""
    is_over: bool = False
    """Whether its orders have ended; the newest is first."""


class Subject(StrEnum):
    """What an action can concern."""

    ORDER = "order"
    MESSAGE = "message"
    AGENT = "agent"
    PERSONAL = "personal"
    """The personal data of one order."""
    ANSWER = "answer"
    """An external event (ANS-1)."""


OTHERS: Mapping[str, Subject] = {
    "erase": Subject.ORDER,
    "reveal": Subject.PERSONAL,
    "redrive": Subject.MESSAGE,
    "drop": Subject.MESSAGE,
    "pause-agent": Subject.AGENT,
    "resume-agent": Subject.AGENT,
    "answer": Subject.ANSWER,
    "refuse": Subject.ANSWER,
    "extend": Subject.ANSWER,
    "remind": Subject.ANSWER,
    "link": Subject.ANSWER,
}
"""The operators' actions besides those on orders. They have their own routes and dialogs."""
IRREVERSIBLE = {"erase", "drop", "answer", "refuse"}


class FieldTerm(View):
    """A field of an action's dialog, for one of its arguments."""

    name: str
    """The field's name in the body of the request."""
    label: str
    kind: ArgumentKind
    choices: list[str]
    is_required: bool


class ActionTerm(View):
    """An operator's action with its texts."""

    name: str
    title: str
    button: str
    """The text of its button."""
    effect: str
    done: str
    danger: bool
    """Whether the action cannot be reversed."""
    subject: Subject
    """The subject of the action, such as an order, its personal data, a message, an agent or an
    answer."""
    fields: list[FieldTerm]
    """The fields of the action, besides the operator's name and a note."""
    lists: list[str]
    """The lists in which the action is available as a bulk action."""


class Vocabulary(View):
    """The vocabulary of orders."""

    etag = True
    orders: dict[str, OrderTerm]
    """The terms for orders, by status."""
    steps: dict[str, StepTerm]
    """The terms for steps, by state."""
    events: dict[str, EventTerm]
    """The terms for events, by name."""
    actions: list[ActionTerm]
    lists: dict[str, ListTerm]
    """The lists of orders: first those that wait for an operator, last those that have ended."""
    log_link: str | None
    """The address of an order's log, with `{orderId}` for its id."""
    runbook: dict[str, str]
    """The addresses of the runbook, by type of alert; empty if no address is configured."""


def vocabulary(links: OutsideLinks = NOWHERE) -> Vocabulary:
    """Return the vocabulary of orders, with the links of the pages."""
    orders = {str(status): _order_term(status, info) for status, info in STATUS_INFO.items()}
    of_actions = chain.from_iterable(names_of_action(action.name) for action in ACTIONS)
    events = {**EVENT_INFO, **{name: EventInfo() for name in of_actions if name not in EVENT_INFO}}
    return Vocabulary(
        orders={ACCEPTED: _order_term(ACCEPTED, _NOT_RECORDED), **orders},
        steps={str(state): _step_term(state, meaning) for state, meaning in STEPS.items()},
        events={name: _event_term(name, info) for name, info in events.items()},
        actions=[
            *map(_action, ACTIONS),
            *(_term(name, of, danger=name in IRREVERSIBLE) for name, of in OTHERS.items()),
        ],
        lists=_lists(),
        log_link=links.log or None,
        runbook=runbook_of(links.runbook) if links.runbook else {},
    )


def runbook_of(page: str) -> dict[str, str]:
    """Return the runbook's address for each type of alert, on the page at this address."""
    return {name: f"{page}#{section}" for name, section in RUNBOOK.items()}


_NOT_RECORDED = StatusInfo(mark=Mark.PENDING)


def _order_term(status: str, info: StatusInfo) -> OrderTerm:
    return OrderTerm(
        word=text(f"status.{status}"),
        mark=info.mark,
        is_over=info.is_over,
        waits_for_operator=info.waits_for_operator,
    )


def _step_term(state: StepState, meaning: StepMeaning) -> StepTerm:
    return StepTerm(
        word=text(f"step-state.{state}"),
        mark=meaning.mark,
        may_be_tried_again=meaning.may_be_tried_again,
    )


def _event_term(name: str, info: EventInfo) -> EventTerm:
    mark = info.ends_attempt
    return EventTerm(
        word=text(f"event.{name}"),
        is_failure=info.is_failure,
        changes_nothing=info.changes_nothing,
        begins_attempt=info.begins_attempt,
        ends_attempt=Term(word=text(f"attempt-end.{name}"), mark=mark) if mark else None,
    )


def _lists() -> dict[str, ListTerm]:
    """Return the counted lists, and the lists that are combinations of them."""
    counted = {name: _counted(name, STATUS_INFO[status_in(name)]) for name in LISTS}
    waiting = {name: term for name, term in counted.items() if term.waits_for_operator}
    under_way = [name for name, term in counted.items() if term.is_under_way]
    again = STATUS_INFO[OrderStatus.AGAIN]
    return {
        **waiting,
        "again": _made_of("again", again.mark, under_way, OrderStatus.AGAIN),
        "open": _made_of("open", Mark.PENDING, [*waiting, *under_way]),
        **{name: term for name, term in counted.items() if name not in waiting},
        **{name: _over(name) for name in ENDED_LISTS},
    }


def _counted(name: str, info: StatusInfo) -> ListTerm:
    return ListTerm(
        title=text(f"list.{name}"),
        mark=info.mark,
        parts=[name],
        waits_for_operator=info.waits_for_operator,
        is_under_way=info.is_under_way,
        is_counted=True,
    )


def _over(name: str) -> ListTerm:
    info = STATUS_INFO[ENDED_LISTS[name]]
    return _made_of(name, info.mark, [name]).model_copy(update={"is_over": True})


def _made_of(
    name: str, mark: Mark, parts: list[str], situation: OrderStatus | None = None
) -> ListTerm:
    return ListTerm(
        title=text(f"list.{name}"),
        mark=mark,
        parts=parts,
        situation=situation,
        waits_for_operator=False,
        is_under_way=False,
        is_counted=False,
    )


def _action(action: AnyAction) -> ActionTerm:
    lists = [name for name, kind in LISTS.items() if kind in action.lists]
    term = _term(action.name, Subject.ORDER, danger=action.is_irreversible)
    fields = list(map(_field, arguments_of(action.asks)))
    return term.model_copy(update={"fields": fields, "lists": lists})


def _field(argument: Argument) -> FieldTerm:
    return FieldTerm(
        name=to_camel(argument.name),
        label=text(f"argument.{argument.key}.label"),
        kind=argument.kind,
        choices=list(argument.choices),
        is_required=argument.is_required,
    )


def _term(name: str, subject: Subject, *, danger: bool) -> ActionTerm:
    words = {part: text(f"action.{name}.{part}") for part in ("title", "button", "effect", "done")}
    return ActionTerm(name=name, danger=danger, subject=subject, fields=[], lists=[], **words)
