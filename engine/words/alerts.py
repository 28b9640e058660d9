"""The words of alerts and notifications, made when they are sent (ALR-1, ALR-2).

Their rows in the outbox have causes, and codes for the recommended actions.
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

    A cause that only a newer version of the app can translate is sent unchanged (FLT-12).
    """
    fact = event.data.get("reason")
    if not is_cause(fact):
        return event
    cause = cause_in(fact)
    actions = [_action(name, cause.facts) for name in event.data.get("actions") or ()]
    reason = words_of(cause)[:MAX_OF_REASON]
    return replace(event, data={**event.data, "reason": reason, "actions": actions})


def _action(name: str, facts: Mapping[str, Any]) -> str:
    """Return the recommended action in words. The names of operators' actions stay."""
    try:
        return text(f"advice.{name}", **facts)
    except LookupError:
        # Programs use the names of operators' actions.
        return name


def notice_in_words(notice: BusMessage) -> BusMessage:
    """Return the notification with words in place of its cause."""
    body = json.loads(notice.body)
    cause = body.get("reason")
    if not is_cause(cause):
        return notice
    body["reason"] = words_of(cause_in(cause))
    return replace(notice, body=json.dumps(body, ensure_ascii=False))


def title_of(kind: str) -> str:
    """Return the title of this type of event, or the type itself if the catalogue has no title."""
    key = f"alert.{kind.rpartition('.')[2]}"
    return text(key) if key in texts() else kind


def advice_of(action: object) -> str:
    """Return the title of an operator's action, or any other action of an alert as it is."""
    key = f"action.{action}.title"
    return text(key) if key in texts() else str(action)
