"""Bad settings at start-up: one message that names every one of them, and an exit code that is not 0."""

import os
import subprocess
import sys

import pytest

from adapters.settings import Settings, SettingsError
from local.ports import Ports
from local.servicebus_config import ROOT
from local.settings import app_settings

REQUIRED = {field.alias for field in Settings.model_fields.values() if field.is_required()} | {
    "StateStorage",
    "ServiceBus",
}
WRONG = {
    "PAYMENT_URL": "ftp://payment", "ALLOWANCE_SECONDS": "soon", "FAILURE_THRESHOLD": "0", "BUCKETS": "101",
    "LEASE_SECONDS": "5", "REPLY_TO_PREFIX": "", "CLOCK_TOLERANCE_SECONDS": "-1", "SIMULATOR_ENABLED": "perhaps",
    "EVENT_GRID_ENDPOINT": "topic",
}  # fmt: skip


def start(settings):
    """Start the host with these settings and nothing else; return its exit code, and what it said."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")} | settings
    command = [sys.executable, "-m", "local.host", "--port", "0"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=30)
    return ran.returncode, ran.stderr.splitlines()


def named(lines):
    """The settings that a message names."""
    assert lines[0] == f"error: {len(lines) - 1} setting(s) missing or wrong:"
    return {line.removeprefix("- ").partition(":")[0] for line in lines[1:]}


def test_everything_that_is_missing_is_named():
    """With no settings at all."""
    code, said = start({})
    assert (code, named(said)) == (1, REQUIRED)


def test_everything_that_is_wrong_is_named():
    """Each wrong value, and what is missing besides; what is empty counts as not set, so its default holds."""
    code, said = start(app_settings(Ports(), "k", "k") | WRONG | {"INVENTORY_URL": ""})
    assert (code, named(said)) == (1, {*WRONG, "INVENTORY_URL"} - {"REPLY_TO_PREFIX"})


@pytest.mark.proves("SUB-5")
@pytest.mark.parametrize("prefix", ["s", "Scheduler-requests", "payment", "shipping-resp"])
def test_private_queues_cannot_be_the_apps_own(prefix, monkeypatch):
    """Or a submitter could have notices sent to the scheduler, or to an agent."""
    for name, value in (app_settings(Ports(), "k", "k") | {"REPLY_TO_PREFIX": prefix}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.read()
    assert {fault.partition(":")[0] for fault in caught.value.faults} == {"REPLY_TO_PREFIX"}


@pytest.mark.parametrize("secret", ["StateStorage", "ServiceBus", "EVENT_GRID_KEY"])
def test_no_secret_is_told(secret):
    """A message about other settings shows no connection string."""
    _, said = start({**app_settings(Ports(), "k", "k"), secret: "AccountKey=very-secret", "BUCKETS": "x"})
    assert "very-secret" not in "\n".join(said)
    assert named(said) == {"BUCKETS"}
