"""What the documents say of the deployment is so."""

import json
import re

import pytest
from bicep_model import Template
from deploying import GIVEN

from adapters.settings import Settings
from bench.simulated import Limits, Setup
from bench.simulation import Simulation, workflow_of
from local.servicebus_config import ROOT

DEPLOY = (ROOT / "docs/deploy.md").read_text()
SECURITY = (ROOT / "docs/security.md").read_text()
EMBEDDED = (ROOT / "docs/embedded-host.md").read_text()
SCALE = (ROOT / "docs/scale.md").read_text()


def rows(text, first):
    """The cells of a table, of which the first heading is known."""
    lines = text.split(f"| {first} |", 1)[1].splitlines()[2:]
    table = lines[
        : next(
            (number for number, line in enumerate(lines) if not line.startswith("|")), len(lines)
        )
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_every_choice_is_described_with_its_default():
    """The table of what can be chosen has the variables that azd passes on, but the agents', and their defaults."""
    parameters = json.loads((ROOT / "infra/main.parameters.json").read_text())["parameters"]
    for of_many in ("serviceSettings", "appSettings"):
        del parameters[of_many]
    passed = dict(
        re.fullmatch(r"\$\{(\w+)=?(.*)\}", each["value"]).groups()  # type: ignore[union-attr]
        for each in parameters.values()
    )
    described = {
        name: cells[1].strip("`")
        for cells in rows(DEPLOY, "name")
        for name in re.findall(r"`(\w+)`", cells[0])
    }
    asked_by_azd = {"AZURE_ENV_NAME", "AZURE_LOCATION"}
    assert set(described) == set(passed) - asked_by_azd
    for name, default in described.items():
        assert default == (passed[name] or ("asked for" if name == "OPERATOR_EMAIL" else ""))


def test_every_alert_is_described():
    """Each rule that is deployed stands in the table, and no other."""
    template = Template(ROOT / "infra/main.bicep", GIVEN | {"dailyLogGigabytes": 1})
    rules = [
        each.name
        for each in template.resources
        if each.type.endswith(("metricAlerts", "scheduledQueryRules"))
    ]
    assert {cells[0] for cells in rows(DEPLOY, "alert")} == {
        name.rpartition("-")[0] for name in rules
    }


def test_every_role_is_described():
    """The roles of the table are those that the templates assign."""
    used = re.findall(
        r"roleDefinitions',\s*roles\.(\w+)",
        "".join(p.read_text() for p in ROOT.glob("infra/modules/*")),
    )
    described = " ".join(
        cells[1].replace("…", "Azure Service Bus") for cells in rows(SECURITY, "identity")
    )
    assert used
    for role in set(used) | set(json.loads((ROOT / "infra/roles.json").read_text())):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", role)
        wanted = words[0].upper() + words[1:]
        assert wanted.lower().replace(" ", "") in described.lower().replace(" ", ""), role


def test_only_the_roles_that_are_used_are_listed():
    """No role lies ready for somebody to assign it."""
    text = "".join(path.read_text() for path in ROOT.glob("infra/modules/*.bicep"))
    assert set(json.loads((ROOT / "infra/roles.json").read_text())) == set(
        re.findall(r"(?<!/)\broles\.(\w+)", text)
    )


def test_what_the_page_about_the_embedded_host_proves_by_a_test_has_that_test():
    """Each row has a test or a reason, and each test that it names is there."""
    shortened = dict(re.findall(r"`((?:host|broker)/\w+)` (?:stands )?for\s+`([^`]+)`", EMBEDDED))
    named = re.findall(r"`([\w/.]+)::(\w+)`", EMBEDDED)
    assert len(named) > 20
    for file, test in named:
        assert re.search(
            rf"def {test}\(", (ROOT / "tests" / shortened.get(file, file)).read_text()
        ), f"{file}::{test}"
    lines = [line for line in EMBEDDED.splitlines() if line.startswith("|")]
    assert [
        line for line in lines if not line.strip("| ").strip() or line.rstrip().endswith("| |")
    ] == []


def test_what_the_page_about_disasters_switches_is_there(functions):
    """Each setting of the app by its name, each function by its name; nothing that an order goes through stays on."""
    page = (ROOT / "docs/disaster.md").read_text()
    [block] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    given = json.loads(block)
    off = {name.split(".")[1] for name in given if name.startswith("AzureWebJobs.")}
    settings = {name for name in given if not name.startswith("AzureWebJobs.")}
    assert off == {"submission_record", "scheduler_poll", "supervisor_sweep"} & set(functions)
    assert settings <= {field.alias for field in Settings.model_fields.values()}
    rows_of = {name.split("__")[1] for name in settings}
    assert rows_of == {f"{service}ServiceUri" for service in ("table", "queue", "blob")}


def test_what_an_idle_month_costs_is_the_sum_of_its_lines():
    """Dollars; and the rules that are counted there are those that are deployed."""
    lines = rows(DEPLOY.split("**Idle**")[1], "how much")
    amounts = {cells[0]: cells[3] for cells in lines}
    total = number(amounts.pop("**together**").strip("* about$"))
    paid = [number(amount.lstrip("$")) for amount in amounts.values() if amount]
    assert total == pytest.approx(sum(paid), abs=5)
    [rules] = [cells[1] for cells in lines if cells[0] == "alert rules"]
    [metrics, queries] = (int(each) for each in re.findall(r"(\d+) on", rules))
    found = Template(ROOT / "infra/main.bicep", GIVEN).resources
    assert metrics == sum(each.type.endswith("metricAlerts") for each in found)
    assert queries == sum(each.type.endswith("scheduledQueryRules") for each in found)


def number(cell):
    """The number with which a cell begins, without the commas between its digits."""
    return float(re.match(r"[\d,.]+", cell)[0].replace(",", ""))  # type: ignore[index]


def test_what_the_page_about_scale_says_of_an_order_was_measured():
    """Each number is that of the line of the benchmark which is kept."""
    line = json.loads((ROOT / "bench/measured/shop.json").read_text())
    counted = rows(SCALE, "an order of the shop")
    assert len(counted) > 8
    for what, one, each in counted:
        (name,) = re.findall(r"`(\w+)`", what)
        for cell, figures in ((one, line), (each, line["each"])):
            assert number(cell) == round(figures[f"latency_{name}"], 1), name


def test_orders_per_second_follow_from_what_an_order_takes():
    """Each part takes so much in a second, of which an order takes so much."""
    parts = rows(SCALE, "part")
    assert len(parts) > 5
    for name, takes, of_an_order, orders, _ in parts:
        assert number(orders) == pytest.approx(number(takes) / number(of_an_order), rel=0.02), name


def test_what_the_page_about_scale_says_of_many_processes_is_what_the_model_says():
    """For the rates that are simulated in a moment."""
    found = 0
    for cells in rows(SCALE, "orders/s"):
        rate, instances, buckets, queries, read, account, partition = map(number, cells)
        if rate > 50:
            continue
        setup = Setup(
            workflow=workflow_of("shop"), rate=rate, each=True, instances=int(instances), buckets=int(buckets),
            hop=0.01, call=0.5, limits=Limits(bus_credits=1_000_000),
        )  # fmt: skip
        simulation = Simulation(setup).run()
        costs, shares = simulation.per_order(), simulation.shares()
        assert (queries, read) == (
            round(costs["table_look_queries"], 1),
            round(costs["table_entities_read"]),
        )
        assert (account, partition) == (
            round(100 * shares["table account"]),
            round(100 * shares["partition"]),
        )
        found += 1
    assert found
