"""The decisions of this tree in the neutral form: `python -m development.differential.side COURSES`.

This module knows the records and functions of its commit. If you change these, change this module, too, so that the
neutral form stays the same: rows with the columns, and moves with the names, of the first version of the run.
`neutral.py` makes the rows. Both modules must not import anything else from this package, because the run puts the
modules of an earlier commit beside the present rest of the package.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from development.differential import neutral
from engine.decisions.actions.action import OperatorCommand
from engine.decisions.drafts import NextVersion
from engine.decisions.operator_actions import BY_NAME, AnyAction, cancel_for_customer
from engine.decisions.restore import Copied
from engine.decisions.results import kept_answer
from engine.decisions.transitions import HistoryEntry, NotClaimed, Note, Transition, transition_of
from engine.declarations.business import AgentDefinition, Payload
from engine.declarations.workflow import StepDefaults, StepDefinition, WorkflowDefinition, Workflows
from engine.domain.attempts import FailureOrigin, NotAttemptedReason, ReplyOutcome
from engine.domain.causes import cause_in
from engine.domain.errors import CausedError, InvalidError, NewerWorkflowError, UnavailableError
from engine.domain.history import read_events
from engine.domain.messages import BusMessage, decode_reply
from engine.domain.orders import OrderAggregate
from engine.domain.steps import StepKind
from engine.domain.submitted_order import EXTERNAL_PARTY, OnFailure
from engine.domain.work_index import IndexRow
from engine.features.external_events import actions, decide
from engine.features.external_events.callback_urls import CallbackUrls
from engine.features.external_events.content import read
from engine.storage.agent_health import AgentHealth, AttemptFault
from engine.storage.orders import columns_of_record, of_note, of_transition
from engine.storage.tables import Delete, Operation, stored_form
from engine.words.catalogue import text, texts
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api import copies, retention
from operations.api.requests import OperatorRequest
from scheduler.rules import SchedulerRules
from submission import rules as submission
from submission.rules import Terms
from supervisor.rules import SupervisorRules

Json = Mapping[str, Any]

MAX_UNBEGUN_ATTEMPTS = 12
ADDRESS = "https://orders.example"
OPERATOR, NOTE = "grace", "mended"
OF_ARGUMENTS = {
    "step": "step",
    "was_done": "wasDone",
    "answer": "answer",
    "confirm_late_effect": "confirm",
}
"""The arguments of actions, each with its key in a move."""
FORM = 1
"""The number of the neutral form of worlds and moves that this side reads.

