"""The vocabulary of orders, steps and actions, for the pages and the command line (OPR-2)."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.alerts.events import NOTICE_GIVEN_UP, STALLED, SUBMISSION_REJECTED, WORKFLOW_CHANGED
from engine.decisions import operator_actions as actions
from engine.decisions.lists import ENDED_LISTS, LISTS, status_in
from engine.decisions.operator_actions import OperatorAction, Subject, Words
from engine.domain.history import EVENT_INFO, EventInfo
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
    STALLED: "when-something-stands-still",
    "circuit-open": "alert-circuit-open",
}
"""The section of `docs/operate.md` for each alert, and for a circuit that is open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutsideLinks:
    """The places outside the console to which it leads; each may be empty."""

    log: str = ""
    """The address of an order's log, with `{orderId}` for its id."""
    runbook: str = ""
    """The address of `docs/operate.md`."""


NOWHERE = OutsideLinks()


class Term(View):
    """The word for a state, and its mark."""

    word: str
    mark: Mark


class OrderTerm(Term):
    """The word for the status of an order, and its mark."""

    is_over: bool
    """Whether the order is finished and needs no operator."""
    waits_for_operator: bool
    """Whether nothing happens to the order until an operator acts on it."""


ACCEPTED = "accepted"
"""The status of an order that the queue holds; none is recorded in it."""


class StepTerm(Term):
    """The word for the state of a step, and its mark."""

    may_be_tried_again: bool
    """Whether a step in this state that has failed before is being tried again."""


class EventTerm(View):
    """The word for an event of the history, and its meaning."""

    word: str
    is_failure: bool
    """Whether something went wrong."""
    changes_nothing: bool
    """Whether the order stayed as it was."""
    begins_attempt: bool
    ends_attempt: Term | None
    """How the attempt at its step has ended by it; null if it has not."""


class ListTerm(View):
    """A list of open orders, as pages show it."""

    title: str
    mark: Mark
    parts: list[str]
    """The values of `state` by which `GET /api/operator/orders` returns its orders."""
    situation: str | None = None
    """If given, only the orders of this status are meant."""
    waits_for_operator: bool
    """Whether its orders wait for an operator's action."""
    is_under_way: bool
    """Whether its orders go on by themselves."""
    is_counted: bool
    """Whether the overview counts it, and bulk actions go through it."""
    is_over: bool = False
    """Whether its orders have come to an end; the newest is the first."""


class ActionTerm(View):
    """An operator's action, and its texts."""

    name: str
    title: str
    button: str
    """The text on its button."""
    effect: str
    done: str
    danger: bool
    """Whether it cannot be reversed."""
    subject: Subject
    """Whether it concerns an order, its personal data, a message, an agent or an answer."""
    of_step: bool = False
    """Whether it concerns one of the steps that failed, or are in doubt."""
    of_outcome: bool = False
    """Whether the operator says if the step was done."""
    lists: list[str]
    """The lists on which it works as a bulk action."""


class Vocabulary(View):
    """The vocabulary of orders."""

    etag = True
    orders: dict[str, OrderTerm]
    """By status."""
    steps: dict[str, StepTerm]
    """By state."""
    events: dict[str, EventTerm]
    """By name."""
    actions: list[ActionTerm]
    lists: dict[str, ListTerm]
    """The lists of orders, first those that wait for an operator; last those that are over."""
    log_link: str | None
    """The address of an order's log, with `{orderId}` for its id."""
    runbook: dict[str, str]
    """The addresses of what to do, by type of the alert; empty if no address is configured."""


def vocabulary(links: OutsideLinks = NOWHERE) -> Vocabulary:
    """Return the vocabulary of orders, and where pages lead to from it."""
    orders = {str(status): _order_term(status, info) for status, info in STATUS_INFO.items()}
    return Vocabulary(
        orders={ACCEPTED: _order_term(ACCEPTED, _NOT_RECORDED), **orders},
        steps={str(state): _step_term(state, meaning) for state, meaning in STEPS.items()},
        events={name: _event_term(name, info) for name, info in EVENT_INFO.items()},
        actions=[
            _term(action) for action in (*actions.ACTIONS, *actions.OTHERS, *actions.OF_ANSWERS)
        ],
        lists=_lists(),
        log_link=links.log or None,
        runbook=runbook_of(links.runbook) if links.runbook else {},
    )


def runbook_of(page: str) -> dict[str, str]:
    """Return the address of what to do for each type of alert, on the page at that address."""
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
        word=text(f"state.{state}"),
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
    """Return the counted lists, and those that are made of several of them."""
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


def _term(words: Words) -> ActionTerm:
    kinds = words.lists if isinstance(words, OperatorAction) else ()
    return ActionTerm(
        name=words.name,
        title=words.title,
        button=words.button,
        effect=words.effect,
        done=words.done,
        danger=words.danger,
        subject=words.subject,
        of_step=isinstance(words, OperatorAction) and words.of_step,
        of_outcome=isinstance(words, OperatorAction) and words.of_outcome,
        lists=[name for name, kind in LISTS.items() if kind in kinds],
    )
