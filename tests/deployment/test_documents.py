"""What the documents say of the deployment is so."""

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import TypeAdapter

from bench.counted import measured
from bench.prices import (
    COUNTED_AT_A_RATE,
    LIST,
    PRICES,
    SECONDS,
    Deployed,
    idle,
    of_an_order,
    written,
)
from bench.simulated import Limits, Setup
from bench.simulation import Simulation, workflow_of
from development import parameters
from development.servicebus_config import ROOT
from engine.azure.settings import Settings
from shop.business import SHOP
from tests.support.deployed_resources import ROLE_ASSIGNMENT
from tests.support.deploying import AGENTS

README = (ROOT / "README.md").read_text()
OPERATIONS = ROOT / "docs/operations"
DEPLOY, PARAMETERS, RESOURCES, RUNBOOKS, SECURITY, COST, SCALE, DISASTER = (
    (OPERATIONS / f"{name}.md").read_text()
    for name in (
        *("deploy", "parameters", "resources", "runbooks"),
        *("security", "cost", "scale", "disaster-recovery"),
    )
)
EMBEDDED = (ROOT / "docs/reference/embedded-host.md").read_text()
MECHANISMS = (ROOT / "docs/explanation/mechanisms.md").read_text()
ALTERNATIVES = (ROOT / "docs/explanation/alternatives.md").read_text()
HOST = json.loads((ROOT / "host.json").read_text())
LOCK, POLL = (
    TypeAdapter(timedelta).validate_python(HOST["singleton"][name])
    for name in ("listenerLockPeriod", "listenerLockRecoveryPollingInterval")
)


