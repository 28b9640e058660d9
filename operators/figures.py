"""How many orders ended in each minute of the last hour, and how long their steps took."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.ports import Clock
from operators.views import View
from stores.figures import Figures, FiguresLog, minute_of

SHOWN = timedelta(hours=1)

MAX_STEPS = 20
"""Of more steps, those are shown that were completed most often."""


class LastHour(View):
    """The last hour, up to the end of the last full minute."""

    since: datetime
    until: datetime
    minutes: list[Figures]
    """Those in which anything ended, in order."""


@dataclass(frozen=True, kw_only=True)
class FiguresService:
    """Puts together what the processes counted."""

    kept: FiguresLog
    clock: Clock

    async def last_hour(self) -> LastHour:
        """Show what ended in each minute of the last hour, and how long steps took; raises `UnavailableError`."""
        until = minute_of(self.clock())
        minutes: dict[datetime, Figures] = {}
        for each in await self.kept.between(until - SHOWN, until):
            minutes[each.at] = minutes.get(each.at, Figures(at=each.at)).plus(each)
        in_order = _of_few_steps([minutes[at] for at in sorted(minutes)])
        return LastHour(since=until - SHOWN, until=until, minutes=in_order)


def _of_few_steps(minutes: list[Figures]) -> list[Figures]:
    completed = Counter[str]()
    for each in minutes:
        completed.update({name: took.count for name, took in each.steps.items()})
    few = {name for name, _ in completed.most_common(MAX_STEPS)}
    return [replace(each, steps={name: each.steps[name] for name in each.steps if name in few}) for each in minutes]
