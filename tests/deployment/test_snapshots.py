"""The kept snapshots are of the template as it stands, and together they show all of it."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from development import bicep, compiler, snapshots
from development.business import DEPLOYED
from development.conditions import MODULE, conditions
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from development.stack import MODULES
from functions_alone.ports import StackError
from tests.support.deployed_resources import ROLE_ASSIGNMENT, readable
from tests.support.deploying import BUSINESS

OWNER = snapshots.kept(snapshots.SOURCES).get("business", DEPLOYED)


@pytest.mark.skipif(OWNER != DEPLOYED, reason=f"the kept snapshots are of {OWNER}")
def test_the_kept_files_are_of_the_template_as_it_stands():
    """By digests of what the template reads: so this fails without a compiler too, and says what to run."""
    assert snapshots.outdated() == [], snapshots.COMMAND
    wanted = {snapshots.COMPILED, snapshots.SOURCES, *snapshots.sets(BUSINESS)}
    assert {path.stem for path in snapshots.KEPT.iterdir()} == wanted


def test_both_sides_of_every_condition_are_reached(contents, template):
    """Each is true with one set and false with another: no line of the template is left out of the diff."""
    found = {name: set() for name, _, _ in conditions(template)}
    for name in snapshots.sets(BUSINESS):
        for condition, values in contents[name]["conditions"].items():
            found[condition].update(values)
    assert len(found) > 20
    assert {name: values for name, values in found.items() if values != {True, False}} == {}


def test_conditions_are_found_wherever_they_stand():
    """Of a resource, of a module, in an expression and within another; not those of an item of a loop."""
    inner = {
        "resources": [
            {"type": "a", "name": "b", "condition": "[parameters('x')]"},
            {"type": "c", "name": "d", "value": "[if(equals(copyIndex(), 1), 'y', 'z')]"},
        ]
    }
    module = {"type": MODULE, "name": "inner", "condition": "[variables('m')]"}
    template = {
        "variables": {"v": "[format('if(no, {0}', if(contains(parameters('p'), ','), if(q, 1, 2), 3))]"},
        "resources": {"module": module | {"properties": {"template": inner}}},
        "outputs": {"o": {"value": "[if(not(parameters('r')), 'it''s, if(', 's')]"}},
    }  # fmt: skip
    assert [name for name, _, _ in conditions(template)] == [
        "main: contains(parameters('p'), ',')",
        "main: q",
        "main: variables('m')",
        "main: not(parameters('r'))",
        "inner: parameters('x')",
    ]


MADE_BY_AZURE = {
    ".clientId", ".principalId", ".identity.principalId", ".ConnectionString", ".endpoint",
    ".primaryEndpoints.blob", ".primaryEndpoints.queue", ".primaryEndpoints.table",
}  # fmt: skip
OF_MAIL = {".hostName", ".fromSenderDomain"}
"""The same, of the service that sends mail."""


def test_only_what_azure_makes_stays_unknown(any_deployed):
    """A formula of anything else would hide a value from every rule."""
    shown = json.dumps(
        [(resource.properties, resource.tags, resource.sku) for resource in any_deployed.resources]
    )
    assert re.findall(r'"\[[a-z][^"]{0,40}', shown) == []
    unknown = re.findall(r"<[^<>]*/providers/[^<>]*/[^/.<>]+(\.[\w.]+)>", shown)
    with_mail = any_deployed.option("monitoring", "mail")
    assert set(unknown) == MADE_BY_AZURE | (OF_MAIL if with_mail else set())


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("plain [x]", "plain [x]"),
        ("[reference('/a/b', '2024', 'full').identity.id]", "</a/b.identity.id>"),
        ("[format('{0}:{1}', reference('/a/b', '2024').c, 'd')]", "</a/b.c>:d"),
        ("[format('{0}/x', format('https://{0}', 'h'))]", "https://h/x"),
        ("[guid('a', reference('/a/b', '2024').c)]", "[guid('a', reference('/a/b', '2024').c)]"),
    ],
)
def test_formulas_are_read(formula, text):
    """As the text that Azure makes of it, with the unknown in angle brackets."""
    assert readable({"a": [formula]}) == {"a": [text]}


def test_a_difference_is_named_by_its_resource_and_its_place():
    """Whatever its kind: bicep snapshot --mode validate overlooks outputs, dependencies and batch sizes."""
    before = {
        "resources": [{"id": "/a", "x": 1}, {"id": "/b", "y": {"z": True}}],
        "outputs": {"o": 1},
        "dependsOn": ["one", "two"],
    }
    after = {
        "resources": [{"id": "/b", "y": {"z": False}}, {"id": "/c"}],
        "outputs": {"p": 1},
        "dependsOn": ["one"],
    }
    assert list(snapshots.differences(before, json.loads(json.dumps(before)))) == []
    places = [line.partition(": ")[0] for line in snapshots.differences(before, after)]
    assert places == ["dependsOn.1", "outputs.o", "outputs.p", "resources./a", "resources./b.y.z", "resources./c"]  # fmt: skip


@pytest.fixture
def kept_here(tmp_path, monkeypatch):
    """A folder for kept files, which has two."""
    folder = tmp_path / "tests/deployment/snapshots"
    folder.parent.mkdir(parents=True)
    monkeypatch.setattr(snapshots, "ROOT", tmp_path)
    monkeypatch.setattr(snapshots, "KEPT", folder)
    snapshots.write({"one": {"b": 1, "a": [2]}, "gone": {}})
    return folder


def test_what_is_written_fits_until_something_changes(kept_here):
    """Each file that does not fit is named; one that nothing makes any more too, until it is written anew."""
    made = {"one": {"a": [2], "b": 1}, "new": {"c": None}}
    with pytest.raises(StackError) as caught:
        snapshots.compare(made | {"one": {"a": [3], "b": 1}, "gone": {"x": 1}})
    assert {fault.code for fault in caught.value.faults} == {DevelopmentCode.SNAPSHOT_OUTDATED}
    names = [fault.place.rpartition("/")[2] for fault in caught.value.faults]
    assert names == ["gone.json", "new.json", "one.json"]
    snapshots.write(made)
    snapshots.compare(made)
    assert sorted(path.name for path in kept_here.iterdir()) == ["new.json", "one.json"]
    assert (kept_here / "one.json").read_text().splitlines()[1] == ' "a": ['


def test_a_changed_file_or_set_is_noticed_without_a_compiler(kept_here, tmp_path, monkeypatch):
    """But not another kind of line ends, as a checkout on Windows has."""
    same, changed, gone = (tmp_path / name for name in ("same.kql", "changed.kql", "gone.kql"))
    for file in (same, changed, gone):
        file.write_text("traces\n| take 1\n")
    read = {file.name: snapshots.digest(file) for file in (same, changed, gone)}
    given = {"parameters": snapshots.REQUIRED, "options": {}}
    snapshots.write({snapshots.SOURCES: {"files": read}, "one": given, "other": given})
    monkeypatch.setattr(snapshots, "sets", lambda _: {"one": {}, "other": {}})
    assert snapshots.outdated() == []
    same.write_bytes(b"traces\r\n| take 1\r\n")
    changed.write_text("traces\n| take 2\n")
    gone.unlink()
    other = {"options": {"app": {"maximumInstances": 1}}}
    monkeypatch.setattr(snapshots, "sets", lambda _: {"one": {}, "other": other, "new": {}})
    assert snapshots.outdated() == ["changed.kql", "gone.kql", "other", "new"]


def test_a_compiler_that_ends_is_named_with_its_words(tmp_path):
    """Such as one that can write to no home folder."""
    program = tmp_path / "bicep"
    program.write_text("#!/bin/sh\necho no home >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(StackError) as caught, compiler.running(str(program)) as running:
        running.compile(bicep.MAIN)
    [fault] = caught.value.faults
    assert (fault.code, fault.facts) == (DevelopmentCode.BICEP_ENDED, {"output": "no home"})


def test_the_command_fails_without_a_compiler():
    """It could compare nothing."""
    command = [sys.executable, "-m", "development.snapshots"]
    environment = {"PATH": "", "HOME": "/nowhere", "PYTHONPATH": MODULES}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 1
    assert f"[{DevelopmentCode.BICEP_MISSING}]" in ran.stderr


@pytest.fixture(scope="module")
def real():
    """The compiler of this machine, which answers all that is asked here."""
    if not (found := bicep.find()):
        pytest.skip("no bicep: make bicep says how to get one")
    with compiler.running(found) as running:
        yield running


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"environmentName": ""}, "BCP333"),
        ({"environmentName": "x" * 41}, "BCP332"),
        ({"location": ""}, "BCP333"),
        ({"operatorEmail": ""}, "BCP333"),
        ({"redundancy": "local"}, "BCP033"),
        ({"networkIsolation": "yes"}, "BCP033"),
        ({"monthlyBudget": 1}, "BCP259"),
    ],
)
def test_wrong_parameters_are_refused(real, template, tmp_path, wrong, code):
    """Before anything is deployed. The last is none of the template's."""
    [name] = wrong
    parameters = {**snapshots.REQUIRED, **wrong}
    file = snapshots.Snapshots(real, tmp_path).write(template, parameters)
    found = [
        (diagnostic.code, diagnostic.line)
        for diagnostic in real.diagnostics(file)
        if diagnostic.level == "Error"
    ]
    assert found == [(code, 2 + list(parameters).index(name))]
    with pytest.raises(StackError) as caught:
        real.snapshot(file)
    assert caught.value.faults[0].code == DevelopmentCode.TEMPLATE_REFUSED


