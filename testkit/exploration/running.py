"""Lets the shipped services run in sequence and without logs, for the explorer."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from testkit.exploration.driving import one_after_another, settle_one_by_one
from testkit.exploration.violations import demand

SIDE_BY_SIDE = ("scheduler.service", "supervisor.service", "operations.alerts.relay")

Passing = Callable[[str], bool]


@contextmanager
def running(
    *, page: int = 1, may_pass_over: Passing = lambda _: False, records_silence: bool = False
) -> Iterator[None]:
    """Run concurrent work in sequence, and log nothing, within this context.

    A sweep takes `page` orders at a time. A scheduler may skip only orders whose ids
    `may_pass_over` accepts. With `records_silence`, a silent agent is recorded, and gets one probe
    request at a time.
    """

    def passes_over(message: str, *, extra: Mapping[str, Any]) -> None:
        """Replaces the log line about a skipped order."""
        demand(may_pass_over(extra["order_id"]), message)

    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    instead = {
        **{f"{module}.run_all": one_after_another for module in SIDE_BY_SIDE},
        "engine.storage.orders.settle_all": settle_one_by_one,
        "operations.alerts.relay.settle_all": settle_one_by_one,
        "scheduler.service.log.exception": passes_over,
        "bootstrap.engine.REQUESTS_PER_CALL": 1,
        **(ONE_PROBE if records_silence else NO_RECORD),
        "supervisor.service.PAGE": page,
    }
    with ExitStack() as patches:
        for name, stand_in in instead.items():
            patches.enter_context(patch(name, stand_in))
        try:
            yield
        finally:
            logging.disable(logged)


async def _records_nobody(*_: Any) -> None:
    """Replaces the record of silent agents, which does not affect orders here."""


NO_RECORD: Mapping[str, Any] = {"supervisor.silence.SilenceRecorder.record": _records_nobody}
ONE_PROBE: Mapping[str, Any] = {"scheduler.admission.admission.PROBE_REQUESTS": 1}
