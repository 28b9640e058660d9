"""Stores what a service remembers of idempotency keys, in memory or in a SQLite file."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RememberedAnswer:
    """An answer over HTTP."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """The other headers, in their order."""
    replayed: bool = False
    """Whether the answer was remembered."""


@dataclass(frozen=True, kw_only=True)
class RememberedCall:
    """A call with a key, either running or answered."""

    path: str
    fingerprint: str
    token: str
    """Distinguishes this call from others with the same key."""
    since: datetime
    answer: RememberedAnswer | None = None
    """None while the call is running."""


@dataclass(frozen=True, kw_only=True)
class RememberedKey:
    """Everything that is remembered of one key."""

    calls: Mapping[str, RememberedCall] = field(default_factory=dict)
    """The calls by path, so that an undo may have the key of the call that it undoes."""
    undone: frozenset[str] = frozenset()
    """The paths that are refused from now on."""


NOTHING_KNOWN = RememberedKey()

Change = Callable[[RememberedKey], tuple[RememberedKey, T]]
"""Returns the new state of the key, and a result."""


class KeyStore(Protocol):
    """The store of the keys, with one row for each key."""

    async def update(self, key: str, change: Change[T]) -> T:
        """Read a key, change it and write it, without another update in between.

        `change` may be called several times. Returns its last result.
        """

    async def forget(self, before: datetime) -> int:
        """Remove the keys that were last changed before this time. Return their number."""


class MemoryKeys:
    """`KeyStore` in memory. Use it only for tests, because a restart forgets everything."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._keys: dict[str, tuple[datetime, RememberedKey]] = {}

    async def update(self, key: str, change: Change[T]) -> T:
        """See `KeyStore.update`."""
        _, known = self._keys.get(key, (None, NOTHING_KNOWN))
        changed, result = change(known)
        self._keys[key] = self._clock(), changed
        return result

    async def forget(self, before: datetime) -> int:
        old = [key for key, (at, _) in self._keys.items() if at < before]
        for key in old:
            del self._keys[key]
        return len(old)


class SqliteKeys:
    """`KeyStore` in a file that several processes of one machine may share."""

    def __init__(
        self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path = path
        self._clock = clock
        with closing(self._connect()) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS keys"
                " (key TEXT PRIMARY KEY, changed REAL NOT NULL, record TEXT NOT NULL)"
            )

    async def update(self, key: str, change: Change[T]) -> T:
        """See `KeyStore.update`."""
        return await asyncio.to_thread(self._update, key, change)

    async def forget(self, before: datetime) -> int:
        return await asyncio.to_thread(self._forget, before)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30, isolation_level=None)

    def _update(self, key: str, change: Change[T]) -> T:
        with closing(self._connect()) as database:
            database.execute("BEGIN IMMEDIATE")  # nobody else writes until the commit
            row = database.execute("SELECT record FROM keys WHERE key = ?", (key,)).fetchone()
            changed, result = change(_read(row[0]) if row else NOTHING_KNOWN)
            database.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)",
                (key, self._clock().timestamp(), _written(changed)),
            )
            database.execute("COMMIT")
            return result

    def _forget(self, before: datetime) -> int:
        with closing(self._connect()) as database:
            old = (before.timestamp(),)
            return database.execute("DELETE FROM keys WHERE changed < ?", old).rowcount


def _written(key: RememberedKey) -> str:
    return json.dumps(
        {"calls": [_of_call(call) for call in key.calls.values()], "undone": sorted(key.undone)}
    )


def _of_call(call: RememberedCall) -> dict[str, Any]:
    answer = None
    if call.answer:
        body = base64.b64encode(call.answer.body).decode()
        answer = [call.answer.status, call.answer.content_type, body]
    return {
        "path": call.path,
        "fingerprint": call.fingerprint,
        "token": call.token,
        "since": call.since.isoformat(),
        "answer": answer,
        "headers": call.answer.headers if call.answer else (),
    }


def _read(text: str) -> RememberedKey:
    record = json.loads(text)
    calls = [_call(call) for call in record["calls"]]
    return RememberedKey(
        calls={call.path: call for call in calls}, undone=frozenset(record["undone"])
    )


def _call(record: Mapping[str, Any]) -> RememberedCall:
    answer = None
    if record["answer"]:
        status, content_type, body = record["answer"]
        answer = RememberedAnswer(
            status=status,
            content_type=content_type,
            body=base64.b64decode(body),
            # A record of an earlier copy of this file has none.
            headers=tuple((name, value) for name, value in record.get("headers", ())),
        )
    return RememberedCall(
        path=record["path"],
        fingerprint=record["fingerprint"],
        token=record["token"],
        since=datetime.fromisoformat(record["since"]),
        answer=answer,
    )
