"""The API's answers as text and tables."""

import json
from collections.abc import Iterable

from operations.cli.client import Json
from operations.cli.terminal import in_zone, printable, table, verbatim

MAX_SHOWN = 20
"""Maximum number of orders of a dry run that are listed."""

MAX_BODY = 300
"""Maximum number of characters of a poison message that the list shows."""


def acted(answer: Json) -> str:
    """Return the outcome of an action on an order."""
    return f"{printable(answer['orderId'])}: {answer['status']}"


def with_more(text: str, answer: Json) -> str:
    """Return the text, with a hint if there are more pages."""
    return f"{text}\n(there are more: --all)" if answer["continuation"] else text


def orders_table(orders: Iterable[Json]) -> str:
    """Return a list of orders as a table."""
    header = ("ORDER", "SITUATION", "UNTIL", "SINCE", "STEP", "REASON")
    return table(header, map(_order_row, orders), free=2)


def _order_row(order: Json) -> tuple[object, ...]:
    steps = order["failedSteps"] or order["waitsFor"] or [order["step"]]
    return (
        order["orderId"],
        order["situation"],
        order["completeBy"] or order["notBefore"],
        order["updatedAt"],
        ", ".join(filter(None, steps)),
        verbatim(order["reason"]),
    )


NO_FACTS = ("orderId", "hides", "erased")
"""Left out of an order's text: its heading, and what `hidden` or `erased` in its payload says."""


def order_text(order: Json) -> str:
    """Return an order with its steps and its history."""
    plain = [(name, value) for name, value in order.items() if not isinstance(value, list | dict)]
    facts = [(name, value) for name, value in plain if value is not None and name not in NO_FACTS]
    facts += [(name, verbatim(json.dumps(value))) for name, value in order["payload"].items()]
    steps = [_step_row(step) for step in order["steps"]]
    history = [
        (entry["at"], entry["actor"], entry["event"], entry["detail"]) for entry in order["history"]
    ]
    if order["keys"]:
        facts.append(("keys", ", ".join(order["keys"])))
    facts.append(("actions", ", ".join(order["actions"]) or "none"))
    step_header = ("STEP", "STATE", "ATTEMPTS", "FAILURES", "COOLDOWNS", "REASON", "RESULT")
    tables = (
        table(("ORDER", order["orderId"]), facts),
        table(step_header, steps, free=2),
        table(("AT", "ACTOR", "EVENT", "DETAIL"), history),
    )
    return "\n\n".join(tables)


def _step_row(step: Json) -> tuple[object, ...]:
    result = verbatim(json.dumps(step["result"]) if step["result"] else "")
    name = f"{step['name']} (point of no return)" if step["pivot"] else step["name"]
    later = f"not before {step['notBefore']}" if step["notBefore"] else None
    counted = (step["state"], _attempts(step), step["failureCount"], step["cooldowns"])
    return (name, *counted, step["reason"] or later, result)


def question_text(question: Json) -> str:
    """Return what somebody outside is asked."""
    until = (
        f"until {question['until']}"
        if question["until"]
        else question["whyClosed"] or "not awaited yet"
    )
    facts = [
        (question["title"] or question["step"], until),
        ("asked", f"{question['requestsSent']} of {question['asks']} times"),
        ("what", verbatim(json.dumps(question["question"]))),
        ("answer with", ", ".join(question["fields"])),
    ]
    return table(("ORDER", question["orderId"]), facts)


def _attempts(step: Json) -> str:
    """Return how often a step was tried; a round has an idempotency key of its own."""
    in_round = f" (round {step['keyGeneration'] + 1})" if step["keyGeneration"] else ""
    return f"{step['attempts']}{in_round}"


def explanation_text(answer: Json) -> str:
    """Return why an order is where it is, and what happens otherwise."""
    return (
        f"{in_zone(answer['summary'])}\nIf nothing happens: {in_zone(answer['ifNothingHappens'])}"
    )