def rows(text, first):
    """The cells of a table, of which the first heading is known."""
    lines = text.split(f"| {first} |", 1)[1].splitlines()[2:]
    table = lines[
        : next(
            (number for number, line in enumerate(lines) if not line.startswith("|")), len(lines)
        )
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_every_choice_is_described_with_its_default(template):
    """The tables have the variables that azd passes on, but the agents', and the options, with their defaults.

    The kept template has its keys sorted; the tables follow the template itself.
    """
    written = parameters.written(PARAMETERS, template).splitlines()
    assert sorted(written) == sorted(PARAMETERS.splitlines()), parameters.COMMAND
    script = (ROOT / "infra/hooks/postprovision.py").read_text()
    [amount] = re.findall(r'^DEFAULT = "(\d+)"$', script, re.MULTILINE)
    assert f"`MONTHLY_BUDGET` ({amount})" in PARAMETERS


def test_what_every_switch_leaves_behind_is_described(template):
    """Every switch among parameters and options; who turns one off has to know what stays (deployment.md 6 to 8)."""
    declarations = [template["parameters"]]
    declarations += [
        template["definitions"][kind]["properties"] for kind in parameters.OPTIONS.values()
    ]
    variables = dict(switches())
    named = set(
        re.findall(r"`(\w+)`", "".join(cells[0] for cells in rows(PARAMETERS, "turned off")))
    )
    for declared in declarations:
        for name, declaration in declared.items():
            if declaration["type"] == "bool":
                assert variables.get(name, name) in named


def switches():
    """Yield each parameter that azd passes, with its variable."""
    passed = json.loads((ROOT / "infra/main.parameters.json").read_text())["parameters"]
    for name, parameter in passed.items():
        if isinstance(parameter["value"], str):
            yield name, re.findall(r"\w+", parameter["value"])[0]


def test_every_alert_is_described(deployments):
    """Each rule that is deployed stands in the table, and no other."""
    kinds = ("/metricAlerts", "/scheduledQueryRules")
    rules = [rule.name for kind in kinds for rule in deployments["default"].of_type(kind)]
    listed = {f"[{name}](#alert-{name})" for name in (rule.rpartition("-")[0] for rule in rules)}
    assert {cells[0] for cells in rows(RUNBOOKS, "alert")} == listed


def test_every_role_is_described_and_used(deployments):
    """The roles of the table are those that the template assigns, with some option; no other lies ready for somebody."""
    used = {
        assignment.properties["roleDefinitionId"].rpartition("/")[2]
        for deployed in deployments.values()
        for assignment in deployed.of_type(ROLE_ASSIGNMENT)
    }
    roles = json.loads((ROOT / "infra/roles.json").read_text())
    assert used == set(roles.values())
    described = " ".join(
        cells[1].replace("…", "Azure Service Bus") for cells in rows(SECURITY, "identity")
    )
    for role in roles:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", role)
        wanted = words[0].upper() + words[1:]
        assert wanted.lower().replace(" ", "") in described.lower().replace(" ", ""), role


def test_what_the_page_about_the_embedded_host_proves_by_a_test_has_that_test():
    """Each row has a test or a reason, and each test that it names is there."""
    shortened = dict(re.findall(r"`((?:host|broker)/\w+)` (?:stands )?for\s+`([^`]+)`", EMBEDDED))
    named = re.findall(r"`([\w/.]+)::(\w+)`", EMBEDDED)
    assert len(named) > 20
    for file, test in named:
        places = [
            ROOT / tests / shortened.get(file, file)
            for tests in ("tools/functions_alone/tests", "tests")
        ]
        text = "".join(place.read_text() for place in places if place.exists())
        assert re.search(rf"def {test}\(", text), f"{file}::{test}"
    lines = [line for line in EMBEDDED.splitlines() if line.startswith("|")]
    assert [
        line for line in lines if not line.strip("| ").strip() or line.rstrip().endswith("| |")
    ] == []


def test_what_the_page_about_disasters_switches_is_there(functions):
    """Each setting of the app by its name, each function by its name; nothing that an order goes through stays on."""
    [block] = re.findall(r"```json\n(.*?)```", DISASTER, re.DOTALL)
    given = json.loads(block)
    off = {name.split(".")[1] for name in given if name.startswith("AzureWebJobs.")}
    settings = {name for name in given if not name.startswith("AzureWebJobs.")}
    work = {"submission_record", "scheduler_order_ready", "scheduler_poll", "supervisor_sweep"}
    assert off == work & set(functions)
    assert set(re.findall(r"AzureWebJobs\.(\w+)\.Disabled=true", DISASTER)) == off
    assert settings <= {field.alias for field in Settings.model_fields.values()}
    rows_of = {name.split("__")[1] for name in settings}
    assert rows_of == {f"{service}ServiceUri" for service in ("table", "queue", "blob")}


def test_what_the_page_says_of_costs_is_computed_from_prices_and_counts():
    """By the script, so that neither another price nor another count is forgotten there; each price has a source."""
    assert written(COST) == COST, "make prices ARGS=--write"
    assert re.fullmatch(r"20\d\d-[01]\d", LIST["published"])
    assert all(
        price["source"].startswith("https://azure.microsoft.com/") for price in PRICES.values()
    )


def of_the_shop(functions):
    """How many functions the shop has for each kind of trigger; an agent has two, for requests and for replies."""
    names = {agent.name.replace("-", "_") for agent in AGENTS}
    of_agents = {f"agent_{name}" for name in names} | {
        f"scheduler_{name}_responses" for name in names
    }
    assert of_agents <= functions.keys()
    counted = Counter(
        function["type"] for name, function in functions.items() if name not in of_agents
    )
    counted["serviceBusTrigger"] += 2 * len(SHOP.agents)
    return counted


def test_costs_are_those_of_what_is_deployed(deployments, functions):
    """Rules, triggers, schedules, buckets and memory are the template's; timers are counted by their schedules.

    A rule that is switched off costs nothing.
    """
    usual = deployments["default"]
    kinds = Counter(
        resource.type.rpartition("/")[2]
        for resource in usual.resources
        if resource.properties.get("enabled") is not False
    )
    triggers = of_the_shop(functions)
    settings = usual.settings
    test = usual.one("/webtests")
    scale = usual.site.properties["functionAppConfig"]["scaleAndConcurrency"]
    deployed = Deployed()
    assert deployed == Deployed(
        memory_gb=scale["instanceMemoryMB"] / 1024,
        buckets=int(settings["BUCKETS"]),
        sweeps=a_minute(settings["SUPERVISOR_SCHEDULE"]),
        relays=a_minute(settings["OUTBOX_SCHEDULE"]),
        polls=a_minute(settings["SCHEDULER_POLL_SCHEDULE"]),
        watches=a_minute(settings["STALL_DETECTOR_SCHEDULE"]),
        notifies=a_minute(settings["NOTIFY_SCHEDULE"]),
        locks=triggers["timerTrigger"],
        lock_seconds=LOCK.total_seconds(),
        bus_triggers=triggers["serviceBusTrigger"],
        queue_triggers=triggers["queueTrigger"],
        metric_rules=kinds["metricAlerts"],
        log_rules=kinds["scheduledQueryRules"],
        places=len(test.properties["Locations"]),
        test_seconds=test.properties["Frequency"],
    )
    month = f"idle system costs about ${sum(line.dollars for line in idle(deployed)):.0f} a month"
    assert month in README
    assert month in DEPLOY


def test_the_price_of_an_order_is_that_of_the_page():
    """Rounded, in the README."""
    least, most = of_an_order(measured("shop", "each"), *COUNTED_AT_A_RATE).values()
    assert f"[${least:.4f} to ${most:.3f}](docs/operations/cost.md)" in " ".join(README.split())


def test_what_the_pages_say_of_a_dead_hosts_timers_follows_from_the_file():
    """The lock has half of its time left at least; then another host asks for it (webjobs.md 9)."""
    seconds = {name: time.total_seconds() for name, time in (("lock", LOCK), ("poll", POLL))}
    least, most = seconds["lock"] / 2, seconds["lock"] + seconds["poll"]
    assert f"{least:g} to {most:g} s" in MECHANISMS
    assert most == 30, "half a minute, say README.md, limits.md and operations/operate.md"
    of_azure = replace(Deployed(), lock_seconds=60)
    for deployed in (Deployed(), of_azure):
        (line,) = [cost for cost in idle(deployed) if cost.what == "timers' locks"]
        assert f"${line.dollars:.2f} a month" in MECHANISMS


def a_minute(schedule):
    """How often a schedule comes in a minute."""
    second = schedule.split()[0]
    return 60 // int(second.removeprefix("*/")) if "*/" in second else 1


def test_as_many_groups_scale_by_themselves_as_the_page_says(functions):
    """All HTTP calls are one, each other function is another; zones cost two instances of each."""
    triggers = of_the_shop(functions)
    groups = 1 + triggers.total() - triggers["httpTrigger"]
    assert f"The shop has {groups} groups" in RESOURCES
    assert f"at a price: {groups} groups of functions" in ALTERNATIVES
    dollars = 2 * groups * 2 * SECONDS * 0.000004
    assert f"about ${round(dollars, -1):,.0f} a month" in PARAMETERS


def number(cell):
    """The number with which a cell begins, without the commas between its digits."""
    return float(re.match(r"[\d,.]+", cell)[0].replace(",", ""))  # type: ignore[index]


def test_orders_per_second_follow_from_what_an_order_takes():
    """Each part takes so much in a second, of which an order takes so much."""
    parts = rows(SCALE, "part")
    assert parts
    for name, takes, taken, orders, _ in parts:
        assert number(orders) == pytest.approx(number(takes) / number(taken), rel=0.02), name


SIMULATED_IN_A_MOMENT = 100
"""Orders a second. A higher rate takes up to half a minute."""


def simulated_rows():
    """The rows of the table about many processes, each as an argument of the test."""
    table = rows(SCALE, "orders/s")
    assert table
    for cells in table:
        rate, instances, buckets, *_ = numbers = [*map(number, cells)]
        marks = [pytest.mark.soak] if rate > SIMULATED_IN_A_MOMENT else []
        name = f"{rate:g} a second, {instances:g} instances, {buckets:g} buckets"
        yield pytest.param(numbers, id=name, marks=marks)


@pytest.mark.parametrize("numbers", [*simulated_rows()])
def test_what_the_page_about_scale_says_of_many_processes_is_what_the_model_says(numbers):
    rate, instances, buckets, queries, read, account, partition = numbers
    setup = Setup(
        workflow=workflow_of("shop"), rate=rate, process_per_function=True, instances=int(instances), buckets=int(buckets),
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
