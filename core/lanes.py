"""The pending orders of a bucket, without those that wait behind many others of their kind."""

from core import agenda
from core.agenda import AgendaRow, Kind
from core.ports import StateStore

PAGE = 100
"""How many are read at once."""


async def first_of_each_lane(store: StateStore, bucket: str) -> list[AgendaRow]:
    """Return at least the first pending orders of each priority and need, however many wait in the other lanes."""
    start, end = agenda.all_of(Kind.PENDING)
    found: list[AgendaRow] = []
    while rows := await store.agenda(bucket, start, end, PAGE):
        found += rows
        if len(rows) < PAGE:
            break
        start = agenda.end_of_lane(rows[-1])
    return found
