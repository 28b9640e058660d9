"""What a business declares reaches every place that needs it: compared by one command, which also writes it."""

import json
import re
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner

from development import declared
from development.business import ANOTHER_APP, DEPLOYED, ENTRY, app_of, entry_for, named, packages
from development.declared import APP, CHOICE, COMMAND, FILES, to_be_deployed
from development.faults import DevelopmentCode
from development.servicebus_config import AGENTS_FILE, ROOT
from engine.declarations.business import AgentDefinition
from engine.declarations.credentials import ApiKey, ClientCredentials
from engine.workflow.__main__ import main as workflow_commands
from functions_alone.faults import StackFault
from functions_alone.ports import StackError
from samples.claims.business import CLAIMS
from shop.business import SHOP
from tests.support.deploying import AGENTS
from tests.support.guides import PAGES as GUIDES

NAME = "shop.business:SHOP"
GIFT_WRAP = AgentDefinition(name="gift-wrap", offers="gift-wrap", address="GIFT_WRAP_URL")


@pytest.fixture
def root(tmp_path):
    """A copy of the files that are written."""
    for place in FILES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


def texts(root):
    return {place: (root / place).read_text() for place in FILES}


def agents_file(root):
    return json.loads((root / AGENTS_FILE).read_text())


def faults(agents, root=ROOT, name=NAME):
    return list(declared.faults(name, agents, root))


def write(agents, root, name=NAME):
    return list(declared.write(name, agents, root))


def test_the_agents_of_what_is_deployed_are_written():
    """Queues, settings, and what is asked for before a deployment."""
    assert faults(AGENTS, name=DEPLOYED) == []


def test_a_new_agent_is_missing_until_it_is_written(root):
    """The file is named, with the command that mends it; then nothing is left to say or to write."""
    agents = [*SHOP.agents, GIFT_WRAP]
    write(SHOP.agents, root)
    found = faults(agents, root)
    facts = {"business": NAME, "command": COMMAND}
    assert found == [StackFault(DevelopmentCode.FILE_OUTDATED, AGENTS_FILE, facts)]
    assert write(agents, root) == [AGENTS_FILE]
    assert (faults(agents, root), write(agents, root)) == ([], [])
    written = agents_file(root)
    assert written["agents"][-1] == {
        "name": "gift-wrap",
        "address": "GIFT_WRAP_URL",
        "optional": False,
    }
    assert [queue["name"] for queue in written["queues"][-2:]] == [
        "gift-wrap-requests",
        "gift-wrap-responses",
    ]
    assert [setting["name"] for setting in written["settings"][-2:]] == [
        "GIFT_WRAP_URL",
        "GIFT_WRAP_URL_SCOPE",
    ]


def test_what_is_left_of_an_agent_that_is_gone_is_taken_out(root):
    """Its queues would fill, and nobody would look; all that was written by hand is as before."""
    write(SHOP.agents, root)
    before = texts(root)
    write([*SHOP.agents, GIFT_WRAP], root)
    assert texts(root) != before
    write(SHOP.agents, root)
    assert texts(root) == before


def test_another_business_takes_the_place_of_the_first(root):
    """Nothing names the shop's agents any more, and what belongs to no agent is still there."""
    write(CLAIMS.agents, root, "claims.business:CLAIMS")
    assert 'DEPLOYED = "claims.business:CLAIMS"' in (root / CHOICE).read_text()
    assert "from claims.business import CLAIMS as BUSINESS" in (root / APP).read_text()
    left = [place for place, text in texts(root).items() if "payment" in text.lower()]
    assert left == []
    assert [queue["name"] for queue in agents_file(root)["queues"]] == [
        "assessor-requests",
        "assessor-responses",
        "bank-requests",
        "bank-responses",
    ]


def test_a_queue_keeps_what_was_chosen_for_it(root):
    """A longer lock, say, is no fault, and stays."""
    path = root / AGENTS_FILE
    path.write_text(path.read_text().replace("PT1M", "PT2M"))
    write(AGENTS, root)
    assert "PT1M" not in path.read_text()


def test_a_setting_is_written_with_what_the_hooks_need_to_know_of_it(root):
    """Which one is an address, which ones a deployment needs, and which ones no log may show."""
    write([replace(CLAIMS.agents[1], auth=ApiKey("BANK_KEY"))], root)
    assert agents_file(root)["settings"] == [
        {"name": "BANK_URL", "kind": "address", "required": True, "secret": False},
        {"name": "BANK_KEY", "kind": "value", "required": True, "secret": True},
    ]


def test_a_setting_that_two_agents_share_is_there_once(root):
    """A token's address, say. It is required if one of them requires it."""
    shared = ClientCredentials("TOKEN_URL", "ITS_CLIENT", "ITS_SECRET")
    write([replace(agent, auth=shared) for agent in SHOP.agents[:2]], root)
    found = [setting for setting in agents_file(root)["settings"] if setting["name"] == "TOKEN_URL"]
    assert [(setting["kind"], setting["required"]) for setting in found] == [("value", True)]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "<<<<<<< ours\n", '{"queues": [{}]}'])
def test_a_file_that_is_missing_or_broken_is_written_anew(root, text):
    """Such as one with the marks of a merge."""
    path = root / AGENTS_FILE
    wanted = path.read_text()
    path.unlink() if text is None else path.write_text(text)
    assert write(AGENTS, root, DEPLOYED) == [AGENTS_FILE]
    assert path.read_text() == wanted


