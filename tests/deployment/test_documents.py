"""What the documents say of the deployment is so."""

import json
import re
from collections import Counter
from datetime import datetime

import pytest
from bicep_model import Template
from deploying import AGENTS, GIVEN

from adapters.settings import Settings
from bench.prices import LIST, PRICES, SECONDS, Deployed, idle, written
from bench.simulated import Limits, Setup
from bench.simulation import Simulation, workflow_of
from development.servicebus_config import ROOT
from shop.business import SHOP

README = (ROOT / "README.md").read_text()
DEPLOY = (ROOT / "docs/deploy.md").read_text()
SECURITY = (ROOT / "docs/security.md").read_text()
EMBEDDED = (ROOT / "docs/embedded-host.md").read_text()
SCALE = (ROOT / "docs/scale.md").read_text()
DURABLE = (ROOT / "docs/durable.md").read_text()


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
    script = (ROOT / "infra/hooks/postprovision.py").read_text()
    [passed["MONTHLY_BUDGET"]] = re.findall(r'^DEFAULT = "(\d+)"$', script, re.MULTILINE)
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
        places = [ROOT / tests / shortened.get(file, file) for tests in ("local/tests", "tests")]
        text = "".join(place.read_text() for place in places if place.exists())
        assert re.search(rf"def {test}\(", text), f"{file}::{test}"
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
    work = {"submission_record", "scheduler_wake", "scheduler_poll", "supervisor_sweep"}
    assert off == work & set(functions)
    assert set(re.findall(r"AzureWebJobs\.(\w+)\.Disabled=true", page)) == off
    assert settings <= {field.alias for field in Settings.model_fields.values()}
    rows_of = {name.split("__")[1] for name in settings}
    assert rows_of == {f"{service}ServiceUri" for service in ("table", "queue", "blob")}


def test_what_the_page_says_of_costs_is_computed_from_prices_and_counts():
    """By the script, so that neither another price nor another count is forgotten there; each price has a source."""
    assert written(DEPLOY) == DEPLOY, "python -m bench.prices --write"
    assert re.fullmatch(r"20\d\d-[01]\d", LIST["published"])
    assert all(
        price["source"].startswith("https://azure.microsoft.com/") for price in PRICES.values()
    )


def test_a_price_says_of_when_it_is():
    """In the same part of the page; prices change, and these stay."""
    when = datetime.fromisoformat(f"{LIST['published']}-01").strftime("%B %Y")
    found = []
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        parts = re.split(r"^#+ ", text, flags=re.MULTILINE)
        found += [(path.name, part) for part in parts if re.search(r"\$\d", part)]
    assert {name for name, _ in found} == {"README.md", "deploy.md"}
    assert [name for name, part in found if when not in " ".join(part.split())] == []


def of_the_shop(functions):
    """How many functions the shop has for each kind of trigger; an agent has two, for requests and for replies."""
    names = {agent.name.replace("-", "_") for agent in AGENTS}
    of_agents = {f"agent_{name}" for name in names} | {
        f"scheduler_{name}_responses" for name in names
    }
    assert of_agents <= functions.keys()
    counted = Counter(each["type"] for name, each in functions.items() if name not in of_agents)
    counted["serviceBusTrigger"] += 2 * len(SHOP.agents)
    return counted


def test_costs_are_those_of_what_is_deployed(functions):
    """Rules, triggers, schedules, buckets and memory are the template's; timers are counted by their schedules."""
    template = Template(ROOT / "infra/main.bicep", GIVEN)
    kinds = Counter(each.type.rpartition("/")[2] for each in template.resources)
    triggers = of_the_shop(functions)
    [settings] = [each.properties for each in template.resources if each.name == "appsettings"]
    [site] = [each for each in template.resources if each.type == "Microsoft.Web/sites"]
    [test] = [each for each in template.resources if each.type.endswith("/webtests")]
    scale = site.properties["functionAppConfig"]["scaleAndConcurrency"]
    deployed = Deployed()
    assert deployed == Deployed(
        memory_gb=scale["instanceMemoryMB"] / 1024,
        buckets=int(settings["BUCKETS"]),
        sweeps=a_minute(settings["SUPERVISOR_SCHEDULE"]),
        relays=a_minute(settings["OUTBOX_SCHEDULE"]),
        polls=a_minute(settings["SCHEDULER_POLL_SCHEDULE"]),
        watches=a_minute(settings["WATCH_SCHEDULE"]),
        bus_triggers=triggers["serviceBusTrigger"],
        queue_triggers=triggers["queueTrigger"],
        metric_rules=kinds["metricAlerts"],
        log_rules=kinds["scheduledQueryRules"],
        places=len(test.properties["Locations"]),
        test_seconds=test.properties["Frequency"],
    )
    assert (
        f"An idle system costs about ${sum(each.dollars for each in idle(deployed)):.0f} a month"
        in README
    )


def a_minute(schedule):
    """How often a schedule comes in a minute."""
    second = schedule.split()[0]
    return 60 // int(second.removeprefix("*/")) if "*/" in second else 1


def test_as_many_groups_scale_by_themselves_as_the_page_says(functions):
    """All HTTP calls are one, each other function is another; zones cost two instances of each."""
    triggers = of_the_shop(functions)
    groups = 1 + triggers.total() - triggers["httpTrigger"]
    assert f"With the shop's {groups} that bounds" in DEPLOY
    assert f"at a price: {groups} groups of functions" in DURABLE
    dollars = 2 * groups * 2 * SECONDS * 0.000004
    assert f"about ${round(dollars, -1):,.0f} a month" in DEPLOY


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
    assert parts
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