A new key or a new meaning is a new form. Then an earlier base cannot be compared.
"""
FOLLOWS = ("Agenda",)
"""Columns that only repeat the other rows of their transaction."""


class Side:
    """The decisions about the orders of one world."""

    def __init__(self, world: Json) -> None:
        self._world = world
        self._agents = [_agent(agent) for agent in world["agents"]]
        self._settings = {
            name: timedelta(seconds=seconds) for name, seconds in world["seconds"].items()
        }
        self._workflows = _workflows(world["workflows"])
        self._rules: dict[str, SchedulerRules] = {}
        self._right = ""

    def decide(
        self, before: OrderAggregate | None, move: Json
    ) -> tuple[Json, OrderAggregate | None]:
        """Return the decision in the neutral form, and the order after it. None if nothing changes.

        If a move is refused, the kind of the refusal is compared, but not its text.
        """
        now = datetime.fromisoformat(move["at"])
        self._right = f"right-{now:%H%M%S%f}"
        try:
            decision = _KINDS[move["do"]](self, before, move, now)
        except InvalidError:
            return {"decided": "invalid"}, None
        except CausedError:
            return {"decided": "refused"}, None
        except (NewerWorkflowError, UnavailableError):
            return {"decided": "newer"}, None
        except Exception as error:  # noqa: BLE001 - a side that fails is a difference, and the run goes on
            return {"decided": "error", "error": repr(error)}, None
        return _neutral(decision)

    def submit(
        self, before: OrderAggregate | None, move: Json, now: datetime
    ) -> Transition | Note | None:
        """Record the order, or compare its message with the recorded one."""
        body = json.dumps(move["body"]).encode()
        message, workflow = submission.read(body, self._terms)
        transition = submission.new_order(message, workflow, self._terms, now, "submission/one")
        if before is None:
            return transition
        if submission.same_submission(before, transition.after, PAYLOAD):
            return None
        return submission.refusal_of(before, body, now, now, "submission/one")

    def claim(self, before: OrderAggregate, move: Json, now: datetime) -> Transition | NotClaimed:
        times: Json = move.get("silent", {})
        silent = {agent: datetime.fromisoformat(since) for agent, since in times.items()}
        return self._scheduler(move["by"]).claim(before, now, move["room"], silent)

    def receive(
        self, before: OrderAggregate, move: Json, now: datetime
    ) -> Transition | Note | NotClaimed | None:
        reply = decode_reply(json.dumps({"schemaVersion": 2, **_reply(move["reply"])}))
        scheduler = self._scheduler(move["by"])
        return scheduler.receive(before, reply, now, move["room"], move["agent"])

    def recover(self, before: OrderAggregate, move: Json, now: datetime) -> Transition | None:
        tolerance = self._settings["tolerance"]
        supervisor = SupervisorRules(
            instance=move["by"],
            clock_tolerance=tolerance,
            max_unbegun_attempts=MAX_UNBEGUN_ATTEMPTS,
        )
        return supervisor.recover(before, now, [_health(report, now) for report in move["heard"]])

    def act(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        action = _action(move["action"])
        given = {
            name: move[key]
            for name, key in OF_ARGUMENTS.items()
            if name in action.asks.model_fields and key in move
        }
        command = OperatorCommand(operator=OPERATOR, note=NOTE, arguments=action.asks(**given))
        kept = partial(kept_answer, self._workflows)
        return action.act(before, action.checked(before, command, kept), now)

    def answer(self, before: OrderAggregate, move: Json, now: datetime) -> Transition | None:
        """Record an external event from a person, or from a service by its callback URL."""
        event = read(before, move["step"], self._workflows, move.get("answer"), move.get("refusal"))
        event = replace(event, for_good=move.get("forGood", False))
        return decide.recorded(before, event, move["by"], now)

    def extend(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        until = datetime.fromisoformat(move["until"])
        return _acted(actions.extend_deadline(before, move["step"], until, NOTE, now))

    def remind(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        return _acted(actions.remind(before, move["step"], NOTE, now))

    def renew_callback(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        token = self._callback_urls.new_token()
        return _acted(actions.new_callback_url(before, move["step"], token, NOTE, now))

    def cancel_for_customer(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        return cancel_for_customer(before, move["until"], now)

    def erase(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        return retention.erase(before, REQUEST, PAYLOAD, now)

    def restore(self, before: OrderAggregate, move: Json, now: datetime) -> Transition:
        copied_at = datetime.fromisoformat(move["copiedAt"])
        copied = Copied(
            at=copied_at, agents=self._agents, clock_tolerance=self._settings["tolerance"]
        )
        return copies.restored(before, REQUEST, copied, now)

    @property
    def _callback_urls(self) -> CallbackUrls:
        return CallbackUrls(address=ADDRESS, new_token=lambda: self._right)

    @property
    def _terms(self) -> Terms:
        return Terms(
            workflows=self._workflows,
            default_workflow=self._world["workflows"][0]["name"],
            payload=PAYLOAD,
            reply_to_prefix="status-",
            buckets=frozenset({"b00"}),
            defaults=StepDefaults(
                timeout=self._settings["timeout"],
                threshold=self._world["threshold"],
                cooldown=self._settings["cooldown"],
            ),
        )

    def _scheduler(self, instance: str) -> SchedulerRules:
        """Return the rules of an instance, which may know other workflows, or fewer agents."""
        if instance not in self._rules:
            own: Json = self._world.get("instances", {}).get(instance, {})
            names = own.get("agents", [agent.name for agent in self._agents])
            agents = [agent for agent in self._agents if agent.name in names]
            self._rules[instance] = SchedulerRules(
                instance=instance,
                workflows=_workflows(own["workflows"]) if "workflows" in own else self._workflows,
                payload=PAYLOAD,
                providers={agent.name: agent.provider or agent.name for agent in agents},
                agents={agent.name: agent for agent in agents},
                callback_urls=self._callback_urls,
                clock_tolerance=self._settings["tolerance"],
                version_overlap=self._settings["longest_upgrade"],
                max_silence=self._settings["max_silence"],
            )
        return self._rules[instance]


_KINDS: Mapping[str, Callable[..., Any]] = {
    "submit": Side.submit,
    "claim": Side.claim,
    "reply": Side.receive,
    "recover": Side.recover,
    "act": Side.act,
    "answer": Side.answer,
    "extend": Side.extend,
    "remind": Side.remind,
    "renew-callback": Side.renew_callback,
    "customer-cancel": Side.cancel_for_customer,
    "erase": Side.erase,
    "restore": Side.restore,
}

# What is decided


def _neutral(decision: Transition | Note | NotClaimed | None) -> tuple[Json, OrderAggregate | None]:
    match decision:
        case Transition():
            return _of_change(decision)
        case Note():
            return {"decided": "note", "rows": _rows(of_note(decision))}, None
        case NotClaimed():
            return {
                "decided": "not-claimed",
                "why": str(decision.why).replace("no-capacity", "no-room"),
            }, None
    return {"decided": "nothing"}, None


def _of_change(transition: Transition) -> tuple[Json, OrderAggregate]:
    """Return a transition in the neutral form, and the order as it is stored."""
    after, operations = of_transition(transition.identified("change"), ADDRESS)
    others = {key: row for key, row in _rows(operations).items() if not _is_of_order(key)}
    rows = others | neutral.rows(transition.before, after)
    messages = [_message(message) for message in transition.messages]
    return {"decided": "transition", "rows": rows, "messages": messages}, replace(after, etag="1")


OTHERS = ("!outbox|", "_acted|")
"""The rows of notifications and of operators' actions, which do not follow from the order's record."""


def _is_of_order(key: str) -> bool:
    """Whether the row follows from the order alone, so that `neutral` makes it."""
    return "|history|" not in key and not key.startswith(OTHERS)


def _rows(operations: Iterable[Operation]) -> Json:
    """Return each written row by its key. None for a deleted one."""
    return {
        operation.key: None if isinstance(operation, Delete) else _columns(operation.row)
        for operation in operations
    }


def _columns(record: Any) -> Json:
    columns = stored_form(columns_of_record(record))
    plain = {name: _plain(value) for name, value in columns.items() if name not in FOLLOWS}
    if plain.get("Event") in FORMER_EVENTS:
        plain["Event"] = FORMER_EVENTS[plain["Event"]]
    if isinstance(alert := plain.get("Data"), dict) and "actions" in alert:
        names = {new: old for old, new in FORMER_ACTIONS.items()}
        alert["actions"] = [_advice(names.get(name, name), alert) for name in alert["actions"]]
    if isinstance(record, HistoryEntry):
        plain["Data"] = [neutral.event(event) for event in record.events]
        plain["Detail"] = in_words(record.events)
    if isinstance(record, IndexRow) and "Actor" in plain:
        events = read_events(plain["Event"], plain["Detail"], plain.pop("Data"))
        plain["Detail"] = in_words(events)
    former: Json = _in_words(plain)
    return former


def _advice(name: str, alert: Json) -> str:
    """Return the advice for operators in words, which rows held in the first form."""
    key = f"advice.{name}"
    return text(key, **alert["reason"]["facts"]) if key in texts() else name


REFUSALS = ("reply-refused", "submission-refused")


FORMER_EVENTS = {
    "request-cancelled": "step-withdrawn",
    "optional-step-failed": "passed-over",
    "skipped-by-condition": "not-needed",
    "step-scheduled": "begins-later",
    "not-attempted": "not-tried",
    "deferred": "accepted",
    "requeued": "put-back",
    "expedited": "hurried",
    "retried-with-new-key": "renewed",
    "step-retried-with-new-key": "step-renewed",
}
"""The names of events, with their names in the first form."""


def _in_words(value: Any) -> Any:
    """Return a value with the words of each cause in its place, which rows held in the first form.

    The name of the cause's group in lists and alerts follows from it and is left out.
    """
    if isinstance(value, list):
        return [_in_words(element) for element in value]
    if not isinstance(value, dict):
        return value
    facts = {
        name: _in_words(member) for name, member in value.items() if not _names_group(name, member)
    }
    if "Cause" in facts:
        facts["Reason"] = _words(facts.pop("Cause"))
    if isinstance(value.get("reason"), dict):
        facts["reason"] = _words(value["reason"])
    if "cause" in facts:
        facts["why" if facts["what"] in REFUSALS else "reason"] = _words(facts.pop("cause"))
    return facts


def _names_group(name: str, value: Any) -> bool:
    return name.lower() == "cause" and not isinstance(value, dict)


def _words(cause: Json) -> str:
    facts = {name.lower(): value for name, value in cause.items()}
    return words_of(cause_in(facts))


def _plain(value: Any) -> Any:
    """Return a value of a column as JSON, even if the column holds JSON as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, str) and value.startswith(("{", "[")):
        return json.loads(_former_urls(value))
    return value