def test_the_queue_of_answers_is_written_where_a_workflow_waits(root):
    """And taken out again; what is written by hand in it stays. What expires there is not lost."""

    def queues():
        return agents_file(root)["queues"]

    without = (root / AGENTS_FILE).read_text()
    assert AGENTS_FILE in list(declared.write(NAME, AGENTS, root, answers=True))
    assert list(declared.faults(NAME, AGENTS, root, answers=True)) == []
    assert queues()[-1]["name"] == "answers"
    assert queues()[-1]["deadLetteringOnMessageExpiration"]
    changed = (
        (root / AGENTS_FILE)
        .read_text()
        .replace('answers", "lockDuration": "PT1M', 'answers", "lockDuration": "PT2M')
    )
    (root / AGENTS_FILE).write_text(changed)
    assert list(declared.faults(NAME, AGENTS, root, answers=True)) == []
    list(declared.write(NAME, AGENTS, root))
    assert (root / AGENTS_FILE).read_text() == without


def test_the_command_says_what_it_did(root, monkeypatch):
    """Its exit code is 1 while anything does not fit."""
    compare, rewrite, agents = declared.faults, declared.write, [*AGENTS, GIFT_WRAP]
    monkeypatch.setattr(
        declared, "faults", lambda name, *_, **of: compare(name, agents, root, **of)
    )
    monkeypatch.setattr(declared, "write", lambda name, *_, **of: rewrite(name, agents, root, **of))
    command = CliRunner().invoke
    assert command(declared.main).exit_code == 1
    written = command(declared.main, ["--write"])
    assert written.output == f"written: {AGENTS_FILE}\n"
    assert (command(declared.main).exit_code, command(declared.main).output) == (0, "")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("samples.claims.business:CLAIMS", DevelopmentCode.EXAMPLE_NOT_DEPLOYABLE),
        ("bench.workflows:MEASURED", DevelopmentCode.BUSINESS_MISPLACED),
        ("shop.business:TEA", DevelopmentCode.BUSINESS_UNKNOWN),
    ],
)
def test_what_cannot_be_deployed_is_reported(name, code):
    """Before anything is written."""
    with pytest.raises(StackError) as raised:
        to_be_deployed(name)
    assert [fault.code for fault in raised.value.faults] == [code]
    ended = CliRunner().invoke(declared.main, ["--deploy", name])
    assert ended.exit_code == 1
    assert name in ended.stderr
    assert f"[{code}]" in ended.stderr


def test_a_business_is_a_package_with_a_module_of_that_name(tmp_path):
    """Wherever it lies."""
    assert {"shop", "samples.claims"} <= set(packages(ROOT))
    for name in ("rental", "companies/of/mine", "tests/no", ".venv/no", "half"):
        (tmp_path / name).mkdir(parents=True)
        for file in ("__init__.py", "business.py"):
            (tmp_path / name / file).touch()
    (tmp_path / "half/business.py").unlink()
    assert list(packages(tmp_path)) == ["companies.of.mine", "rental"]


def test_the_app_of_the_deployed_business_is_the_repository():
    """Any other business has the app that reads its name."""
    assert app_of(DEPLOYED) == ROOT
    assert app_of("samples.starter.business:START") == ANOTHER_APP
    assert (ANOTHER_APP / ENTRY).is_file()


def test_the_entry_names_another_business_with_its_own_routes_if_it_has_some():
    """The rest of the entry stays as it is."""
    text = (ROOT / ENTRY).read_text()
    claims = entry_for("samples.claims.business:CLAIMS", text)
    assert "from samples.claims.business import CLAIMS as BUSINESS\n" in claims
    assert "from bootstrap.plain import page, routes\n" in claims
    shop = entry_for("shop.business:SHOP", claims)
    assert "from shop.triggers import page, routes\n" in shop
    assert entry_for(DEPLOYED, shop) == text


@pytest.mark.parametrize(
    "text",
    ["", "from shop.business import SHOP as BUSINESS\n\nfrom shop.triggers import page, routes\n"],
)
def test_an_entry_without_the_lines_of_a_business_is_refused(text):
    """Else another business would run than the one that is named."""
    with pytest.raises(StackError) as raised:
        entry_for("samples.claims.business:CLAIMS", text)
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (DevelopmentCode.ENTRY_WITHOUT_BUSINESS, ENTRY)


@pytest.mark.parametrize(
    "name", ["", "shop", "shop.no:SHOP", "shop.business:TEA", "shop.business:AGENTS"]
)
def test_a_name_of_no_business_is_reported_with_what_is_expected(name):
    """However wrong it is."""
    with pytest.raises(StackError) as raised:
        named(name)
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (DevelopmentCode.BUSINESS_UNKNOWN, "BUSINESS")
    assert (fault.facts["value"], fault.facts["example"]) == (name, DEPLOYED)


BROKEN = """
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError

raise DeclarationError([Fault(FaultCode.OPTION_UNKNOWN, option="onfailure")])
"""


def test_the_faults_of_a_business_are_reported_without_a_traceback(tmp_path, monkeypatch):
    """Newcomer A: the sentence stood below 45 lines of it. Both commands for authors name the fault."""
    (tmp_path / "broken_business.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StackError) as raised:
        named("broken_business:BROKEN")
    [fault] = raised.value.faults
    assert fault.code is DevelopmentCode.BUSINESS_REFUSED
    assert "[option-unknown]" in fault.facts["reason"]
    drawn = CliRunner().invoke(workflow_commands, ["draw", "broken_business:BROKEN"])
    assert (drawn.exit_code, "[option-unknown]" in drawn.output) == (2, True)


DOCUMENTED = re.compile(r"BUSINESS=([\w.]+:\w+) make run")


def test_every_business_that_a_page_starts_is_one():
    """A reader copies these lines; a guide makes its own business before."""
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("samples/*/*.md")} - {
        *GUIDES
    }
    names = {name for page in pages for name in DOCUMENTED.findall(page.read_text())}
    assert len(names) > 1
    assert all(named(name).agents for name in names)
