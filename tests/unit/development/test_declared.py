"""What a business declares reaches every place that needs it: compared by one command, which also writes it."""

import json
import re
import shutil
from dataclasses import replace

import pytest
import yaml
from click.testing import CliRunner

from development import declared
from development.business import ANOTHER_APP, DEPLOYED, ENTRY, app_of, entry_for, named, packages
from development.declared import APP, CHOICE, COMMAND, FILES, to_be_deployed
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from engine.declarations.business import AgentDefinition
from engine.declarations.credentials import ApiKey, ClientCredentials
from functions_alone.faults import StackFault
from functions_alone.ports import StackError
from samples.claims.business import CLAIMS
from shop.business import SHOP
from tests.support.deploying import AGENTS

PLACES = [CHOICE, APP, *FILES]
NAME = "shop.business:SHOP"
GIFT_WRAP = AgentDefinition(name="gift-wrap", offers="gift-wrap", address="GIFT_WRAP_URL")


@pytest.fixture
def root(tmp_path):
    """A copy of the files that are written."""
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    return tmp_path


def texts(root):
    return {place: (root / place).read_text() for place in PLACES}


def checked_by_hooks(root):
    return json.loads((root / "infra/hooks/services.json").read_text())["settings"]


def faults(agents, root=ROOT, name=NAME):
    return list(declared.faults(name, agents, root))


def write(agents, root, name=NAME):
    return list(declared.write(name, agents, root))


def test_the_agents_of_what_is_deployed_are_everywhere():
    """Queues, settings, parameters of a deployment, and what is asked for before it."""
    assert faults(AGENTS, name=DEPLOYED) == []


def test_a_new_agent_is_missing_everywhere_until_it_is_written(root):
    """Each file is named, with the command that mends it; then nothing is left to say or to write."""
    agents = [*SHOP.agents, GIFT_WRAP]
    write(SHOP.agents, root)
    found = faults(agents, root)
    facts = {"business": NAME, "command": COMMAND}
    assert found == [StackFault(DevelopmentCode.FILE_OUTDATED, place, facts) for place in FILES]
    assert write(agents, root) == list(FILES)
    assert (faults(agents, root), write(agents, root)) == ([], [])
    assert [
        place
        for place, text in texts(root).items()
        if place in FILES and "gift-wrap" not in text.lower().replace("_", "-")
    ] == []


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
    queues = json.loads((root / "infra/queues.json").read_text())["serviceBusQueues"]
    assert [queue["name"] for queue in queues] == [
        "dead-letters",
        "scheduler-requests",
        "assessor-requests",
        "assessor-responses",
        "bank-requests",
        "bank-responses",
        "status-example",
    ]
    values = json.loads((root / "local.settings.template.json").read_text())["Values"]
    addresses = {name for name in values if name.endswith("_URL")}
    of_channels = {"SMTP_URL", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL"}
    assert addresses - of_channels == {"ASSESSOR_URL", "BANK_URL", "PUBLIC_URL"}
    assert values["STEP_TIMEOUT_SECONDS"] == "5"


def test_a_queue_keeps_what_was_chosen_for_it(root):
    """A longer lock, say, is no fault, and stays."""
    path = root / "infra/queues.json"
    path.write_text(path.read_text().replace("PT1M", "PT2M"))
    write(AGENTS, root)
    assert "PT1M" not in path.read_text()


def test_secrets_go_another_way_than_variables(root):
    """They are secrets of the repository too, and a deployment asks for those that are needed."""
    write([replace(CLAIMS.agents[1], auth=ApiKey("BANK_KEY"))], root)
    pipeline = yaml.safe_load((root / "azure.yaml").read_text())["pipeline"]
    assert pipeline["secrets"] == [*declared.SECRETS, "BANK_KEY"]
    assert "BANK_KEY" not in pipeline["variables"]
    workflow = (root / ".github/workflows/azure-dev.yml").read_text()
    assert "BANK_KEY: ${{ secrets.BANK_KEY }}\n" in workflow
    assert checked_by_hooks(root) == [
        {"name": "BANK_URL", "kind": "address", "required": True},
        {"name": "BANK_KEY", "kind": "value", "required": True},
    ]


def test_a_setting_that_two_agents_share_is_there_once(root):
    """A token's address, say: twice in one file it would be a fault. It is required if one of them requires it."""
    shared = ClientCredentials("TOKEN_URL", "ITS_CLIENT", "ITS_SECRET")
    write([replace(agent, auth=shared) for agent in SHOP.agents[:2]], root)
    assert {"name": "TOKEN_URL", "kind": "value", "required": True} in checked_by_hooks(root)
    for place in ("azure.yaml", ".github/workflows/azure-dev.yml", "infra/main.parameters.json"):
        assert (
            len(
                re.findall(
                    r"^ +(?:- )?\"?TOKEN_URL|{ \"TOKEN_URL", texts(root)[place], re.MULTILINE
                )
            )
            == 1
        )


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("infra/queues.json", "{"),
        ("infra/queues.json", '{"serviceBusQueues": []}'),
        ("infra/main.parameters.json", "{}"),
        ("azure.yaml", "pipeline: {}\n"),
    ],
)
def test_a_file_in_which_nothing_can_be_written_is_named_and_nothing_is_written(root, place, text):
    """Whatever has become of it."""
    (root / place).write_text(text)
    before = texts(root)
    with pytest.raises(StackError) as raised:
        write([*AGENTS, GIFT_WRAP], root)
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (DevelopmentCode.FILE_UNREADABLE, place)
    assert texts(root) == before


def test_the_queue_of_answers_is_written_where_a_workflow_waits(root):
    """And taken out again; what is written by hand in it stays. What expires there is not lost."""

    def queues():
        return json.loads((root / "infra/queues.json").read_text())["serviceBusQueues"]

    without = (root / "infra/queues.json").read_text()
    assert "infra/queues.json" in list(declared.write(NAME, AGENTS, root, answers=True))
    assert list(declared.faults(NAME, AGENTS, root, answers=True)) == []
    assert queues()[-1]["name"] == "answers"
    assert queues()[-1]["deadLetteringOnMessageExpiration"]
    changed = (
        (root / "infra/queues.json")
        .read_text()
        .replace('answers", "lockDuration": "PT1M', 'answers", "lockDuration": "PT2M')
    )
    (root / "infra/queues.json").write_text(changed)
    assert list(declared.faults(NAME, AGENTS, root, answers=True)) == []
    list(declared.write(NAME, AGENTS, root))
    assert (root / "infra/queues.json").read_text() == without


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
    assert written.output == "".join(f"written: {place}\n" for place in FILES)
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
    assert app_of("samples.minimal.business:START") == ANOTHER_APP
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
    "name", ["", "shop", "shop.no:SHOP", "shop.business:TEA", "shop.business:AGENTS"]
)
def test_a_name_of_no_business_is_reported_with_what_is_expected(name):
    """However wrong it is."""
    with pytest.raises(StackError) as raised:
        named(name)
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (DevelopmentCode.BUSINESS_UNKNOWN, "BUSINESS")
    assert (fault.facts["value"], fault.facts["example"]) == (name, DEPLOYED)


DOCUMENTED = re.compile(r"BUSINESS=([\w.]+:\w+) make run")


def test_every_business_that_a_page_starts_is_one():
    """A reader copies these lines."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("samples/*/*.md")]
    names = {name for page in pages for name in DOCUMENTED.findall(page.read_text())}
    assert len(names) > 1
    assert all(named(name).agents for name in names)