def _former_urls(text: str) -> str:
    """Return the text of an object with callback URLs in the first form."""
    return text.replace('"callbackUrl"', '"answerUrl"').replace("?token=", "?right=")


def _message(message: BusMessage) -> Json:
    return {
        "queue": message.queue,
        "id": message.message_id.replace(":ready", ":wake"),
        "correlation": message.correlation_id,
        "body": json.loads(_former_urls(message.body)),
        "replyTo": message.reply_to,
        "seconds": message.time_to_live and message.time_to_live.total_seconds(),
        "notBefore": message.not_before and message.not_before.isoformat(),
    }


# What a world consists of


def _acted(decided: NextVersion) -> Transition:
    return transition_of(decided, f"operator/{OPERATOR}")


FORMER_ACTIONS = {"hurry": "expedite", "renew": "retry-with-new-key"}
"""Actions by their names in courses."""


def _action(name: str) -> AnyAction:
    return BY_NAME[FORMER_ACTIONS.get(name, name)]


def _reply(move: Json) -> Json:
    """Return a reply of a course in the form of this tree's messages."""
    reply = {**move, "detail": move.get("reason", "")}
    match move:
        case {"outcome": "failed"}:
            origin = FailureOrigin.REQUEST if move.get("forOperator") else FailureOrigin.SERVICE
            return {**reply, "origin": origin}
        case {"outcome": "notTried"}:
            outcome = ReplyOutcome.DEFERRED if move.get("accepted") else ReplyOutcome.NOT_ATTEMPTED
            return {**reply, "outcome": outcome, "reason": _reason(move)}
    return reply


