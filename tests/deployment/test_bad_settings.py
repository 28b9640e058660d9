"""Bad settings at start-up: one message that names every one of them, and an exit code that is not 0."""

import os
import subprocess
import sys

import pytest

from development.business import ANOTHER_APP, TRIED
from development.servicebus_config import ROOT
from development.settings import app_settings
from engine.azure.settings import EXPECTED, Settings, SettingsError
from engine.declarations.faults import Fault, FaultCode
from engine.words.catalogue import languages
from functions_alone.faults import LocalCode
from functions_alone.host.host_json import HOST_JSON
from functions_alone.ports import Ports
from shop.business import SHOP

REQUIRED = {
    *(field.alias for field in Settings.model_fields.values() if field.is_required()),
    *(agent.address for agent in SHOP.agents if not agent.optional),
    "StateStorage",
    "ServiceBus",
}
WRONG = {
    "PAYMENT_URL": "ftp://payment", "STEP_TIMEOUT_SECONDS": "soon", "FAILURE_THRESHOLD": "0", "BUCKETS": "101",
    "LEASE_SECONDS": "5", "REPLY_TO_PREFIX": "", "CLOCK_TOLERANCE_SECONDS": "-1", "SIMULATOR_ENABLED": "perhaps",
    "EVENT_GRID_ENDPOINT": "topic", "LOG_LINK": "javascript:alert('{orderId}')", "RUNBOOK_URL": "docs/operations/runbooks.md",
}  # fmt: skip


SECRETS = dict.fromkeys(("StateStorage", "ServiceBus", "EVENT_GRID_KEY"), "AccountKey=very-secret")


def named(lines):
    """The settings that a message names, a line for each below its heading."""
    return {line.removeprefix("- ").partition(":")[0] for line in lines[1:]}


def test_the_app_does_not_start_and_says_why():
    """Each wrong value is named, and what is missing besides; what is empty is not set. No secret is told."""
    settings = (
        app_settings(Ports(), "k", "k", SHOP.agents) | WRONG | SECRETS | {"INVENTORY_URL": ""}
    ) | {HOST_JSON: "host.json", "BUSINESS": TRIED}
    environment = {
        name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "PYTHONPATH")
    } | settings
    command = [
        sys.executable,
        "-m",
        "functions_alone.host",
        "--app-dir",
        str(ANOTHER_APP),
        "--port",
        "0",
    ]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 1
    assert "very-secret" not in ran.stdout + ran.stderr
    wrong = {*WRONG, "INVENTORY_URL"} - {"REPLY_TO_PREFIX"}
    first, *reported = ran.stderr.splitlines()
    assert f"[{LocalCode.APP_REFUSED}]" in first
    assert named(reported) == wrong


def test_everything_that_is_missing_is_named(monkeypatch):
    """With no settings at all."""
    for name in {field.alias for field in Settings.model_fields.values() if field.alias} | REQUIRED:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert {fault.place for fault in caught.value.faults} == REQUIRED
    assert named(str(caught.value).splitlines()) == REQUIRED


@pytest.mark.parametrize("name", ["EVENT_GRID_ENDPOINT", "PUBLIC_URL"])
def test_neither_a_key_nor_a_right_goes_to_another_machine_in_clear(name, monkeypatch):
    """They would be readable for all on their way."""
    for variable, value in (
        app_settings(Ports(), "k", "k", SHOP.agents) | {name: "http://tea.example/api"}
    ).items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert caught.value.faults == [Fault(FaultCode.NOT_HTTPS, name)]


