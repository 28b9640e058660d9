"""The ledger of the simulated services, in table `simulator`: one partition for each service.

The row keys are `call|<order>|<id>`, `effect|<order>|<key>|<action>`, `fault|<key>` and
`accepted|<order>|<key>|<action>`.

An effect row that contains an effect means that the effect happened. Otherwise the row only forbids
the effect, or holds the refusal that is repeated for the key. An undo writes its own effect row,
and marks the row of the undone action as forbidden, so that a later call is refused. If a key is
forgotten, its effect row is renamed, so that the next call has an effect again. An `accepted` row
holds deferred work.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime

from pydantic import TypeAdapter

from engine.domain.errors import ConflictError
from engine.domain.keys import key_part
from engine.storage.tables import Delete, Insert, Operation, Put, Replace, Stored, Table, columns_of
from samples.simulator.rules import FaultInForce, Refusal, SimulatedEffect

LAST = "~"
EFFECT = TypeAdapter(SimulatedEffect)
REFUSAL = TypeAdapter(Refusal)

MAX_CHARACTERS = 200
"""The longest part of a row key. Three parts stay far below Azure's limit of 512 characters."""

MAX_TRIES = 4
"""The attempts to write an effect.

The undone action may appear meanwhile, and then another undo of it. One more attempt finds the
rest.
"""


def _part(text: str) -> str:
    """Return the text as a part of a row key, or its digest if it is too long."""
    part = key_part(text).replace("|", "=7c=")
    if len(part) <= MAX_CHARACTERS:
        return part
    return f"=sha256={hashlib.sha256(text.encode()).hexdigest()}"


def _order_of(key: str) -> str:
    """Return the part of row keys for the order in a key `<order>:<step>`."""
    return _part(key.partition(":")[0])


class Ledger:
    """The effects that happened and the faults in force, in a table that all hosts share."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def count_call(self, service: str, key: str, action: str) -> None:
        row = f"call|{_order_of(key)}|{secrets.token_hex(13)}"
        # The row's id is unique: after a conflict, an earlier try wrote it and its answer was lost.
        with contextlib.suppress(ConflictError):
            await self._table.submit(service, [Insert(row, {"Key": key, "Action": action})])

    async def calls_of(self, service: str, key: str) -> int:
        """Return how many calls with this key arrived."""
        part = f"call|{_order_of(key)}|"
        rows = await self._table.rows(service, part, f"{part}{LAST}")
        return sum(columns_of(row)["Key"] == key for row in rows)

    async def effect(
        self, service: str, effect: SimulatedEffect, *, forbids: str | None
    ) -> SimulatedEffect | None:
        """Let the effect happen unless it already did, and return the effect that counts.

        `forbids` names an action that is refused under this key from now on, even if it has already
        happened. Returns None, without an effect, if the action of this effect was forbidden
        before.
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
            # The call is a repetition, or the forbidden action's row has changed since it was read.
            # The latter can happen only a few times.
            except ConflictError:
                if (stored := await self._table.get(service, row)) is not None:
                    return None if stored.row.get("Forbidden") else _effect(stored)
                if not tries_left:
                    raise
        return effect

    async def _forbid(self, service: str, key: str, action: str) -> Operation:
        """Return the write that refuses the action from now on, even if it has already happened."""
        row = _effect_row(key, action)
        if (stored := await self._table.get(service, row)) is not None:
            return Replace(row, columns_of(stored) | {"Forbidden": True}, stored.etag)
        return Insert(row, {"Forbidden": True})

    async def refuse(self, service: str, key: str, action: str, refusal: Refusal) -> None:
        """Refuse the action under this key from now on, unless the key already has an answer."""
        columns = {"Forbidden": True, "Refusal": REFUSAL.dump_json(refusal).decode()}
        with contextlib.suppress(ConflictError):
            await self._table.submit(service, [Insert(_effect_row(key, action), columns)])

    async def refusal(self, service: str, key: str, action: str) -> Refusal | None:
        """Return the refusal that is repeated for this key, or None."""
        stored = await self._table.get(service, _effect_row(key, action))
        found = stored and columns_of(stored).get("Refusal")
        return REFUSAL.validate_json(found) if found else None

    async def accept(self, service: str, key: str, action: str, now: datetime) -> datetime:
        """Accept an action for later, and return when it was first accepted."""
        row = f"accepted|{_order_of(key)}|{_part(key)}|{action}"
        with contextlib.suppress(ConflictError):
            await self._table.submit(service, [Insert(row, {"At": now.isoformat()})])
            return now
        stored = await self._table.get(service, row)
        return datetime.fromisoformat(columns_of(stored)["At"]) if stored else now

    async def forget(self, service: str, key: str, action: str, before: datetime) -> None:
        """Forget the answer that was given under this key, if it is older than this time.

        The effect stays in the ledger, and the next call with the key has another one.
        """
        row = _effect_row(key, action)
        stored = await self._table.get(service, row)
        if stored is None or not _is_from_before(stored, before):
            return
        renamed = Insert(f"{row}|{secrets.token_hex(13)}", columns_of(stored))
        with contextlib.suppress(ConflictError):  # another call has forgotten it meanwhile
            await self._table.submit(service, [renamed, Delete(row)])

    async def contents(
        self, service: str, order_id: str | None
    ) -> tuple[int, Sequence[SimulatedEffect]]:
        """Return the number of calls and the effects, oldest first, of all orders or of one order.

        The order of a call comes from its idempotency key, `<order>:<step>`.
        """
        part = f"{_part(order_id)}|" if order_id else ""
        calls = await self._table.rows(service, f"call|{part}", f"call|{part}{LAST}")
        rows = await self._table.rows(service, f"effect|{part}", f"effect|{part}{LAST}")
        effects = [_effect(row) for row in rows if "Effect" in row.row]
        return len(calls), sorted(effects, key=lambda effect: effect.at)

    async def faults(self, service: str) -> Sequence[FaultInForce]:
        """Return the faults that were set, including expired ones."""
        rows = await self._table.rows(service, "fault|", f"fault|{LAST}")
        return [FaultInForce.model_validate_json(columns_of(row)["Fault"]) for row in rows]

    async def set_fault(self, service: str, fault: FaultInForce) -> None:
        """Set a fault. It replaces a fault for the same calls."""
        columns = {"Fault": fault.model_dump_json(by_alias=True, exclude_none=True)}
        await self._table.submit(service, [Put(f"fault|{fault.key()}", columns)])

    async def clear_faults(self, service: str, key: str | None) -> None:
        """Remove one fault, or all faults."""
        rows = await self._table.rows(service, f"fault|{key or ''}", f"fault|{key or ''}{LAST}")
        await self._table.submit_separately(service, [Delete(row.key) for row in rows])


def _effect_row(key: str, action: str) -> str:
    return f"effect|{_order_of(key)}|{_part(key)}|{action}"


def _effect(stored: Stored) -> SimulatedEffect:
    return EFFECT.validate_json(columns_of(stored)["Effect"])


def _is_from_before(stored: Stored, time: datetime) -> bool:
    """Whether the answer was given before this time. A row that only forbids has no answer."""
    columns = columns_of(stored)
    if "Effect" in columns:
        return _effect(stored).at < time
    return "Refusal" in columns and REFUSAL.validate_json(columns["Refusal"]).at < time
