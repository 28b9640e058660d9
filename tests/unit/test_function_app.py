"""What settings reach of the app that is made from them."""

import json
import logging
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

import engine.runtime.functions
from development.settings import app_settings
from engine.azure.connect import connect
from engine.azure.settings import EXPECTED, Settings, SettingsError
from engine.declarations.business import PASSING, AgentDefinition, Sample
from engine.declarations.credentials import ClientCertificate
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError, StepDefaults
from engine.domain.errors import UnavailableError
from engine.domain.messages import MAX_RETRY_AFTER_SECONDS, SCHEDULER_REQUESTS, STEP_NAME
from engine.runtime.functions import answering
from functions_alone.host.index import index_functions
from functions_alone.host.settings import AppSettings
from functions_alone.ports import Ports
from shop.business import SHOP
from testkit.memory import in_memory
from tests.support.apps import bootstrap, functions

VALUES = {
    "REPLY_MARGIN_SECONDS": "1.5",
    "REMOTE_CALL_TIMEOUT_SECONDS": "11",
    "CIRCUIT_ORDERS": "12",
    "CIRCUIT_OPEN_SECONDS": "13",
    "STEP_TIMEOUT_SECONDS": "61",
    "FAILURE_THRESHOLD": "14",
    "COOLDOWN_SECONDS": "62",
    "MAX_RETRY_PAUSE_SECONDS": "66",
    "MAX_UNBEGUN_ATTEMPTS": "15",
    "CLOCK_TOLERANCE_SECONDS": "2.5",
    "UNKNOWN_NAME_MAX_DELIVERIES": "17",
    "MIXED_VERSION_SECONDS": "65",
    "NOTICE_TRIES": "18",
    "MAX_SILENCE_SECONDS": "66",
    "PENDING_ALERT_SECONDS": "63",
    "SWEEP_ALERT_SECONDS": "64",
    "PUBLIC_CALLS_PER_MINUTE": "67",
    "TRUSTED_PROXIES": "203.0.113.7, 10.0.0.0/8",
    "RETENTION_DAYS": "19",
    "BUCKETS": "20",
}
"""A value of its own for each setting that a rule goes by."""

EVERY_SEVEN = "*/7 * * * * *"


