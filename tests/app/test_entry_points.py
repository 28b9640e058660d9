"""What is nearly JSON, or nearly a time, is refused wherever it enters, and what is one is kept."""

import json
from itertools import product
from pathlib import Path
from time import tzset

import click
import pytest

from engine.domain.errors import InvalidError
from operations.cli.terminal import IN_UTC
from tests.support.entry_points import ENTRY_POINTS, OF_ORDERS, REFUSALS, TIME_ENTRY_POINTS

TABLES = Path("tests/data/inputs")
FORMS = json.loads((TABLES / "json_forms.json").read_text())
TIMES = json.loads((TABLES / "times.json").read_text())
HALF = "half an emoji"


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("form", FORMS["kept"])
def test_an_object_is_kept_however_it_is_written(name, form):
    """Bugs2 44, 61: a form that the standard allows changes nothing."""
    text = FORMS["kept"][form]
    assert json.loads(ENTRY_POINTS[name](text)) == json.loads(text)


# In the answer of a service it is replaced: test_answers.py.
REFUSED = sorted({*product(ENTRY_POINTS, FORMS["refused"])} - {("answer of a service", HALF)})


@pytest.mark.parametrize(("name", "form"), REFUSED)
def test_what_is_nearly_an_object_is_refused(name, form):
    """Bugs2 44, 61: nobody guesses what was meant."""
    with pytest.raises(REFUSALS):
        ENTRY_POINTS[name](FORMS["refused"][form])


@pytest.mark.parametrize("name", TIME_ENTRY_POINTS)
@pytest.mark.parametrize("time", TIMES["accepted"])
def test_a_time_is_taken_as_it_is_meant(name, time):
    entry = TIME_ENTRY_POINTS[name]
    assert entry(time) == entry(TIMES["accepted"][time])


def codes_of(error):
    return {fault.code for fault in error.value.faults}


@pytest.mark.parametrize("name", TIME_ENTRY_POINTS)
@pytest.mark.parametrize(("time", "code"), TIMES["rejected"].items())
def test_a_time_that_is_nearly_right_is_rejected(name, time, code):
    """Bugs 24: a `+` that a query made a blank is named; a number of seconds is no time.

    At the command line a time without a zone is one of the person who types it.
    """
    entry = TIME_ENTRY_POINTS[name]
    if name == "command line" and time in TIMES["local"]:
        assert entry(time).astimezone().date().isoformat() == "2026-12-01"
        return
    with pytest.raises(InvalidError) as error:
        entry(time)
    assert codes_of(error) == {code}


@pytest.mark.parametrize("name", OF_ORDERS)
@pytest.mark.parametrize(("time", "code"), TIMES["out_of_years"].items())
def test_no_order_begins_at_a_time_that_nobody_can_mean(name, time, code):
    with pytest.raises(InvalidError) as error:
        TIME_ENTRY_POINTS[name](time)
    assert codes_of(error) == {code}


@pytest.mark.parametrize("name", ["submission", "pause of an agent", "copy"])
@pytest.mark.parametrize(("time", "code"), TIMES["rejected_in_json"].items())
def test_a_json_number_is_no_time(name, time, code):
    """Bugs 24."""
    with pytest.raises(InvalidError) as error:
        TIME_ENTRY_POINTS[name](json.loads(time))
    assert codes_of(error) == {code}


@pytest.mark.parametrize(
    ("zone", "time"),
    [("Europe/Berlin", "2026-03-29T02:30"), ("Australia/Lord_Howe", "2026-10-04T02:15")],
)
def test_a_local_time_that_the_clocks_skip_is_refused(zone, time, monkeypatch):
    """It was taken for the time an hour later."""
    monkeypatch.setenv("TZ", zone)
    tzset()
    try:
        with click.Context(click.Command("pause")) as context:
            context.meta[IN_UTC] = False
            with pytest.raises(click.BadParameter):
                TIME_ENTRY_POINTS["command line"](time)
    finally:
        monkeypatch.undo()
        tzset()
