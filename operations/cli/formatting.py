"""Formats the API's answers as text and tables."""

from collections.abc import Iterable

import simplejson

from engine.words.catalogue import text
from operations.cli.client import Json
from operations.cli.terminal import headers, in_zone, printable, table, verbatim

MAX_SHOWN = 20
"""The most orders of a dry run that are listed."""

MAX_BODY = 300
"""The most characters of a poison message in the list."""


def acted(answer: Json) -> str:
    return f"{printable(answer['orderId'])}: {answer['status']}"


def with_more(shown: str, answer: Json) -> str:
    """Return the text, with a hint if there are more pages."""
    more = text("cli.more-pages") if answer["continuation"] else None
    return "\n".join(filter(None, (shown, more)))


def orders_table(orders: Iterable[Json]) -> str:
    header = headers("order", "situation", "until", "due-by", "since", "step", "reason")
    return table(header, map(_order_row, orders), free=2)


def _order_row(order: Json) -> tuple[object, ...]:
    steps = order["failedSteps"] or order["waitsFor"] or [order["step"]]
    return (
        order["orderId"],
        order["situation"],
        order["completeBy"] or order["notBefore"],
        order.get("dueBy"),
        order["updatedAt"],
        ", ".join(filter(None, steps)),
        verbatim(order["reason"]),
    )


NO_FACTS = ("orderId", "hides", "erased")
"""Fields left out of an order's text, because its heading or its payload shows them."""


def order_text(order: Json) -> str:
    plain = [(name, value) for name, value in order.items() if not isinstance(value, list | dict)]
    facts = [(name, value) for name, value in plain if value is not None and name not in NO_FACTS]
    facts += [(name, verbatim(simplejson.dumps(value))) for name, value in order["payload"].items()]
    steps = [_step_row(step) for step in order["steps"]]
    history = [
        (entry["at"], entry["actor"], entry["event"], entry["detail"]) for entry in order["history"]
    ]
    if order["keys"]:
        facts.append(("keys", ", ".join(order["keys"])))
    facts.append(("actions", ", ".join(order["actions"]) or text("cli.none")))
    step_header = headers("step", "state", "attempts", "failures", "cooldowns", "reason", "result")
    tables = (
        table((text("cli.header.order"), order["orderId"]), facts),
        table(step_header, steps, free=2),
        table(headers("at", "actor", "event", "detail"), history),
    )
    return "\n\n".join(tables)


def _step_row(step: Json) -> tuple[object, ...]:
    result = verbatim(simplejson.dumps(step["result"]) if step["result"] else "")
    name = text("cli.pivot", step=step["name"]) if step["pivot"] else step["name"]
    later = text("cli.not-before", time=step["notBefore"]) if step["notBefore"] else None
    counted = (step["state"], _attempts(step), step["failureCount"], step["cooldowns"])
    return (name, *counted, step["reason"] or later, result)


def question_text(question: Json) -> str:
    until = (
        text("cli.until", time=question["until"])
        if question["until"]
        else question["whyClosed"] or text("cli.not-awaited")
    )
    facts = [
        (question["title"] or question["step"], until),
        (
            text("cli.asked"),
            text("cli.asked.times", sent=question["requestsSent"], asks=question["asks"]),
        ),
        (text("cli.question"), verbatim(simplejson.dumps(question["question"]))),
        (text("cli.answer-with"), ", ".join(question["fields"])),
    ]
    return table((text("cli.header.order"), question["orderId"]), facts)


def _attempts(step: Json) -> str:
    """Return how often a step was attempted, with its key generation if it is not the first one."""
    generation = step["keyGeneration"]
    in_round = text("cli.round", round=generation + 1) if generation else ""
    return f"{step['attempts']}{in_round}"


def explanation_text(answer: Json) -> str:
    otherwise = text("cli.if-nothing-happens", effect=in_zone(answer["ifNothingHappens"]))
    return f"{in_zone(answer['summary'])}\n{otherwise}"