URIS = [f"StateStorage__{service}ServiceUri" for service in ("table", "queue", "blob")]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (
            {"APP_LANGUAGE": "tlh"},
            Fault(
                FaultCode.LANGUAGE_UNKNOWN,
                "APP_LANGUAGE",
                language="tlh",
                languages=tuple(languages()),
            ),
        ),
        ({"EVENT_GRID_KEY": ""}, Fault(FaultCode.TOPIC_KEY_MISSING, "EVENT_GRID_KEY")),
        (
            {"REPLY_MARGIN_SECONDS": "60", "STEP_TIMEOUT_SECONDS": "60"},
            Fault(FaultCode.MARGIN_TOO_LONG, "REPLY_MARGIN_SECONDS", limit="STEP_TIMEOUT_SECONDS"),
        ),
        (
            {"PAYMENT_BACKUP_URL": "ftp://payment"},
            Fault(FaultCode.OPTIONAL_ADDRESS_INVALID, "PAYMENT_BACKUP_URL", agent="payment-backup"),
        ),
        *(
            (
                {name: f"https://pay.example/api{end}"},
                Fault(FaultCode.ADDRESS_WITH_QUERY, name, agent=agent),
            )
            for name, agent in (
                ("PAYMENT_URL", "payment"),
                ("PAYMENT_BACKUP_URL", "payment-backup"),
            )
            for end in ("?code=very-secret", "?", "#top", "/?code=very-secret#top")
        ),
        (
            {"StateStorage": ""},
            Fault(FaultCode.CONNECTION_MISSING, "StateStorage", alternatives=tuple(URIS)),
        ),
        (
            {"StateStorage": "", URIS[0]: "https://t.example", URIS[1]: "https://q.example"},
            Fault(FaultCode.SETTING_MISSING, URIS[2], expected=EXPECTED[URIS[2]]),
        ),
        (
            {"ServiceBus": ""},
            Fault(
                FaultCode.CONNECTION_MISSING,
                "ServiceBus",
                alternatives=("ServiceBus__fullyQualifiedNamespace",),
            ),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else value.code,
)
def test_a_setting_that_does_not_fit_the_others_is_named(values, fault, monkeypatch):
    """A key, a time, an address or a connection that another setting makes necessary or impossible.

    A path cannot be appended to an address with a query or a fragment (bugs 18, engine 29e).
    """
    settings = app_settings(Ports(), "k", "k", SHOP.agents)
    for name in (*URIS, "ServiceBus__fullyQualifiedNamespace"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (settings | values).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert caught.value.faults == [fault]
    assert "very-secret" not in str(caught.value)


@pytest.mark.proves("SUB-5")
@pytest.mark.parametrize("prefix", ["s", "Scheduler-requests", "payment", "shipping-resp", "op"])
def test_private_queues_cannot_be_the_apps_own(prefix, monkeypatch):
    """Or a submitter could have notices sent to the scheduler, to an agent, or to the operators."""
    for name, value in (
        app_settings(Ports(), "k", "k", SHOP.agents) | {"REPLY_TO_PREFIX": prefix}
    ).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    (fault,) = caught.value.faults
    assert (fault.place, fault.code) == ("REPLY_TO_PREFIX", FaultCode.PREFIX_TAKEN)
    assert fault.facts["queues"]
    assert all(name.startswith(prefix.lower()) for name in fault.facts["queues"])


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("https://pay.example.com/v1", True), ("http://127.0.0.1:7071/pay", True), ("http://localhost:8080", True),
        ("http://pay.example.com", False), ("http://127.0.0.1.example.com", False), ("http://localhost@evil", False),
        ("https://user:very-secret@pay.example.com", False), ("https://", False),
        ("http://[::1]:8080", True), ("http://[::1", False),
    ],
)  # fmt: skip
def test_services_are_called_where_nobody_listens(address, good, monkeypatch):
    """Over HTTPS, or on this machine; a password in an address would stand in a plain setting, and is not told."""
    for name, value in (
        app_settings(Ports(), "k", "k", SHOP.agents) | {"PAYMENT_URL": address}
    ).items():
        monkeypatch.setenv(name, value)
    if good:
        assert Settings.read(SHOP.agents).addresses["payment"] == address
        return
    with pytest.raises(SettingsError) as caught:
        Settings.read(SHOP.agents)
    assert caught.value.faults == [Fault(FaultCode.ADDRESS_INVALID, "PAYMENT_URL", agent="payment")]
    assert "very-secret" not in str(caught.value)


def test_an_agent_learns_for_whom_its_service_wants_a_token(monkeypatch):
    """By a setting beside the one with the address; whoever has none shows none."""
    for name, value in (
        app_settings(Ports(), "k", "k", SHOP.agents) | {"PAYMENT_URL_SCOPE": "api://pay/.default"}
    ).items():
        monkeypatch.setenv(name, value)
    assert Settings.read(SHOP.agents).scopes == {"payment": "api://pay/.default"}
