"""What triggers do while something is away."""

import logging
from unittest.mock import patch

import pytest

from engine.domain.errors import UnavailableError
from engine.runtime.functions import LASTS_SECONDS, retry_while_unavailable, skip_overlapping_runs


@pytest.mark.proves("FLT-7", "FLT-8")
async def test_a_handler_waits_through_an_outage_and_says_so_once(caplog):
    """The work is repeated until it succeeds; the log has a line for the beginning and the end."""
    failures = [UnavailableError("store away"), UnavailableError("store away")]

    async def work():
        if failures:
            raise failures.pop()
        return "done"

    caplog.set_level(logging.WARNING)
    assert await retry_while_unavailable("f", lambda: work()) == "done"  # noqa: PLW0108 - as triggers call it
    assert [record.message for record in caplog.records] == ["outage.began", "outage.ended"]


async def test_other_errors_are_not_waited_for():
    """A bug is not an outage: it surfaces at once."""

    async def work():
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await retry_while_unavailable("f", work)


async def run(function, error=None):
    """A periodic run of the function, which meets this."""

    async def work():
        if error:
            raise error

    await skip_overlapping_runs(function, work)


async def test_a_periodic_run_that_meets_an_outage_leaves_it_to_the_next():
    """The timer's function ends quietly, even when several orders met the outage; bugs surface."""
    await run("f", ExceptionGroup("2 of 5 failed", [UnavailableError("a"), UnavailableError("b")]))
    with pytest.raises(ExceptionGroup):
        await run("f", ExceptionGroup("2 of 5 failed", [UnavailableError("a"), KeyError("b")]))


@pytest.mark.proves("FLT-11")
async def test_every_function_has_outages_of_its_own(caplog):
    """One part may be away while others work: the log has one line for it, not two each run."""
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        await run("relay", UnavailableError("Event Grid away"))
        await run("poll")
    await run("relay")
    lines = [(record.message, record.function) for record in caplog.records]
    assert lines == [("outage.began", "relay"), ("outage.ended", "relay")]


@pytest.mark.proves("FLT-7")
async def test_a_handler_gives_its_message_back_before_somebody_else_gets_it():
    """A lock does not last longer than its patience."""
    failures = [UnavailableError("store away")]

    async def work():
        if failures:
            raise failures.pop()

    with patch("engine.runtime.functions.PATIENCE_SECONDS", 0), pytest.raises(UnavailableError):
        await retry_while_unavailable("f", work)


async def test_a_bug_among_outages_is_not_waited_for():
    """Of several orders one met an outage, and another a bug, which would only come again."""
    tries = []

    async def work():
        tries.append(1)
        if len(tries) == 1:
            raise ExceptionGroup("2 of 5 failed", [UnavailableError("a"), KeyError("b")])

    with pytest.raises(ExceptionGroup):
        await retry_while_unavailable("f", work)


async def test_an_outage_that_lasts_is_logged_as_an_error_until_it_is_over(caplog):
    """Once in a while: an alert counts these lines, and nobody reads the others in time."""
    caplog.set_level(logging.WARNING)
    with patch("engine.runtime.functions.time") as clock:
        lasts = LASTS_SECONDS
        for clock.monotonic.return_value in (0, 10, lasts, lasts + 10, 2 * lasts):
            await run("lasting", UnavailableError("store away"))
        await run("lasting")
    assert [f"{line.levelname} {line.message}" for line in caplog.records] == [
        "WARNING outage.began",
        *["ERROR outage.lasts"] * 2,
        "WARNING outage.ended",
    ]