def bulk_text(summary: Json, *, go: bool) -> str:
    """Return the orders that a dry run found, or the outcome of a bulk action."""
    if not go:
        shown = orders_table(summary["matching"][:MAX_SHOWN])
        hint = text(
            "cli.bulk.meant",
            orders=len(summary["matching"]),
            action=summary["action"],
            until=summary["until"],
        )
        return f"{shown}\n{hint}"
    refused = [
        f"{refusal['orderId']}: {printable(refusal['why'])}" for refusal in summary["refused"]
    ]
    counts = ", ".join(
        text(f"cli.bulk.{name}", orders=len(summary[name]))
        for name in ("done", "refused", "changed")
    )
    waiting = [text("cli.bulk.waiting", order=order_id) for order_id in summary["stillWaiting"]]
    again = text("cli.bulk.again", until=summary["until"]) if refused else ""
    if not summary["complete"]:
        again = text("cli.bulk.rest", until=summary["until"])
    return "\n".join([*refused, *waiting, f"{counts}{again}"])


def alerts_table(found: Iterable[Json]) -> str:
    rows = [
        (
            alert["at"],
            text("cli.closed" if alert["closed"] else "cli.open"),
            alert["type"],
            alert["subject"],
            verbatim(alert.get("reason")),
            (alert["acknowledged"] or {}).get("by"),
            verbatim(alert["key"]),
        )
        for alert in found
    ]
    header = headers("at", "state", "type", "subject", "reason", "acknowledged", "key")
    return table(header, rows, free=3)


def poison_table(found: Iterable[Json]) -> str:
    """Return poison messages as a table, with the beginning of each body."""
    rows = [
        (
            message["queue"],
            verbatim(message["id"]),
            message["reason"],
            verbatim(_beginning(message["body"])),
        )
        for message in found
    ]
    return table(headers("queue", "id", "reason", "body"), rows, free=2)


def _beginning(body: object) -> str:
    shown = str(body)
    return shown if len(shown) <= MAX_BODY else text("cli.cut", beginning=shown[:MAX_BODY])


def out_of_reach(messages: Iterable[Json], unreadable: Iterable[str]) -> list[str]:
    """Return what may still name a customer after an erasure, with the commands to inspect it."""
    dropped = [
        text("cli.names-customer", queue=message["queue"], id=message["id"]) for message in messages
    ]
    orders = [text("cli.unreadable-order", order=order_id) for order_id in unreadable]
    return [printable(line) for line in (*dropped, *orders)]


def overview_text(answer: Json) -> str:
    def shown(count: Json) -> str:
        number = count["count"]
        return text("cli.or-more", number=number) if count["atLeast"] else str(number)

    sweep = answer["lastSweep"]
    rows = [
        *(
            (text("cli.overview.orders", state=state), shown(count))
            for state, count in answer["openOrders"].items()
        ),
        (text("cli.overview.events"), shown(answer["unconfirmedEvents"])),
        (text("cli.overview.notices"), shown(answer["unsentNotices"])),
        (
            text("cli.overview.sweep"),
            text("cli.overview.swept", at=sweep["at"], instance=sweep["instance"])
            if sweep
            else text("cli.none-yet"),
        ),
        *(
            (
                text("cli.overview.waiting", queue=queue),
                text("cli.away") if count is None else count,
            )
            for queue, count in answer["waiting"].items()
        ),
        *(
            (text("cli.overview.poison", queue=queue), shown(count))
            for queue, count in answer["poison"].items()
        ),
        *((_agent_name(agent), _agent_text(agent)) for agent in answer["agents"]),
        *((_agent_name(agent), _paused_text(agent)) for agent in answer["pausedAgents"]),
    ]
    return table(headers("what", "how-many"), rows)


def _agent_name(agent: Json) -> str:
    return text("cli.overview.agent", agent=agent["agent"])


def _agent_text(agent: Json) -> str:
    closed = (
        text("cli.agent.open", until=agent["openUntil"])
        if agent.get("openUntil")
        else text("cli.agent.calls", calls=agent["running"])
    )
    return text("cli.agent", state=closed, instance=agent["instance"], at=agent["at"])


def _paused_text(paused: Json) -> str:
    return text("cli.agent.paused", by=paused["by"], until=paused["until"], note=paused["because"])


def causes_text(answer: Json) -> str:
    """Return the causes of alerts, with a hint if there are older alerts."""
    looked_at = sum(cause["count"] for cause in answer["causes"])
    more = text("cli.more-alerts", alerts=looked_at) if answer.get("continuation") else None
    return "\n".join(filter(None, (causes_table(answer["causes"]), more)))


def causes_table(found: Iterable[Json]) -> str:
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
    return table(headers("alerts", "open", "not-taken", "type", "step", "last", "cause"), rows)
