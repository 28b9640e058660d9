"""The app takes only schedules and time spans that Azure's host and the embedded one read alike."""

import pytest
from pydantic import BaseModel

from development.settings import app_settings
from engine.azure.schedules import schedule_faults, span_faults
from engine.azure.settings import SCHEDULES, Settings, SettingsError
from engine.declarations.faults import Fault, FaultCode
from functions_alone.host.host_json import HostJson, seconds_of
from functions_alone.host.index import index_functions
from functions_alone.host.settings import AppSettings
from functions_alone.host.timer import parse_schedule
from functions_alone.ports import Ports
from functions_alone.tests.support.ncrontab import ROWS, SPAN
from shop.business import SHOP
from testkit.memory import in_memory
from tests.support.apps import bootstrap, functions

SETTING = "SUPERVISOR_SCHEDULE"
INTERVAL = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
OF_FIELDS = {
    FaultCode.SCHEDULE_TIME_SPAN,
    FaultCode.SCHEDULE_NOT_SIX_FIELDS,
    FaultCode.SCHEDULE_FIELD_INVALID,
    FaultCode.SCHEDULE_BOTH_DAYS,
    FaultCode.SCHEDULE_NEVER,
}


@pytest.fixture
def settings(monkeypatch):
    """The app's settings, in the environment."""
    values = app_settings(Ports(), "key", "key", SHOP.agents)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


def test_a_schedule_is_rejected_or_read_alike_everywhere():
    """No text of Azure's table is taken and then runs at other times than in Azure (ncrontab.tsv)."""
    for row in ROWS:
        faults = list(schedule_faults(SETTING, row.text))
        if faults:
            assert {fault.place for fault in faults} == {SETTING}, row.text
            assert {fault.code for fault in faults} <= OF_FIELDS, row.text
        else:
            assert row.is_read_alike(parse_schedule(row.text)), row.text


def test_a_time_span_is_rejected_or_read_alike_everywhere():
    """A setting that replaces a time of host.json lasts as long here as in Azure (webjobs.md 15)."""
    for row in ROWS:
        faults = list(span_faults({INTERVAL: row.text}))
        if faults:
            assert faults == [Fault(FaultCode.TIME_SPAN_INVALID, INTERVAL, value=row.text)]
        else:
            assert (row.kind, row.seconds) == (SPAN, seconds_of(row.text)), row.text


@pytest.mark.parametrize(
    "text",
    [
        "*/15 * * * * *",
        "0 */5 * * * *",
        "0 0-30/10 8-17 * * mon-FRI",
        "0 0 9 1,15 JAN-mar *",
        "0 0 0 29 2 *",
        "0 0 0 */2 * 1-5",
        " 0  0 0 31 * * ",
    ],
)
def test_usual_schedules_are_taken(text):
    """A check that rejects everything would pass the table."""
    assert list(schedule_faults(SETTING, text)) == []


def of_field(field, value, least, most):
    """The fault of one field."""
    facts = {"field": field, "value": value, "least": least, "most": most}
    return Fault(FaultCode.SCHEDULE_FIELD_INVALID, SETTING, **facts)


def of_days(day_of_month, day_of_week):
    """The fault of a schedule that limits both."""
    facts = {"day_of_month": day_of_month, "day_of_week": day_of_week}
    return Fault(FaultCode.SCHEDULE_BOTH_DAYS, SETTING, **facts)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("00:00:30", [Fault(FaultCode.SCHEDULE_TIME_SPAN, SETTING, value="00:00:30")]),
        ("30", [Fault(FaultCode.SCHEDULE_TIME_SPAN, SETTING, value="30")]),
        (
            "*/5 * * * *",
            [Fault(FaultCode.SCHEDULE_NOT_SIX_FIELDS, SETTING, value="*/5 * * * *", fields=5)],
        ),
        (
            "@daily",
            [Fault(FaultCode.SCHEDULE_NOT_SIX_FIELDS, SETTING, value="@daily", fields=1)],
        ),
        ("0 0 9 * * FRI-MON", [of_field("day of week", "FRI-MON", 0, 6)]),
        ("0 0 9 * * MON-5", [of_field("day of week", "MON-5", 0, 6)]),
        ("0 0 9 * * 7", [of_field("day of week", "7", 0, 6)]),
        ("0 0 9 * * 1/2", [of_field("day of week", "1/2", 0, 6)]),
        ("0 0 9 * * 1-1/5", [of_field("day of week", "1-1/5", 0, 6)]),
        ("0 0 9 * MON *", [of_field("month", "MON", 1, 12)]),
        ("60 */0 9 * * *", [of_field("second", "60", 0, 59), of_field("minute", "*/0", 0, 59)]),
        ("0 0 24 1 * MON", [of_field("hour", "24", 0, 23), of_days("1", "MON")]),
        ("0 0 12 1-7 * MON", [of_days("1-7", "MON")]),
        (
            "0 0 0 30,31 2 *",
            [Fault(FaultCode.SCHEDULE_NEVER, SETTING, day=30, month="2")],
        ),
    ],
)
def test_every_fault_of_a_schedule_is_named(text, faults):
    """With the part that is wrong and what that part may be."""
    assert list(schedule_faults(SETTING, text)) == faults


def test_the_app_names_wrong_schedules_with_all_else_that_is_wrong(settings, monkeypatch):
    """One start shows every fault; without the check, the timers would run at other times than written."""
    wrong = dict.fromkeys(SCHEDULES, "00:00:30") | {INTERVAL: "24:00:00", "BUCKETS": "0"}
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    codes = dict.fromkeys(SCHEDULES, FaultCode.SCHEDULE_TIME_SPAN)
    codes |= {INTERVAL: FaultCode.TIME_SPAN_INVALID, "BUCKETS": FaultCode.SETTING_INVALID}
    assert {fault.place: fault.code for fault in caught.value.faults} == codes


def test_every_timer_has_a_schedule_that_is_checked(settings):
    """In a setting that the app checks at its start, or in its code."""
    app = bootstrap(Settings.read(SHOP.agents), SHOP, in_memory())
    marked = settings | {name: f"0 0 0 1 {month} *" for month, name in enumerate(SCHEDULES, 1)}
    found = index_functions(functions(app).get_functions(), AppSettings(values=marked), None)
    schedules = {
        function.trigger.schedule for function in found if hasattr(function.trigger, "schedule")
    }
    of_settings = {marked[name] for name in SCHEDULES}
    assert of_settings <= schedules
    assert [list(schedule_faults("code", text)) for text in schedules] == [[]] * len(schedules)


def test_every_time_of_host_json_is_known_as_one():
    """By the end of its name; a setting may replace any that the embedded host reads."""
    names = dict.fromkeys(times_of(HostJson, "AzureFunctionsJobHost"), "24:00:00")
    assert len(names) > 9
    assert {fault.place for fault in span_faults(names)} == set(names)
    assert list(span_faults(dict.fromkeys(names, "00:00:30"))) == []
    assert list(span_faults({"AzureFunctionsJobHost__extensions__queues__batchSize": "16"})) == []


def times_of(section, path):
    """Yield the times within a part of host.json, by the settings that replace them."""
    for field in section.model_fields.values():
        if isinstance(field.default, BaseModel):
            yield from times_of(type(field.default), f"{path}__{field.alias}")
        elif isinstance(field.default, float):
            yield f"{path}__{field.alias}"
