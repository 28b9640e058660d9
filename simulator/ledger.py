"""The simulated services' ledger, in table `simulator`: one partition for each service.

Rows: `call|<order>|<id>`, `effect|<order>|<key>|<action>`, `fault|<key>`. With its own effect row an undo writes that
of what it undoes, marked as forbidden: so a call that comes later is refused. What a row has as its effect happened; a
row without one is there only because it must not.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Sequence

from pydantic import TypeAdapter

from core.errors import ConflictError
from core.keys import key_part
from simulator.rules import Effect, FaultInForce
from stores.tables import Delete, Insert, Operation, Put, Replace, Stored, Table, columns_of

LAST = "~"
EFFECT = TypeAdapter(Effect)

MAX_CHARACTERS = 200
"""Of one part of a row key: three of them stay far below the 512 characters that Azure takes."""

MAX_TRIES = 4
"""Whatever happens meanwhile: what is undone appears, then another undo of it; one more shows how things stand."""


def _part(text: str) -> str:
    """Return the text as one part of a row key, shortened to a digest if it is too long."""
    part = key_part(text).replace("|", "=7c=")
    return (
        part
        if len(part) <= MAX_CHARACTERS
        else f"=sha256={hashlib.sha256(text.encode()).hexdigest()}"
    )


def _order_of(key: str) -> str:
    """Return the order that an idempotency key `<order>:<step>` speaks of."""
    return _part(key.partition(":")[0])


class Ledger:
    """What really happened, and which faults are in force; survives kills and spans hosts."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def count_call(self, service: str, key: str, action: str) -> None:
        """Record that a call arrived."""
        row = f"call|{_order_of(key)}|{secrets.token_hex(13)}"
        with contextlib.suppress(
            ConflictError
        ):  # nobody else writes this row: an earlier try did, its answer was lost
            await self._table.submit(service, [Insert(row, {"Key": key, "Action": action})])

    async def effect(self, service: str, effect: Effect, *, forbids: str | None) -> Effect | None:
        """Let the effect happen unless it did before; return the one that stands.

        `forbids` names the action that is refused under this key from now on, whether or not it has happened. None is
        returned, and nothing happens, if this effect's own action was forbidden before. A conflict means that it is a
        repetition, or that what it forbids has changed since it was read, which can happen but a few times.
        """
        row = _effect_row(effect.key, effect.action)
        for tries_left in reversed(range(MAX_TRIES)):
            operations: list[Operation] = [
                Insert(row, {"Effect": EFFECT.dump_json(effect).decode()})
            ]
            if forbids:
                operations.append(await self._forbid(service, effect.key, forbids))
            try:
                await self._table.submit(service, operations)
                break
            except ConflictError:
                if (stored := await self._table.get(service, row)) is not None:
                    return None if stored.row.get("Forbidden") else _effect(stored)
                if not tries_left:
                    raise
        return effect

    async def _forbid(self, service: str, key: str, action: str) -> Operation:
        """Return the write that makes the action refused from now on, whether it has happened or not."""
        row = _effect_row(key, action)
        if (stored := await self._table.get(service, row)) is not None:
            return Replace(row, columns_of(stored) | {"Forbidden": True}, stored.etag)
        return Insert(row, {"Forbidden": True})

    async def contents(self, service: str, order_id: str | None) -> tuple[int, Sequence[Effect]]:
        """Return the number of calls, and the effects, oldest first; of one order if it is named.

        Which order that is, the idempotency key `<order>:<step>` says.
        """
        part = f"{_part(order_id)}|" if order_id else ""
        calls = await self._table.rows(service, f"call|{part}", f"call|{part}{LAST}")
        rows = await self._table.rows(service, f"effect|{part}", f"effect|{part}{LAST}")
        effects = [_effect(row) for row in rows if "Effect" in row.row]
        return len(calls), sorted(effects, key=lambda effect: effect.at)

    async def faults(self, service: str) -> Sequence[FaultInForce]:
        """Return the faults that were set."""
        rows = await self._table.rows(service, "fault|", f"fault|{LAST}")
        return [FaultInForce.model_validate_json(columns_of(row)["Fault"]) for row in rows]

    async def set_fault(self, service: str, fault: FaultInForce) -> None:
        """Put a fault in force, in place of the one that meets the same calls."""
        columns = {"Fault": fault.model_dump_json(by_alias=True, exclude_none=True)}
        await self._table.submit(service, [Put(f"fault|{fault.key()}", columns)])

    async def clear_faults(self, service: str, key: str | None) -> None:
        """Lift one fault, or all."""
        rows = await self._table.rows(service, f"fault|{key or ''}", f"fault|{key or ''}{LAST}")
        await self._table.submit_each(service, [Delete(row.key) for row in rows])


def _effect_row(key: str, action: str) -> str:
    return f"effect|{_order_of(key)}|{_part(key)}|{action}"


def _effect(stored: Stored) -> Effect:
    return EFFECT.validate_json(columns_of(stored)["Effect"])