def _reason(move: Json) -> NotAttemptedReason:
    if move.get("asked"):
        return NotAttemptedReason.THROTTLED
    is_open = move.get("circuitOpen")
    return NotAttemptedReason.CIRCUIT_OPEN if is_open else NotAttemptedReason.BUSY


def _health(facts: Json, now: datetime) -> AgentHealth:
    faults = [
        AttemptFault(
            text=fault["text"], by_gateway=fault["atDoor"], requests=tuple(fault["requests"])
        )
        for fault in facts.get("faults", ())
    ]
    return AgentHealth(
        agent=facts["agent"],
        instance="one",
        at=now,
        begun=tuple(facts["begun"]),
        faults=tuple(faults),
    )


def _agent(declared: Json) -> AgentDefinition:
    return AgentDefinition(
        name=declared["name"],
        offers=declared["offers"],
        address=declared["name"],
        provider=declared.get("provider"),
        answer_within=_seconds(declared.get("answerWithin")),
        calls_back=declared.get("callsBack", False),
        remembers_refusals=declared.get("remembersRefusals", False),
        keys_last=_seconds(declared.get("keysLast")),
    )


def _workflows(declared: Sequence[Json]) -> Workflows:
    return Workflows(*map(_workflow, declared))


def _workflow(declared: Json) -> WorkflowDefinition:
    steps = tuple(_definition(step) for step in declared["steps"])
    return WorkflowDefinition(
        name=declared["name"], version=declared.get("version", 1), steps=steps
    )


