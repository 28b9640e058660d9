"""The pending orders of a bucket, without those that wait behind many others of their kind."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from core import agenda
from core.agenda import AgendaRow, Kind
from stores.orders import OrderStore

T = TypeVar("T")

PAGE = 100
"""How many are read at once, and how many of a lane are enough."""

LONG_PAGE = 1000
"""How many are read at once past orders that are not chosen: as many as a request returns."""


async def first_of_each_claim_lane(
    store: OrderStore, bucket: str, due: datetime, choose: Callable[[AgendaRow], T | None]
) -> list[T]:
    """Return what is chosen of the first pending orders of each priority and need, however many wait in other lanes.

    A lane is read on while too little of it was chosen, for as long as its orders may be claimed by `due`: however
    many those are that are not chosen, they hide nobody.
    """
    start, end = agenda.all_of(Kind.PENDING)
    chosen: list[T] = []
    count: Counter[str] = Counter()
    size = PAGE
    while rows := await store.agenda(bucket, start, end, size):
        for row in rows:
            if (choice := choose(row)) is not None:
                chosen.append(choice)
                count[agenda.end_of_claim_lane(row)] += 1
        if len(rows) < size:
            break
        last, claim_lane = rows[-1], agenda.end_of_claim_lane(rows[-1])
        goes_on = agenda.may_be_claimed(last, due) and count[claim_lane] < PAGE
        beyond = f"{last.key} "
        start, size = (beyond, LONG_PAGE) if goes_on else (max(claim_lane, beyond), PAGE)
    return chosen
