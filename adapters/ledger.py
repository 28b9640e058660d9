"""The simulated services' ledger, in table `simulator`: one partition for each service.

Rows: `call|<order>|<id>`, `effect|<order>|<key>|<action>`, `fault|<key>`. An undo also writes the effect row of what it
undoes, marked as forbidden, if that never happened: so a call that comes later cannot take effect.
"""

import json
from collections.abc import Sequence

from adapters import tables
from adapters.clock import new_ulid
from adapters.rows import columns_of, entity
from adapters.tables import Operation, TableTransactions
from adapters.writes import json_text, key_part
from core.errors import ConflictError
from simulator.rules import Effect, Fault, FaultInForce

LAST = "~"


def _order_of(key: str) -> str:
    """Return the order that an idempotency key `<order>:<step>` speaks of."""
    return key_part(key.partition(":")[0])


class TableLedger:
    """`Ledger` on a table."""

    def __init__(self, table: TableTransactions) -> None:
        self._table = table

    async def count_call(self, service: str, key: str, action: str) -> None:
        """See `Ledger.count_call`."""
        row = entity(service, f"call|{_order_of(key)}|{new_ulid()}", {"Key": key, "Action": action})
        await self._table.submit(service, [tables.create(row)])

    async def effect(self, service: str, effect: Effect, *, forbids: str | None) -> Effect | None:
        """See `Ledger.effect`; a repetition is found by a read, since a write that conflicts holds up its group."""
        if (stored := await self._table.get(service, _effect_row(effect.key, effect.action))) is not None:
            return None if stored.get("Forbidden") else _effect(columns_of(stored))
        operations = [tables.create(entity(service, _effect_row(effect.key, effect.action), _columns(effect)))]
        if forbids:
            operations += await self._forbid(service, effect, forbids)
        try:
            await self._table.submit(service, operations)
        except ConflictError:
            return await self._standing(service, effect)
        return effect

    async def _forbid(self, service: str, effect: Effect, action: str) -> list[Operation]:
        """Return the write that keeps the action from happening later, unless it has happened already."""
        row = _effect_row(effect.key, action)
        if await self._table.get(service, row) is not None:
            return []
        return [tables.create(entity(service, row, {"Key": effect.key, "Action": action, "Forbidden": True}))]

    async def _standing(self, service: str, effect: Effect) -> Effect | None:
        stored = await self._table.get(service, _effect_row(effect.key, effect.action))
        if stored is None:  # the undone action took effect at this very moment: undo that
            return await self.effect(service, effect, forbids=None)
        return None if stored.get("Forbidden") else _effect(columns_of(stored))

    async def contents(self, service: str, order_id: str | None) -> tuple[int, Sequence[Effect]]:
        """See `Ledger.contents`."""
        part = f"{key_part(order_id)}|" if order_id else ""
        calls = await self._table.rows(service, f"call|{part}", f"call|{part}{LAST}")
        rows = await self._table.rows(service, f"effect|{part}", f"effect|{part}{LAST}")
        effects = [_effect(columns_of(row)) for row in rows if not row.get("Forbidden")]
        return len(calls), sorted(effects, key=lambda effect: effect.at)

    async def faults(self, service: str) -> Sequence[FaultInForce]:
        """See `Ledger.faults`."""
        rows = [columns_of(row) for row in await self._table.rows(service, "fault|", f"fault|{LAST}")]
        return [FaultInForce(fault=Fault.model_validate_json(row["Fault"]), until=row.get("Until")) for row in rows]

    async def set_fault(self, service: str, entry: FaultInForce) -> None:
        """See `Ledger.set_fault`."""
        columns = {"Fault": entry.fault.model_dump_json(by_alias=True, exclude_none=True), "Until": entry.until}
        await self._table.submit(service, [tables.put(entity(service, f"fault|{entry.fault.key()}", columns))])

    async def clear_faults(self, service: str, key: str | None) -> None:
        """See `Ledger.clear_faults`."""
        rows = await self._table.rows(service, f"fault|{key or ''}", f"fault|{key or ''}{LAST}")
        await tables.submit_each(self._table, service, [tables.delete(service, row["RowKey"]) for row in rows])


def _effect_row(key: str, action: str) -> str:
    return f"effect|{_order_of(key)}|{key_part(key)}|{action}"


def _columns(effect: Effect) -> dict[str, object]:
    return {
        "Key": effect.key,
        "Action": effect.action,
        "OrderID": effect.order_id,
        "At": effect.at,
        "Result": json_text(effect.result),
    }


def _effect(columns: dict[str, object]) -> Effect:
    return Effect(
        key=str(columns["Key"]),
        action=str(columns["Action"]),
        order_id=str(columns["OrderID"]),
        at=columns["At"],  # type: ignore[arg-type]  # a datetime, as `_columns` wrote it
        result=json.loads(str(columns["Result"])),
    )