def _definition(declared: Json) -> StepDefinition:
    external = declared.get("external", False)
    condition, start_at = declared.get("condition"), declared.get("startAt")
    return StepDefinition(
        name=declared["name"],
        kind=StepKind.EXTERNAL if external else StepKind.SERVICE,
        capability=EXTERNAL_PARTY if external else declared["capability"],
        operation="answer" if external else "do",
        compensation="undo" if declared.get("undo") else None,
        request=_broken if declared.get("broken") else _content,
        uses=tuple(declared.get("uses", ())),
        may_lack=tuple(declared.get("mayLack", ())),
        after=tuple(declared.get("after", ())),
        result_fields=tuple(declared.get("keeps", ())),
        timeout=_seconds(declared.get("timeout")),
        threshold=declared.get("threshold"),
        condition=condition and CONDITIONS[condition],
        start_at=start_at and STARTS[start_at],
        on_failure=ON_FAILURE[declared.get("onFailure", "error")],
        pivot=declared.get("pivot", False),
        cooldown=_seconds(declared.get("cooldown")),
        max_cooldowns=declared.get("maxCooldowns", 3),
        late_effect_window=timedelta(seconds=declared.get("lateEffectWindow", 0)),
        read_answer=dict if external else None,
        personal=tuple(declared.get("personal", ())),
    )


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


ON_FAILURE = {
    "error": OnFailure.ERROR,
    "undo": OnFailure.UNDO,
    "cooldown": OnFailure.COOLDOWN,
    "continue": OnFailure.CONTINUE,
}


def _content(order: Any, results: Any) -> dict[str, Any]:
    """Return a request that repeats all of its sources."""
    return {
        "placed": dict(order.payload),
        "results": {name: dict(results[name]) for name in results},
    }


def _broken(order: Any, results: Any) -> dict[str, Any]:
    """Raise like a request that reads a missing field."""
    raise LookupError("claimNumber")


def _named(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    function.__name__ = name
    return function


def _cannot(order: Any, results: Any) -> Any:
    """Raise an unforeseen error."""
    raise LookupError("amount")


def _an_hour_later(order: Any, results: Any) -> datetime:
    later: datetime = order.placed_at + timedelta(hours=1)
    return later


CONDITIONS = {
    "never": _named("needed", lambda order, results: False),
    "always": _named("needed", lambda order, results: True),
    "broken": _named("broken", _cannot),
}
"""The conditions by their neutral names. Two share a name, as after a change of the workflow in place."""
STARTS = {
    "an-hour-later": _named("an_hour_later", _an_hour_later),
    "broken": _named("broken", _cannot),
}


def _accept(payload: Json) -> None:
    """Accept any content."""


def _without_customer(payload: Json) -> Json:
    kept = {name: value for name, value in payload.items() if name != "card"}
    return {**kept, "customer": "erased"} if "customer" in kept else kept


def _customer(payload: Json) -> list[str]:
    customer = payload.get("customer")
    return [*customer.values()] if isinstance(customer, Mapping) else []


def _belongs_to_nobody(payload: Json, person: str) -> bool:
    return False


def _keys(payload: Json) -> list[str]:
    """Return the keys of an order. One of them is personal, and is removed when the order is erased."""
    return [payload[name] for name in ("policy", "card") if name in payload]


PAYLOAD = Payload(
    check=_accept,
    erased=_without_customer,
    personal=_customer,
    belongs_to=_belongs_to_nobody,
    keys=_keys,
)
REQUEST = OperatorRequest(operator=OPERATOR, note=NOTE)


def decided(lines: Iterable[str]) -> Iterator[str]:
    """Yield the decision on each move, as a line of JSON. A line with a world begins a new tree."""
    side: Side | None = None
    orders: list[OrderAggregate | None] = []
    for line in lines:
        move = json.loads(line)
        if "world" in move:
            side, orders = Side(move["world"]), []
            continue
        if side is None:
            raise ValueError("there is a move before the first world")
        before = None if move["from"] is None else orders[move["from"]]
        decision, after = side.decide(before, move)
        orders.append(after)
        yield json.dumps(decision, sort_keys=True)


def main(courses: str) -> None:
    """Print the decision on each move of these courses."""
    with Path(courses).open(encoding="utf-8") as lines:
        for line in decided(lines):
            sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
