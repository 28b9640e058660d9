"""What a person has set wrongly, or what is in the way, is named: all of it, and what to do."""

import socket
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

from local.__main__ import config_from_environment, describe, main
from local.ports import HOST, RANDOM_PORTS, Ports, StackError
from local.servicebus_config import ROOT
from local.stack import Stack, StackConfig


def test_every_wrong_variable_is_named_in_one_message(monkeypatch):
    """One start shows all faults."""
    wrong = {
        "HTTP_PORT": "70000",
        "AMQP_PORT": "amqp",
        "HOSTS": "0",
        "OPERATOR_KEY": "",
        "BUSINESS": "tea",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StackError) as raised:
        config_from_environment()
    assert all(name in str(raised.value) for name in wrong)


def test_a_start_that_fails_ends_with_the_reason():
    """The command's exit code is 1."""
    ended = CliRunner().invoke(main, ["run"], env={"TABLE_PORT": "no", "HOSTS": "0"})
    assert ended.exit_code == 1
    assert ended.stderr.startswith("The stack cannot start: TABLE_PORT=no: expected a port")
    assert "HOSTS=0" in ended.stderr


def test_two_parts_on_one_port_are_named(monkeypatch):
    """A port given twice would look like one that somebody else has taken."""
    monkeypatch.setenv("BLOB_PORT", "7071")
    with pytest.raises(StackError, match="HTTP_PORT and BLOB_PORT are both 7071"):
        config_from_environment()


def test_settings_of_the_app_replace_the_defaults_but_connections_do_not(monkeypatch):
    """A real account's connection string in the shell must not be worked on by mistake."""
    monkeypatch.setenv("STEP_TIMEOUT_SECONDS", "8")
    monkeypatch.setenv("AzureWebJobsStorage", "somebody's production account")
    assert config_from_environment().settings == {"STEP_TIMEOUT_SECONDS": "8"}


def test_the_stack_of_another_business_has_its_app_and_its_agents(monkeypatch):
    """Their addresses are settings that a person may replace, too."""
    monkeypatch.setenv("BUSINESS", "examples.claims.business:CLAIMS")
    monkeypatch.setenv("BANK_URL", "http://a-bank")
    config = config_from_environment()
    assert config.app == ROOT / "examples/claims"
    assert [agent.address for agent in config.agents] == ["ASSESSOR_URL", "BANK_URL"]
    assert config.settings == {"BANK_URL": "http://a-bank"}


@pytest.mark.parametrize(
    ("name", "greeting"),
    [
        ("shop.business:SHOP", "api/products"),
        (
            "examples.claims.business:CLAIMS",
            '/api/workflows/claim/orders -d \'{"claimNumber": "C-1000',
        ),
        ("examples.start.business:START", "local submit '{\""),
    ],
)
def test_a_stack_greets_with_what_its_business_has(tmp_path, monkeypatch, name, greeting):
    """A link to the shop leads nowhere where another business runs, whichever is deployed."""
    monkeypatch.setenv("BUSINESS", name)
    said = describe(Stack(StackConfig.for_tests(tmp_path)), 1)
    assert greeting in said
    assert ("/shop" in said) == (name == "shop.business:SHOP")


@pytest.mark.parametrize("payload", ["[1]", "tea", '{"priority": "none"}'])
def test_what_cannot_be_submitted_is_said(payload):
    """Before anything is sent."""
    ended = CliRunner().invoke(main, ["submit", payload])
    assert (ended.exit_code, ended.stderr[:30]) == (1, "The order cannot be submitted:")


async def test_every_taken_port_is_named_before_anything_starts(tmp_path):
    """All of them in one message, each with the variable that moves it."""
    ports = Ports.free()
    taken = ("http_port", "queue_port", "amqp_port", "eventgrid_port")
    with ExitStack() as sockets:
        for name in taken:
            sockets.enter_context(socket.create_server((HOST, getattr(ports, name))))
        with pytest.raises(StackError) as raised:
            await Stack(StackConfig.for_tests(tmp_path, ports=ports)).start()
    named = [
        name for name in Ports.__dataclass_fields__ if f"set {name.upper()}" in str(raised.value)
    ]
    assert named == list(taken)
    assert list(tmp_path.iterdir()) == []


async def test_a_part_that_loses_the_race_for_its_port_is_reported_with_the_variable(tmp_path):
    """Azurite ends when a port is taken, while whoever has the port answers in its place."""
    stack = Stack(StackConfig.for_tests(tmp_path))
    with socket.create_server((HOST, stack.ports.blob_port)), pytest.raises(StackError) as raised:
        await stack.start_azurite()
    assert "azurite ended while starting" in str(raised.value)
    assert f"{stack.ports.blob_port}: set BLOB_PORT" in str(raised.value)
    assert "QUEUE_PORT" not in str(raised.value)


async def test_two_stacks_cannot_use_one_data_folder(services):
    """They would write each other's files to pieces."""
    with pytest.raises(StackError, match="set DATA_DIR to another folder"):
        await Stack(StackConfig.for_tests(services.config.data)).start()


async def test_data_of_a_former_layout_are_refused_with_what_to_do(tmp_path):
    """Before anything is started, and nothing of them is touched."""
    (tmp_path / "azurite").mkdir()
    with pytest.raises(
        StackError, match=r"are of layout 1, .*: empty the folder with `make clean`"
    ):
        await Stack(StackConfig.for_tests(tmp_path)).start()
    assert {each.name for each in tmp_path.iterdir()} == {"azurite", "lock"}


def test_ports_of_tests_are_not_those_of_outgoing_connections():
    """A part that is stopped for a while finds its port free."""
    ports = Ports.free()
    assert {getattr(ports, name) in RANDOM_PORTS for name in Ports.__dataclass_fields__} == {True}
    assert ports.shared() == []