@pytest.fixture
def settings(monkeypatch):
    """The app settings, as both the app and its host read them."""
    values = app_settings(Ports(), "key", "key", SHOP.agents) | {
        "SUPERVISOR_SCHEDULE": EVERY_SEVEN,
        "CALLS_IN_FLIGHT": json.dumps({"payment": 3}),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


def made():
    """The app, from what the environment says, on parts in memory."""
    return bootstrap(Settings.read(SHOP.agents), SHOP, in_memory())


def indexed(app, settings):
    """The functions as the embedded host sees them, by name."""
    found = index_functions(functions(app).get_functions(), AppSettings(values=settings), None)
    return {function.name: function for function in found}


def test_every_function_always_answers(settings):
    """What is cancelled within it is turned into an ordinary failure, first of all."""
    bound = functions(made()).get_functions()
    plain = {
        function.get_function_name(): function.get_user_function().__code__ for function in bound
    }
    assert len(plain) > 30
    assert [
        name
        for name, code in plain.items()
        if code is not answering(test_every_function_always_answers).__code__
    ] == []


class AwayTable:
    """A table that nobody can reach."""

    def __getattr__(self, name):
        async def reach(*_):
            raise UnavailableError(name)

        return reach


class Silent:
    """A channel to which nothing is sent, since nothing can be read."""

    name = "smtp"


@pytest.mark.proves("FLT-7")
async def test_every_timer_comes_in_turn_and_ends_quietly_while_the_store_is_away(settings, caplog):
    """It is an outage of the function, told as one; its timer comes again."""
    app = bootstrap(
        Settings.read(SHOP.agents),
        SHOP,
        replace(in_memory(), table=lambda _: AwayTable(), channels={"smtp": Silent()}),
    )
    timers = {
        name: function
        for name, function in indexed(app, settings).items()
        if hasattr(function.trigger, "schedule")
    }
    with patch.dict(engine.runtime.functions._away, clear=True), caplog.at_level(logging.WARNING):
        for timer in timers.values():
            await timer.handler(None)
    interrupted = [record.function for record in caplog.records if record.message == "outage.began"]
    assert sorted(interrupted) == sorted(timers)
    assert "supervisor_sweep" in timers


@pytest.mark.proves("SUP-1")
async def test_how_often_the_supervisor_sweeps_is_a_setting(settings):
    """The timer has the schedule of the setting, whatever that is, and sweeps."""
    app = made()
    sweep = indexed(app, settings)["supervisor_sweep"]
    assert sweep.trigger.schedule == EVERY_SEVEN
    await sweep.handler(None)
    assert (await app.engine.sweeps.last()).instance == app.engine.settings.instance_id


@pytest.mark.proves("SUP-1")
def test_without_the_schedule_of_the_supervisor_the_app_does_not_start(settings, monkeypatch):
    """A timer without one would never come."""
    monkeypatch.delenv("SUPERVISOR_SCHEDULE")
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    expected = EXPECTED["SUPERVISOR_SCHEDULE"]
    assert caught.value.faults == [
        Fault(FaultCode.SETTING_MISSING, "SUPERVISOR_SCHEDULE", expected=expected)
    ]


@pytest.mark.proves("AGT-10", "WRK-2")
@pytest.mark.parametrize(("of_a_process", "usual"), [("", 7), ("5", 5)])
def test_the_limit_of_calls_to_a_service_is_a_setting(settings, monkeypatch, of_a_process, usual):
    """By agent; others have what is usual, and no process has more under way than one may."""
    if of_a_process:
        monkeypatch.setenv("MAX_CONCURRENT_CALLS", of_a_process)
    app = made()
    declared = {agent.name: replace(agent, calls_in_flight=7) for agent in app.engine.agents}
    limits = {name: app.engine.agent(agent).bulkhead.in_flight for name, agent in declared.items()}
    assert (limits["payment"], limits["inventory"]) == (3, usual)


@pytest.mark.proves("AGT-6", "AGT-8")
def test_what_an_agent_declares_of_its_service_reaches_what_calls_it(settings, monkeypatch):
    """Each its own; what is not declared is no refusal. The longest wait is a setting."""
    monkeypatch.setenv("LONGEST_RETRY_AFTER_SECONDS", "90")
    payment, *others = SHOP.agents
    within = timedelta(hours=2)
    payment = replace(payment, refusals=(402, 409), answer_within=within)
    parts = connect(Settings.read([payment, *others]))
    payment, inventory = parts.services["payment"], parts.services["inventory"]
    assert (payment.refusals, inventory.refusals) == ((402, 409), ())
    assert (payment.answer_within, inventory.answer_within) == (within, None)
    assert payment.longest_wait == inventory.longest_wait == timedelta(seconds=90)


@pytest.mark.parametrize("status", [200, 302, 399, 408, 425, 429, 500, 503])
def test_what_is_no_refusal_cannot_be_declared_as_one(status):
    """It would end orders that only had to wait."""
    with pytest.raises(DeclarationError) as caught:
        replace(SHOP.agents[0], refusals=(402, status))
    assert caught.value.faults == [
        Fault(FaultCode.NOT_A_REFUSAL, "agent payment", status=status, excluded=PASSING)
    ]


@pytest.mark.parametrize("name", ["CIRCUIT_OPEN_SECONDS", "LONGEST_RETRY_AFTER_SECONDS"])
@pytest.mark.parametrize("value", ["0", "-1", "86401", "inf", "nan"])
def test_no_pause_is_longer_than_a_reply_can_tell(settings, monkeypatch, name, value):
    """An agent that could not say it could not reply at all."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert [(fault.place, fault.code) for fault in caught.value.faults] == [
        (name, FaultCode.SETTING_INVALID)
    ]
    monkeypatch.setenv(name, str(MAX_RETRY_AFTER_SECONDS))
    Settings.read(SHOP.agents)


def test_both_ways_to_the_payment_provider_share_its_keys():
    """So says their declaration; no other agent shares any."""
    providers = {agent.name: agent.provider for agent in SHOP.agents}
    assert providers["payment"] == providers["payment-backup"] is not None
    assert (providers["inventory"], providers["shipping"]) == (None, None)


def test_every_setting_reaches_what_goes_by_it(settings, monkeypatch):
    """And nothing else: no two of these values are alike."""
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    app = made()
    agent, submission = app.engine.agent(app.engine.agents[0]), app.engine.submission
    terms, scheduler, watch = submission.terms, app.engine.scheduler, app.operations.stall_detector
    assert (agent.margin, agent.call_timeout) == (timedelta(seconds=1.5), timedelta(seconds=11))
    assert (agent.circuit._orders, agent.circuit._open_for) == (12, timedelta(seconds=13))
    assert terms.defaults == StepDefaults(
        timeout=timedelta(seconds=61),
        threshold=14,
        cooldown=timedelta(seconds=62),
        max_retry_pause=timedelta(seconds=66),
    )
    assert app.engine.supervisor.rules.max_unbegun_attempts == 15
    assert app.engine.call_limits._most == 67
    assert list(map(str, app.engine.call_limits._proxies)) == ["203.0.113.7/32", "10.0.0.0/8"]
    assert (len(terms.buckets), submission.unknown_name_max_deliveries) == (20, 17)
    left_to_newer = (submission, scheduler.rules, app.engine.unread, app.operations.orders.acting)
    assert {rules.version_overlap for rules in left_to_newer} == {timedelta(seconds=65)}
    by_silence = (scheduler.rules, scheduler.admission, app.operations.orders.acting)
    assert {rules.max_silence for rules in by_silence} == {timedelta(seconds=66)}
    assert scheduler.rules.clock_tolerance == app.engine.supervisor.rules.clock_tolerance
    assert scheduler.rules.clock_tolerance == timedelta(seconds=2.5)
    capacity = scheduler.admission.capacity
    assert {agent: limits.most for agent, limits in capacity.items()} == {
        "payment": 6,
        "inventory": 200,
        "shipping": 200,
    }
    assert {limits.allowance for limits in capacity.values()} == {timedelta(seconds=61)}
    assert app.operations.relay.max_tries == 18
    assert watch.pending_alert_after == timedelta(seconds=63)
    assert watch.sweep_alert_after == timedelta(seconds=64)
    assert app.operations.services.retention.keep == timedelta(days=19)
    monkeypatch.setenv("RETENTION_DAYS", "0")
    assert made().operations.services.retention.keep is None


def test_health_asks_all_that_the_app_cannot_work_without(settings):
    """But Event Grid, which has no call that changes nothing."""
    health = made().operations.services.health
    assert set(health.checks) == {"stateStore", "submissionQueue", "serviceBus"}


NO_TEATIME = Fault(FaultCode.UNKNOWN_WORKFLOW, "default_workflow", workflow="teatime")


def test_a_default_that_is_no_workflow_is_reported_at_the_start(settings):
    """And not of each submission that names none."""
    with pytest.raises(DeclarationError) as caught:
        bootstrap(
            Settings.read(SHOP.agents), replace(SHOP, default_workflow="teatime"), in_memory()
        )
    assert caught.value.faults == [NO_TEATIME]


def test_a_sample_that_cannot_be_placed_is_reported_at_the_start(settings):
    """With every fault of it, and not of the first one that is placed."""
    business = replace(SHOP, sample=Sample(payload={"items": []}, workflow="teatime"))
    with pytest.raises(DeclarationError) as caught:
        bootstrap(Settings.read(SHOP.agents), business, in_memory())
    unknown, *invalid = caught.value.faults
    assert unknown == Fault(FaultCode.UNKNOWN_WORKFLOW, "sample", workflow="teatime")
    assert {(fault.code, fault.place) for fault in invalid} == {
        (FaultCode.SAMPLE_INVALID, "sample")
    }
    fields = [fault.facts["message"].partition(":")[0] for fault in invalid]
    assert fields == ["customer", "items"]


NEXT_DAY = timedelta(days=1)
AGENT = AgentDefinition(name="post", offers="post", address="POST_URL")
NAN = float("nan")


def mismatch(place, field, value):
    return Fault(FaultCode.PATTERN_MISMATCH, place, field=field, value=value, pattern=STEP_NAME)


FAULTY_AGENTS = {
    "a name that sorts before the others": (
        replace(AGENT, name="3ds"),
        mismatch("agent 3ds", "name", "3ds"),
    ),
    "a name with a capital": (
        replace(AGENT, name="Post"),
        mismatch("agent Post", "name", "Post"),
    ),
    "a name that no queue can have": (
        replace(AGENT, name="post/air"),
        mismatch("agent post/air", "name", "post/air"),
    ),
    "the scheduler's": (
        replace(AGENT, name="scheduler"),
        Fault(FaultCode.QUEUE_OF_SCHEDULER, "agent scheduler", queue=SCHEDULER_REQUESTS),
    ),
    "another's": (
        replace(AGENT, name="payment"),
        Fault(FaultCode.DUPLICATE_AGENT, "agent payment"),
    ),
    "what no key can hold": (
        replace(AGENT, offers="card|eu"),
        mismatch("agent post", "capability", "card|eu"),
    ),
    "no call": (
        replace(AGENT, calls_in_flight=0),
        Fault(FaultCode.NOT_POSITIVE, "agent post", field="calls_in_flight", value=0),
    ),
}


@pytest.mark.parametrize("label", FAULTY_AGENTS)
def test_an_agent_that_cannot_work_is_reported_at_the_start(settings, label):
    """With all else that is wrong, also if this deployment does without it."""
    agent, fault = FAULTY_AGENTS[label]
    business = replace(SHOP, agents=[*SHOP.agents, agent], default_workflow="teatime")
    with pytest.raises(DeclarationError) as caught:
        bootstrap(Settings.read(SHOP.agents), business, in_memory())
    assert caught.value.faults == [fault, NO_TEATIME]


JUST_RIGHT = {
    "the first and the last refusal": {"refusals": (400, 499)},
    "one call": {"calls_in_flight": 1},
    "an answer as late as the key lasts": {"answer_within": NEXT_DAY, "keys_last": NEXT_DAY},
}


@pytest.mark.parametrize("label", JUST_RIGHT)
def test_what_is_just_within_the_bounds_of_an_agent_is_no_fault(label):
    """Nor is a sample of the business's own workflow."""
    agents = [*SHOP.agents, replace(AGENT, **JUST_RIGHT[label])]
    replace(SHOP, agents=agents, sample=replace(SHOP.sample, workflow="order")).check(agents)


def test_an_agent_of_functions_alone_has_nobody_to_show_a_secret():
    """Its auth would be read, and never used."""
    agent = replace(AGENT, address="", auth=ClientCertificate("POST_CERTIFICATE"))
    with pytest.raises(DeclarationError) as caught:
        replace(SHOP, agents=[*SHOP.agents, agent]).check(SHOP.agents)
    assert caught.value.faults == [Fault(FaultCode.AUTH_WITHOUT_CALLS, "agent post")]


TOO_MUCH = {
    "STEP_TIMEOUT_SECONDS": "600",
    "REMOTE_CALL_TIMEOUT_SECONDS": "600",
    "COOLDOWN_SECONDS": "1e300",
    "CIRCUIT_OPEN_SECONDS": "86401",
    "CIRCUIT_ORDERS": "1001",
    "CLOCK_TOLERANCE_SECONDS": "61",
    "MIXED_VERSION_SECONDS": "1e12",
    "MAX_SILENCE_SECONDS": "0",
    "PENDING_ALERT_SECONDS": "inf",
    "SWEEP_ALERT_SECONDS": "nan",
    "PUBLIC_CALLS_PER_MINUTE": "-1",
}


@pytest.mark.parametrize(
    "text", ["203.0.113.0/33", "example.com", "203.0.113.7/24", "10.0.0.1;10.0.0.2"]
)
def test_a_trusted_proxy_is_an_address_or_a_network(settings, monkeypatch, text):
    monkeypatch.setenv("TRUSTED_PROXIES", f"10.1.0.0/16, {text}")
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert [(fault.place, fault.code) for fault in caught.value.faults] == [
        ("TRUSTED_PROXIES", FaultCode.SETTING_MALFORMED)
    ]


def test_a_setting_that_no_role_could_go_by_is_refused(settings, monkeypatch):
    """By name, each of them: a step that the host would end, a time that no calendar has."""
    for name, value in TOO_MUCH.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert [(fault.place, fault.code) for fault in caught.value.faults] == [
        (name, FaultCode.SETTING_INVALID) for name in sorted(TOO_MUCH)
    ]
