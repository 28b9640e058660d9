"""The broker's Config.json."""

import pytest

from development import servicebus_config


def test_the_configuration_is_in_the_emulators_format():
    """The queues in infra/ appear with their properties, the emulator's defaults for the rest."""
    user = servicebus_config.config()["UserConfig"]
    (namespace,) = user["Namespaces"]
    assert (namespace["Name"], namespace["Topics"], user["Logging"]) == (
        "sbemulatorns",
        [],
        {"Type": "File"},
    )
    wanted = {queue["name"] for queue in servicebus_config.queues()["serviceBusQueues"]}
    assert {queue["Name"] for queue in namespace["Queues"]} == wanted


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        pytest.param({"lockDuration": "PT30S"}, "LockDuration", "PT30S", id="given"),
        pytest.param({}, "MaxDeliveryCount", 10, id="default"),
        pytest.param(
            {"requiresDuplicateDetection": True}, "RequiresDuplicateDetection", True, id="switch"
        ),
    ],
)
def test_a_property_is_taken_over_or_has_its_default(monkeypatch, given, name, value):
    """What the file gives replaces the default."""
    monkeypatch.setattr(
        servicebus_config, "queues", lambda: {"serviceBusQueues": [{"name": "q"} | given]}
    )
    (queue,) = servicebus_config.config()["UserConfig"]["Namespaces"][0]["Queues"]
    assert queue["Properties"][name] == value
