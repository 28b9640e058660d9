"""The worlds in which generated courses of an order run: workflows, agents and settings in the neutral form.

Each world names moves that lead to deep states (`courses`). The worlds cover features that the exploration's worlds
lack: back-off, deferred work that is undone, several capabilities, callbacks, a mixed workflow of five steps, and
restored and erased orders.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

PLACED_AT = "2026-01-31T08:15:00+00:00"
ORDER_ID = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W"
DAY = 86_400


def step(name: str, *after: str, **rules: Any) -> Json:
    """Return a step with an undo, for agents with the capability `pay`."""
    return {
        "name": name,
        "capability": "pay",
        "after": after,
        "undo": True,
        "onFailure": "undo",
        "keeps": ["reference"],
        **rules,
    }


def wait(name: str, *after: str, **rules: Any) -> Json:
    """Return a step that an external event completes."""
    waits = {
        "external": True,
        "undo": False,
        "keeps": ["said"],
        "personal": ["said"],
        "timeout": 30,
    }
    return step(name, *after, **{**waits, **rules})


def agent(name: str = "pay", **more: Any) -> Json:
    """Return an agent that offers its own name."""
    return {"name": name, "offers": name, **more}


def world(name: str, *steps: Json, agents: Sequence[Json] = (), **more: Any) -> Json:
    """Return a world with one workflow of these steps."""
    return {
        "name": name,
        "workflows": [{"name": name, "steps": steps}],
        "agents": agents or [agent()],
        "threshold": 2,
        "seconds": {
            "timeout": 8,
            "tolerance": 1,
            "cooldown": 60,
            "longest_upgrade": 3600,
            "max_silence": 3600,
        },
        "submission": {},
        **more,
    }


CHAIN = (step("a"), step("b", "a"))
CHANGED = (step("a", timeout=20), step("x", "a"))
MIXED = (
    step("a", onFailure="cooldown", maxCooldowns=1),
    wait("w", threshold=2),
    step("b", "a", "w", onFailure="continue", condition="always", uses=["a", "w"]),
    step("c", "b", undo=False, pivot=True, uses=["a"]),
    step("d", "c", onFailure="error", uses=["b", "c"], mayLack=["b"]),
)
TWO_PROVIDERS = [agent("inn"), agent(), {"name": "second", "offers": "pay", "provider": "other"}]
ONE_PROVIDER = [agent(provider="psp"), {"name": "backup", "offers": "pay", "provider": "psp"}]

WORLDS: Sequence[Json] = (
    world("pair", *CHAIN),
    world(
        "mixed", *MIXED, courses=["claim hold release", "claim completed answer claim completed"]
    ),
    world(
        "external",
        step("a"),
        wait("w", threshold=2),
        step("b", "a", "w", uses=["w"]),
        courses=["claim hold release recover", "claim completed answer claim completed"],
    ),
    world("backs-off", *CHAIN, threshold=4, courses=["claim recover claim recover claim recover"]),
    world(
        "cools-down",
        *(step(*names, onFailure="cooldown", maxCooldowns=1) for names in (["a"], ["b", "a"])),
        threshold=1,
        courses=[
            (
                "claim recover claim recover claim recover resubmit claim recover"
                " | claim recover claim recover resubmit claim recover"
            ),
            "claim completed cancel recover claim recover hurry",
        ],
    ),
    world(
        "several-capabilities",
        step("room", capability="inn", onFailure="error"),
        step("charge", onFailure="error"),
        step("send", "charge", "room", uses=["charge", "room"]),
        agents=TWO_PROVIDERS,
    ),
    world(
        "provider-is-gone",
        *CHAIN,
        agents=TWO_PROVIDERS,
        instances={"scheduler-2": {"agents": ["inn", "second"]}},
        courses=["claim recover", "claim completed cancel recover"],
    ),
    world("two-agents", *CHAIN, agents=ONE_PROVIDER, courses=["claim recover claim notTried"]),
    world("accepts", *CHAIN, agents=[agent(answerWithin=30, callsBack=True)], threshold=1),
    world(
        "forgets",
        step("a", onFailure="error", keeps=[]),
        step("b", "a", onFailure="error"),
        agents=[agent(keysLast=DAY, remembersRefusals=True)],
        threshold=1,
        courses=[
            "claim failed cancel claim completed",
            "claim recover claim recover settle claim | claim recover settle claim",
        ],
    ),
    world("late-effects", step("a", lateEffectWindow=30), step("b", "a"), threshold=1),
    world(
        "dated",
        step("a", condition="never"),
        step("b", "a", startAt="an-hour-later"),
        step("c"),
        submission={"notBefore": "2026-01-31T08:45:00Z"},
    ),
    world("told", *CHAIN, submission={"replyTo": "status-1", "priority": "high"}, threshold=1),
    world("refused-first", wait("w", onFailure="error"), step("b", "w"), threshold=1),
    world("refused-early", step("a"), wait("w", "a", condition="always"), step("b", "w")),
    world("not-needed", step("a"), wait("w", "a", condition="never"), step("b", "w")),
    world(
        "two-answers",
        wait("v", onFailure="continue", threshold=1),
        wait("w", threshold=1),
        step("b", "v", "w", uses=["v", "w"], mayLack=["v"]),
        submission={"notBefore": "2026-01-31T08:45:00Z", "replyTo": "status-1"},
    ),
    world(
        "no-way-back",
        step("a", undo=False, pivot=True),
        step("b", onFailure="error"),
        step("c", "a", "b", onFailure="continue"),
        threshold=1,
    ),
    world("broken", step("a"), step("b", "a", broken=True), step("c", condition="broken")),
    world("broken-start", step("a"), step("b", "a", startAt="broken", onFailure="continue")),
    world(
        "upgraded",
        *CHAIN,
        instances={
            "scheduler-2": {"workflows": [{"name": "upgraded", "version": 2, "steps": CHAIN}]},
            "scheduler-3": {"workflows": [{"name": "upgraded", "steps": CHANGED}]},
            "scheduler-4": {"workflows": [{"name": "another", "steps": CHAIN}]},
        },
    ),
)
