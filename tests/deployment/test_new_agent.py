"""A new agent is one declaration: all else that needs to know of it reads one generated file."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from development import bicep
from development.servicebus_config import AGENTS_FILE
from tests.support.another_business import copy_of_tree, run

DECLARED = "shop/business.py"
AGENTS = "agents=[provider, backup, warehouse, carrier]"
WITH_ONE_MORE = AGENTS[:-1] + ', Inventory("gift-wrap", auth=ApiKey("GIFT_WRAP_KEY"))]'
SNAPSHOTS = "tests/deployment/snapshots/"
NOT_OURS = {".git", ".venv", ".data", "node_modules", "__pycache__"}


@pytest.fixture
def root(tmp_path):
    """A copy of the repository that deploys the shop."""
    root = copy_of_tree(tmp_path / "tree")
    run(root, "-m", "development.declared", "--deploy", "shop.business:SHOP")
    return root


@pytest.fixture
def before(root):
    """Its files."""
    return digests(root)


def digests(root):
    """The digest of each file."""
    found = {}
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in NOT_OURS and not name.endswith("_cache")]
        for path in (Path(folder, name) for name in names):
            found[path.relative_to(root).as_posix()] = hashlib.sha256(path.read_bytes()).digest()
    return found


def changed(root, before):
    """The files that are other ones now, new or gone."""
    return {path for path, _ in before.items() ^ digests(root).items()}


def declare_one_more(root):
    """Declare an agent that needs a key, and write what follows."""
    text = (root / DECLARED).read_text()
    assert text.count(AGENTS) == 1
    text = text.replace(AGENTS, WITH_ONE_MORE).replace("    Agent,\n", "    Agent,\n    ApiKey,\n")
    (root / DECLARED).write_text(text)
    return run(root, "-m", "development.declared", "--write")


@pytest.mark.soak
def test_a_new_agent_changes_its_declaration_and_the_generated_file(root, before, project):
    """Local settings, the emulator and the hooks know of it by that."""
    assert declare_one_more(root) == f"written: {AGENTS_FILE}\n"
    assert changed(root, before) == {DECLARED, AGENTS_FILE}
    settings = "from development.core_tools import first_settings as f; print(f()['Values'])"
    assert "/simulator/gift-wrap'" in run(root, "-c", settings)
    queues = "from development.servicebus_config import emulator_config as c; print(c())"
    assert "'gift-wrap-responses'" in run(root, "-c", queues)
    shutil.copy(root / AGENTS_FILE, project.root / AGENTS_FILE)
    required = {place for code, place in project.run("preprovision.py").faults}
    assert {"GIFT_WRAP_URL", "GIFT_WRAP_KEY"} <= required


@pytest.mark.soak
def test_another_application_changes_what_names_it_and_the_generated_file(root, before):
    """Besides its own folder."""
    shutil.copytree(root / "samples/claims", root / "another")
    run(root, "-m", "development.declared", "--deploy", "another.business:CLAIMS")
    assert {path for path in changed(root, before) if not path.startswith("another/")} == {
        "function_app.py",
        "tools/development/business.py",
        AGENTS_FILE,
    }


@pytest.mark.soak
def test_azure_gets_what_a_new_agent_needs(root, before):
    """Its queues, its functions kept ready, and its settings, without a change of the template."""
    if not bicep.find():
        pytest.skip("it needs Bicep")
    declare_one_more(root)
    run(root, "-m", "development.snapshots", "--write")
    others = {path for path in changed(root, before) if not path.startswith(SNAPSHOTS)}
    assert others == {DECLARED, AGENTS_FILE}
    vault = json.loads((root / SNAPSHOTS / "vault.json").read_text())
    for wanted in ("gift-wrap-requests", "function:agent_gift_wrap", "GIFT_WRAP_URL"):
        assert wanted in json.dumps(vault)