def bulk_text(summary: Json, *, go: bool) -> str:
    """Return the orders that a dry run found, or the outcome of a bulk action."""
    if not go:
        shown = orders_table(summary["matching"][:MAX_SHOWN])
        hint = f"to {summary['action']} them: --go --until {summary['until']}"
        return f"{shown}\n{len(summary['matching'])} orders are meant; {hint}"
    refused = [
        f"{refusal['orderId']}: {printable(refusal['why'])}" for refusal in summary["refused"]
    ]
    counts = ", ".join(f"{len(summary[name])} {name}" for name in ("done", "refused", "changed"))
    waiting = [f"{order_id}: still needs an operator" for order_id in summary["stillWaiting"]]
    again = (
        f"; to try those that were refused again: --go --until {summary['until']}"
        if refused
        else ""
    )
    return "\n".join([*refused, *waiting, f"{counts}{again}"])


def alerts_table(found: Iterable[Json]) -> str:
    """Return a list of alerts as a table."""
    rows = [
        (
            alert["at"],
            "closed" if alert["closed"] else "open",
            alert["type"],
            alert["subject"],
            verbatim(alert.get("reason")),
            (alert["acknowledged"] or {}).get("by"),
            verbatim(alert["key"]),
        )
        for alert in found
    ]
    header = ("AT", "STATE", "TYPE", "SUBJECT", "REASON", "ACKNOWLEDGED", "KEY")
    return table(header, rows, free=3)


def poison_table(found: Iterable[Json]) -> str:
    """Return a list of poison messages as a table, with the beginning of each body."""
    rows = [
        (
            message["queue"],
            verbatim(message["id"]),
            message["reason"],
            verbatim(_beginning(message["body"])),
        )
        for message in found
    ]
    return table(("QUEUE", "ID", "REASON", "BODY"), rows, free=2)


def _beginning(body: object) -> str:
    text = str(body)
    return text if len(text) <= MAX_BODY else f"{text[:MAX_BODY]}… (all of it: --json)"


def out_of_reach(email: str, messages: Iterable[Json], unreadable: Iterable[str]) -> str:
    """Return what may still name a customer after an erasure, with the commands to look at it."""
    spellings = {email.casefold(), json.dumps(email)[1:-1].casefold()}

    def names_customer(message: Json) -> bool:
        body = str(message["body"]).casefold()
        return any(spelling in body for spelling in spellings)

    dropped = [
        f"poison message of that name: poison drop {message['queue']} {message['id']}"
        for message in messages
        if names_customer(message)
    ]
    orders = [
        f"order that cannot be read, whosever it is: explain {order_id}" for order_id in unreadable
    ]
    waiting = "not looked at: submissions that wait on their queue; ask again later"
    return "\n".join([*map(printable, dropped), *map(printable, orders), waiting])


def overview_text(answer: Json) -> str:
    """Return the overview as a table."""

    def shown(count: Json) -> str:
        return f"{count['count']}{' or more' if count['atLeast'] else ''}"

    sweep = answer["lastSweep"]
    rows = [
        *((f"orders {state}", shown(count)) for state, count in answer["openOrders"].items()),
        ("events for operators not sent yet", shown(answer["unconfirmedEvents"])),
        ("notices for senders not sent yet", shown(answer["unsentNotices"])),
        ("last sweep", f"{sweep['at']} by {sweep['instance']}" if sweep else "none yet"),
        *(
            (f"waiting in {queue}", "away" if count is None else count)
            for queue, count in answer["waiting"].items()
        ),
        *((f"poison from {queue}", count) for queue, count in answer["poison"].items()),
        *((f"agent {agent['agent']}", _agent_text(agent)) for agent in answer["agents"]),
        *((f"agent {agent['agent']}", _paused_text(agent)) for agent in answer["pausedAgents"]),
    ]
    return table(("WHAT", "HOW MANY"), rows)


def _agent_text(agent: Json) -> str:
    closed = (
        f"makes no calls until {agent['openUntil']}"
        if agent.get("openUntil")
        else f"{agent['running']} calls"
    )
    return f"{closed}; {agent['instance']}, at {agent['at']}"


def _paused_text(paused: Json) -> str:
    return f"{paused['by']} paused it until {paused['until']}: {paused['because']}"


def causes_table(found: Iterable[Json]) -> str:
    """Return the causes of alerts as a table."""
    rows = [
        (
            cause["count"],
            cause["open"],
            len(cause["unacknowledged"]),
            cause["type"],
            cause["step"],
            cause["last"],
            verbatim(cause["cause"] or cause["reason"]),
        )
        for cause in found
    ]
    return table(("ALERTS", "OPEN", "NOT TAKEN", "TYPE", "STEP", "LAST", "CAUSE"), rows)
