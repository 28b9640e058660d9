"""The simulated services' ledger, in table `simulator`: one partition for each service.

Rows: `call|<order>|<id>`, `effect|<order>|<key>|<action>`, `fault|<key>`. An undo writes its own
effect row, and marks the row of the undone action as forbidden, so that a later call is refused. An
effect row with an effect means that it happened; one without an effect only forbids it.
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
"""Maximum length of one part of a row key: three parts stay far below Azure's 512 characters."""

MAX_TRIES = 4
"""Enough tries: the undone action may appear, then another undo of it; one more finds the rest."""


def _part(text: str) -> str:
    """Return the text as one part of a row key, or its digest if it is too long."""
    part = key_part(text).replace("|", "=7c=")
    if len(part) <= MAX_CHARACTERS:
        return part
    return f"=sha256={hashlib.sha256(text.encode()).hexdigest()}"


def _order_of(key: str) -> str:
    """Return the row-key part for the order in an idempotency key `<order>:<step>`."""
    return _part(key.partition(":")[0])


class Ledger:
    """The effects that happened and the faults in force, in a table that all hosts share."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def count_call(self, service: str, key: str, action: str) -> None:
        """Record that a call arrived."""
        row = f"call|{_order_of(key)}|{secrets.token_hex(13)}"
        # The row's id is unique: after a conflict, an earlier try wrote it and its answer was lost.
        with contextlib.suppress(ConflictError):
            await self._table.submit(service, [Insert(row, {"Key": key, "Action": action})])

    async def calls_of(self, service: str, key: str) -> int:
        """Return how many calls of this key arrived."""
        part = f"call|{_order_of(key)}|"
        rows = await self._table.rows(service, part, f"{part}{LAST}")
        return sum(columns_of(row)["Key"] == key for row in rows)

    async def effect(self, service: str, effect: Effect, *, forbids: str | None) -> Effect | None:
        """Let the effect happen unless it did before; return the one that stands.

        `forbids` names the action that is refused under this key from now on, whether or not it has
        happened. Return None, without an effect, if this effect's own action was forbidden before.
        A conflict means that the call is a repetition, or that the forbidden action's row has
        changed since it was read; the latter can happen only a few times.
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
        """Return the write by which the action is refused from now on, even if it has happened."""
        row = _effect_row(key, action)
        if (stored := await self._table.get(service, row)) is not None:
            return Replace(row, columns_of(stored) | {"Forbidden": True}, stored.etag)
        return Insert(row, {"Forbidden": True})

    async def contents(self, service: str, order_id: str | None) -> tuple[int, Sequence[Effect]]:
        """Return the number of calls and the effects, oldest first, of all orders or of one.

        The order of a call is that of its idempotency key `<order>:<step>`.
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
        """Put a fault in force, in place of one for the same calls."""
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
