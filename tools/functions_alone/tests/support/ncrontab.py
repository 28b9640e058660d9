"""What Azure's parser makes of schedules and time spans: the rows of `tests/data/azure_host/ncrontab.tsv`."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from functions_alone.host.timer import Schedule

FILE = Path(__file__).parents[4] / "tests/data/azure_host/ncrontab.tsv"
START = datetime(2026, 1, 2, tzinfo=UTC)
"""The occurrences of the table are those after this time."""
CRON, SPAN, REFUSED = "cron", "span", "refused"


@dataclass(frozen=True)
class Row:
    """A text and what Azure makes of it."""

    text: str
    kind: str
    read: str

    @property
    def occurrences(self) -> list[datetime]:
        """The next four; fewer if it comes no more."""
        return [datetime.fromisoformat(f"{time}+00:00") for time in self.read.split(",")]

    @property
    def seconds(self) -> float:
        """Of a time span."""
        return float(self.read)

    def is_read_alike(self, schedule: Schedule) -> bool:
        """Compare the next four occurrences; of a time span the first."""
        if self.kind == SPAN:
            return schedule(START) == START + timedelta(seconds=self.seconds)
        return self.kind == CRON and occurrences(schedule, 4) == self.occurrences


def occurrences(schedule: Schedule, count: int) -> list[datetime]:
    """Return the next occurrences."""
    found = [START]
    for _ in range(count):
        found.append(schedule(found[-1]))
    return found[1:]


def _row(line: str) -> Row:
    text, kind, read = line.split("\t")
    return Row(json.loads(text), kind, read)


ROWS = [_row(line) for line in FILE.read_text().splitlines() if not line.startswith("#")]
