"""A clock that stands still, and hosts whose clocks are off beside a store that says what time it is."""

from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from types import SimpleNamespace

from azure.core.pipeline import PipelineContext, PipelineRequest, PipelineResponse

from engine.azure.tables.store_clock import StoreClock
from tests.support.builders import NOW, TOLERANCE, seconds


class Clock:
    """The time, which stands still unless a test sets it forward."""

    now = NOW

    def __call__(self):
        return self.now


@dataclass
class Host:
    """A host beside that of the world; the store goes by the clock of the world."""

    world: object
    ahead: float = 0.0
    """How many seconds its clock is ahead of the store's, or behind if negative."""
    requests: int = 0
    """How often it asked the store only to compare the clocks."""
    check: StoreClock = field(init=False)

    def __post_init__(self):
        self.check = StoreClock(TOLERANCE, self.now, self.monotonic)

    def now(self):
        """What its clock shows."""
        return self.world.now + seconds(self.ahead)

    def monotonic(self):
        """How long it runs, in seconds."""
        return (self.world.now - NOW).total_seconds()

    def request(self, *, date=True):
        """Send a request to the store, and get an answer at once."""
        request = PipelineRequest(None, PipelineContext(None))
        self.check.before_request(request)
        headers = {"Date": format_datetime(self.world.now, usegmt=True)} if date else {}
        self.check.after_response(
            PipelineResponse(None, SimpleNamespace(headers=headers), request.context)
        )

    async def ask(self):
        """Ask the store for anything."""
        self.requests += 1
        self.request()

    async def skew(self):
        """How far its clock is off, as far as it can tell."""
        return await self.check.skew(self.ask)

    @property
    def parts(self):
        """The parts of the world, as this host has them."""
        return replace(self.world.parts, clock=self.now, clock_check=self.skew)