WRONG_OPTIONS = {
    "app": {
        "pythonVersion": "3.9",
        "instanceMemoryMB": 1024,
        "maximumInstances": 0,
        "alwaysReadyInstances": -1,
        "httpConcurrency": 1001,
        "updateStrategy": "Slots",
        "settings": {"BUCKETS": 32},
        "unknown": True,
    },
    "data": {"retentionDays": -1, "lock": "yes"},
    "monitoring": {
        "sweepMissingMinutes": 7,
        "logDays": 3,
        "alertIntervalSeconds": 59,
        "alertRules": [{"channel": "pager"}],
    },
}
"""Of each limit and list one value that is outside; and an option that there is not."""


def test_wrong_options_are_refused(real, tmp_path):
    """Before anything is deployed: the files are compared with their types."""
    with pytest.raises(StackError) as caught:
        snapshots.Snapshots(real, tmp_path).template(WRONG_OPTIONS)
    [fault] = caught.value.faults
    codes = Counter(re.findall(r" Error (BCP\d+): ", str(fault.facts["diagnostics"])))
    assert codes == {"BCP036": 7, "BCP327": 1, "BCP328": 5, "BCP037": 1}


SEEDED = [
    ("modules/private-endpoints.bicep", "@batchSize(1)\n", "", (snapshots.COMPILED, ".copy.batchSize")),
    ("main.bicep", "    privateEndpoints\n  ]", "  ]", (snapshots.COMPILED, "resources.site.dependsOn.10")),
    ("main.bicep", "output AZURE_LOCATION string = location", "", ("default", "outputs.AZURE_LOCATION")),
    ("modules/vault.bicep", "softDeleteRetentionInDays: 90", "softDeleteRetentionInDays: 7", ("vault", ".properties.softDeleteRetentionInDays")),
]  # fmt: skip
"""A batch size, a dependency, an output and a property: a file, what stands there, what replaces it, and where it is seen."""


