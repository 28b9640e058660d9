"""What a person has set wrongly, or what is in the way, is named: all of it, and what to do."""

import pytest
from click.testing import CliRunner

from development.__main__ import config_from_environment, describe, for_a_person, main
from development.faults import DevelopmentCode
from development.settings import SLOWDOWN_FILE, WATCHED
from development.stack import LAYOUT, AppStack, AppStackConfig
from engine.azure.settings import Settings
from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import StackError

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
    assert {
        (fault.code, fault.place, fault.facts.get("value", "")) for fault in faults_of(raised)
    } == {
        (LocalCode.PORT_INVALID, "HTTP_PORT", "70000"),
        (LocalCode.PORT_INVALID, "AMQP_PORT", "amqp"),
        (DevelopmentCode.HOSTS_INVALID, "HOSTS", "0"),
        (DevelopmentCode.OPERATOR_KEY_EMPTY, "OPERATOR_KEY", ""),
        (DevelopmentCode.BUSINESS_UNKNOWN, "BUSINESS", "tea"),
    }


def faults_of(raised):
    return list(raised.value.faults)


def test_a_start_that_fails_ends_with_the_reason():
    """The command's exit code is 1, and the output has each variable, its value and the code of its fault."""
    ended = CliRunner().invoke(main, ["run"], env={"TABLE_PORT": "no", "HOSTS": "0"})
    assert ended.exit_code == 1
    reported = ended.stderr.splitlines()
    parts = [("TABLE_PORT=no", LocalCode.PORT_INVALID), ("HOSTS=0", DevelopmentCode.HOSTS_INVALID)]
    assert len(reported) == len(parts)
    for line, (variable, code) in zip(reported, parts, strict=True):
        assert variable in line
        assert f"[{code}]" in line


def test_two_parts_on_one_port_are_named(monkeypatch):
    """A port given twice would look like one that somebody else has taken."""
    monkeypatch.setenv("BLOB_PORT", "7071")
    with pytest.raises(StackError) as raised:
        config_from_environment()
    shared = StackFault(LocalCode.PORT_SHARED, "HTTP_PORT and BLOB_PORT", {"port": 7071})
    assert faults_of(raised) == [shared]


def test_settings_of_the_app_replace_the_defaults_but_connections_do_not(monkeypatch):
    """A real account's connection string in the shell must not be worked on by mistake."""
    monkeypatch.setenv("STEP_TIMEOUT_SECONDS", "8")
    monkeypatch.setenv("AzureWebJobsStorage", "somebody's production account")
    assert config_from_environment().settings == {"STEP_TIMEOUT_SECONDS": "8"}


def test_the_stack_of_another_business_has_its_app_and_its_agents(monkeypatch):
    """Their addresses are settings that a person may replace, too."""
    monkeypatch.setenv("BUSINESS", "samples.claims.business:CLAIMS")
    monkeypatch.setenv("BANK_URL", "http://a-bank")
    config = config_from_environment()
    assert config.business == "samples.claims.business:CLAIMS"
    assert [agent.address for agent in config.agents] == ["ASSESSOR_URL", "BANK_URL"]
    assert config.settings == {"BANK_URL": "http://a-bank"}


@pytest.mark.parametrize(
    ("given", "follows"),
    [
        ({}, True),
        ({"FAILURE_THRESHOLD": "2"}, True),
        (STEP, False),
        ({"REMOTE_CALL_TIMEOUT_SECONDS": "3"}, False),
    ],
)
def test_steps_follow_the_machine_unless_a_person_has_set_their_time(tmp_path, given, follows):
    """Whoever sets a time has exactly that, and every other setting of theirs too."""
    config = AppStackConfig.for_tests(tmp_path, settings=given)
    file = tmp_path / "slowdown"
    expected = WATCHED | given | ({SLOWDOWN_FILE: str(file)} if follows else {})
    assert for_a_person(config, file).settings == expected


def test_a_reader_has_two_minutes_to_mend_a_service_that_hangs(tmp_path):
    """After the first failure, which comes within 20 seconds (newcomer C): README's second section."""
    stack = AppStack(for_a_person(AppStackConfig.for_tests(tmp_path), tmp_path / "slowdown"))
    read = Settings.model_validate(stack.app_environment())
    sweep = 2
    attempt = read.step_timeout_seconds + read.clock_tolerance_seconds
    assert read.supervisor_schedule == f"*/{sweep} * * * * *"
    assert attempt + sweep < 20
    assert (read.failure_threshold - 1) * attempt >= 120


@pytest.mark.parametrize(
    ("name", "greeting"),
    [
        ("shop.business:SHOP", "api/products"),
        (
            "samples.claims.business:CLAIMS",
            '/api/workflows/claim/orders -d \'{"claimNumber": "C-1000',
        ),
        ("samples.starter.business:START", "make submit ORDER='{\""),
    ],
)
def test_a_stack_greets_with_what_its_business_has(tmp_path, monkeypatch, name, greeting):
    """A link to the shop leads nowhere where another business runs, whichever is deployed."""
    monkeypatch.setenv("BUSINESS", name)
    text = describe(AppStack(AppStackConfig.for_tests(tmp_path)), 1)
    assert greeting in text
    assert ("/shop" in text) == (name == "shop.business:SHOP")


@pytest.mark.parametrize("payload", ["[1]", "tea", '{"priority": "none"}'])
def test_what_cannot_be_submitted_is_reported(payload):
    """Before anything is sent."""
    ended = CliRunner().invoke(main, ["submit", payload])
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert isinstance(ended.exception, SystemExit)
    assert ended.stderr


@pytest.mark.parametrize("layout", [None, *range(1, LAYOUT.newest), LAYOUT.newest + 1, "x"])
async def test_data_of_another_layout_are_refused_with_what_to_do(tmp_path, layout):
    """Before anything is started, and nothing of them is touched; data without a mark are of layout 1."""
    (tmp_path / "azurite").mkdir()
    if layout:
        (tmp_path / "layout").write_text(str(layout))
    before = {entry.name for entry in tmp_path.iterdir()}
    with pytest.raises(StackError) as raised:
        await AppStack(AppStackConfig.for_tests(tmp_path)).start()
    [fault] = faults_of(raised)
    assert (fault.code, fault.place) == (LocalCode.DATA_LAYOUT, str(tmp_path))
    assert fault.facts == {
        "layout": str(layout or 1),
        "oldest": LAYOUT.oldest,
        "newest": LAYOUT.newest,
        "remedy": LAYOUT.remedy,
    }
    assert {entry.name for entry in tmp_path.iterdir()} == before | {"lock"}
