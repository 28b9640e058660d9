"""Reads for operators, and their actions: each is written to the state first, messages only wake (OPR-6)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core import agenda, keys
from core.errors import UnknownOrderError
from core.gathering import run_all
from core.orders import ProcessState
from core.ports import AlertLog, StateStore
from core.transitions import Transitions
from operators import rules
from operators.rules import OperatorRequest

log = logging.getLogger(__name__)

MOST_ALERTS = 200


@dataclass(frozen=True, kw_only=True)
class OperatorService:
    """What an operator sees and does."""

    transitions: Transitions
    store: StateStore
    alert_log: AlertLog
    buckets: int

    async def probe(self) -> None:
        """Ask the state store for next to nothing; raises `UnavailableError` when it is away."""
        await self.store.agenda(keys.buckets(1)[0], *agenda.all_of(agenda.Kind.ERROR), limit=1)

    async def list(self, state: ProcessState, limit: int, continuation: str | None) -> Mapping[str, Any]:
        """Return up to `limit` open orders of all buckets, oldest first; `continuation` is the last key seen."""
        start, end = agenda.all_of(rules.AGENDA_OF[state])
        start = max(start, f"{continuation} ") if continuation else start
        pages = await run_all(self.store.agenda(bucket, start, end, limit + 1) for bucket in keys.buckets(self.buckets))
        rows = sorted((row for page in pages for row in page), key=lambda row: row.key)
        more = {"continuation": rows[limit - 1].key} if len(rows) > limit else {}
        shown = [rules.listed(row) for row in rows[:limit] if row.data.get("ProcessState") == state]
        return {"orders": shown, **more}

    async def inspect(self, order_id: str) -> Mapping[str, Any]:
        """Return everything about one order, its whole history included; raises `UnknownOrderError`."""
        order = await self.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        return rules.full_view(order, await self.store.history(order_id))

    async def resubmit(self, order_id: str, request: OperatorRequest) -> None:
        """Let a failed order go on (OPR-3); raises `RefusedError` or `UnknownOrderError`."""
        await self.transitions.apply(order_id, lambda order, now: rules.resubmit(order, request, now))
        log.info("operators.resubmitted", extra={"order_id": order_id})

    async def alerts(self) -> Mapping[str, Any]:
        """Return the alerts that came through Event Grid, newest first."""
        return {"alerts": [rules.alert_view(alert) for alert in await self.alert_log.newest(MOST_ALERTS)]}
