"""The words of alerts and notices, made when they are sent (ALR-1, ALR-2).

Their rows in the outbox hold causes, and codes for what operators should do.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.decisions.transitions import OperatorEvent
from engine.domain.causes import cause_in, is_cause
from engine.domain.messages import BusMessage
from engine.words.catalogue import text, texts
from engine.words.causes import words_of

MAX_OF_REASON = 1000
"""Maximum number of characters of an alert's reason."""


def event_in_words(event: OperatorEvent) -> OperatorEvent:
    """Return the event with words in place of its cause and of its codes.

    What only a newer version of the app can put into words goes out as it is (FLT-12).
    """
    fact = event.data.get("reason")
    if not is_cause(fact):
        return event
    cause = cause_in(fact)
    actions = [_action(name, cause.facts) for name in event.data.get("actions") or ()]
    reason = words_of(cause)[:MAX_OF_REASON]
    return replace(event, data={**event.data, "reason": reason, "actions": actions})


def _action(name: str, facts: Mapping[str, Any]) -> str:
    """Return what to do; the names of operators' actions stay, since programs use them."""
    try:
        return text(f"advice.{name}", **facts)
    except LookupError:
        return name


def notice_in_words(notice: BusMessage) -> BusMessage:
    """Return the notice with words in place of its cause."""
    body = json.loads(notice.body)
    cause = body.get("reason")
    if not is_cause(cause):
        return notice
    body["reason"] = words_of(cause_in(cause))
    return replace(notice, body=json.dumps(body, ensure_ascii=False))


def title_of(kind: str) -> str:
    """Return the title of this type of event; the type itself if it is another app's."""
    key = f"alert.{kind.rpartition('.')[2]}"
    return text(key) if key in texts() else kind


def advice_of(action: object) -> str:
    """Return an action of an alert as people read it: the title of one that operators can take."""
    key = f"action.{action}.title"
    return text(key) if key in texts() else str(action)
