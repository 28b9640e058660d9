"""Lists come page by page: whoever asks for the next one names the last key of the one before."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from core.agenda import AgendaRow
from core.errors import InvalidError
from stores.orders import OrderStore

Listed = TypeVar("Listed")


def cut(found: Sequence[Listed], limit: int, key: Callable[[Listed], str]) -> tuple[Sequence[Listed], str | None]:
    """Return one page of what was found, which is one more than that if there are more, and where the next begins."""
    return found[:limit], key(found[limit - 1]) if len(found) > limit else None


async def agenda_page(
    store: OrderStore, start: str, end: str, limit: int, continuation: str | None
) -> tuple[Sequence[AgendaRow], str | None]:
    """Return one page of what is owed in all buckets from `start` to `end`, oldest first, and where the next begins.

    Raises `InvalidError` if that page cannot have said so.
    """
    if continuation:
        if not start <= continuation < end:
            raise InvalidError(["continuation: expected what the page before said"])
        start = f"{continuation} "
    pages = await store.agendas(start, end, limit + 1)
    rows = sorted((row for page in pages for row in page), key=lambda row: row.key)
    return cut(rows, limit, lambda row: row.key)