def test_every_seeded_change_is_found(real, contents, tmp_path, monkeypatch):
    """Also those that the compiler's own comparison does not see."""
    infra = shutil.copytree(ROOT / "infra", tmp_path / "changed")
    for file, before, after, _ in SEEDED:
        text = (infra / file).read_text()
        assert before in text
        (infra / file).write_text(text.replace(before, after))
    monkeypatch.setattr(snapshots, "INFRA", infra)
    made = snapshots.Snapshots(real, tmp_path)
    wanted = snapshots.sets(BUSINESS)
    found = {name: made.take(wanted[name]) for name in ("default", "vault")}
    found[snapshots.COMPILED] = snapshots.without_noise(made.template())
    for *_, (name, end) in SEEDED:
        lines = snapshots.differences(contents[name], found[name])
        assert [line for line in lines if line.partition(": ")[0].endswith(end)], (name, end)


def test_two_snapshots_of_one_set_are_equal(real, tmp_path):
    """Else each comparison would find what nobody has changed."""
    made = snapshots.Snapshots(real, tmp_path)
    given = snapshots.sets(BUSINESS)["isolated"]
    first, second = made.take(given), made.take(given)
    assert snapshots.text_of(first) == snapshots.text_of(second)
    assert any(resource["type"] == ROLE_ASSIGNMENT for resource in first["resources"])
