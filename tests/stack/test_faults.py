"""What a person has set wrongly, or what is in the way, is named: all of it, and what to do."""

import pytest
from click.testing import CliRunner

from development.__main__ import at_pace, config_from_environment, describe, main
from development.servicebus_config import ROOT
from development.stack import Stack, StackConfig
from local.ports import StackError

STEP = {"STEP_TIMEOUT_SECONDS": "8"}


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
    ("slow", "given", "step", "call"),
    [(1.2, {}, None, None), (2.0, {}, "10", "4"), (50.0, {}, "30", "12"), (2.0, STEP, "8", "4")],
)
def test_steps_get_the_time_that_the_machine_needs(tmp_path, slow, given, step, call):
    """A slow machine would run out of time again and again; who has set a time has it."""
    said = []
    config = at_pace(StackConfig.for_tests(tmp_path, settings=given), slow, said.append)
    assert config.settings.get("STEP_TIMEOUT_SECONDS") == step
    assert config.settings.get("REMOTE_CALL_TIMEOUT_SECONDS") == call
    assert bool(said) == (slow > 1.5)


@pytest.mark.parametrize(
    ("name", "greeting"),
    [
        ("shop.business:SHOP", "api/products"),
        (
            "examples.claims.business:CLAIMS",
            '/api/workflows/claim/orders -d \'{"claimNumber": "C-1000',
        ),
        ("examples.start.business:START", "development submit '{\""),
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


async def test_data_of_a_former_layout_are_refused_with_what_to_do(tmp_path):
    """Before anything is started, and nothing of them is touched."""
    (tmp_path / "azurite").mkdir()
    with pytest.raises(
        StackError, match=r"are of layout 1, .*: empty the folder with `make clean`"
    ):
        await Stack(StackConfig.for_tests(tmp_path)).start()
    assert {each.name for each in tmp_path.iterdir()} == {"azurite", "lock"}
