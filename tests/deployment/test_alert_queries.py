"""Queries of alerts and workbook: what they look for is what the app says."""

import ast
import functools
import json
import re

import click
import pytest

from development.servicebus_config import ROOT
from engine.decisions.operator_actions import RUNS
from engine.domain.history import EVENT_INFO
from engine.domain.messages import OrderReady
from engine.domain.statuses import OrderStatus, ProcessState, StepState
from operations.api.requests import OperatorRequest
from operations.api.retention import erase
from operations.cli.main import main
from tests.support.builders import ORDER_ID, PAYLOAD, answer
from tests.support.deployed_resources import declared, type_and_name
from tests.support.memory_world import World

FOLDERS = (
    "engine",
    "shop",
    "submission",
    "scheduler",
    "agents",
    "supervisor",
    "operations",
)
RUNBOOKS = (ROOT / "docs/operations/runbooks.md").read_text()
FORM = ["What happened", "Effect", "What to do", "How you see that it is over"]
"""The parts of a runbook."""
WORKBOOK = json.loads((ROOT / "infra/workbook.json").read_text())
QUERIES = {
    path.name: path.read_text() for path in sorted((ROOT / "infra/queries").glob("*.kql"))
} | {item["name"]: item["content"]["query"] for item in WORKBOOK["items"] if item["type"] == 3}
STEP = re.compile(r'step\[1\] == "(\w+)"')
PARAMETER = re.compile(r"\{([A-Za-z]\w*)(?::grain)?\}")


@functools.cache
def logged():
    """The fields of every line that the app logs, by its constant message."""
    found = {}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log."):
                extra = next(
                    (keyword.value for keyword in node.keywords if keyword.arg == "extra"), None
                )
                found.setdefault(node.args[0].value, set()).update(fields_of(extra, path))
    return found


def fields_of(extra, path):
    """The names in a dictionary that is passed, or that a function of the same file returns."""
    if isinstance(extra, ast.Call):
        name = extra.func.id
        functions = (
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        )
        [function] = [candidate for candidate in functions if candidate.name == name]
        extra = next(node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return {key.value for key in getattr(extra, "keys", ()) if key}


@pytest.mark.parametrize("name", QUERIES)
def test_lines_that_are_looked_for_are_logged(name):
    """Each message is one of the app's, and each field one that is passed with it."""
    lines, query = logged(), QUERIES[name]
    assert len(lines) > 10
    messages = [
        beginning.strip() for beginning in re.findall(r'message startswith "([^"]+)"', query)
    ]
    assert set(messages) <= set(lines)
    fields = set(re.findall(r"\b(?:fields|change)\.(\w+)", query))
    assert fields <= set().union(*(lines[message] for message in messages), set())
    assert messages or query.startswith(("requests", "Usage"))


def test_lines_that_are_looked_for_are_never_sampled_away():
    """An alert may rest on a single one."""
    sampling = json.loads((ROOT / "host.json").read_text())["logging"]["applicationInsights"][
        "samplingSettings"
    ]
    assert "Trace" in sampling["excludedTypes"].split(";")


def test_no_line_of_the_app_passes_for_one_of_the_host():
    """A service may answer with the host's own words, which an agent logs: what functions log is left out."""
    assert (
        '(message has "Moving message to queue" and tostring(customDimensions.Category) !startswith "Function.")'
        in (QUERIES["poison.kql"])
    )


@pytest.mark.parametrize("name", QUERIES)
def test_functions_that_are_looked_for_exist(name, functions):
    """By their whole name, or by its beginning."""
    query = QUERIES[name]
    assert set(re.findall(r'\bname == "(\w+)"', query)) <= set(functions)
    for prefix in re.findall(r'\bname startswith "(\w+)"', query):
        assert any(function.startswith(prefix) for function in functions)


RULES = {
    "order-events": (2, "GreaterThan", 0, "PT10M", "PT5M", ["order.changed"]),
    "outage": (1, "GreaterThan", 0, "PT10M", "PT5M", [
        "outage.lasts", "right.missing", "clock.off", "supervisor.not_recovered", "retention.behind",
        "channel.refused", "channel.away",
    ]),
    "poison": (1, "GreaterThan", 0, "PT10M", "PT5M", ["poison.kept"]),
    "no-sweep": (0, "LessThan", 1, "PT15M", "PT5M", ["supervisor.swept"]),
    "circuit-open": (2, "GreaterThan", 0, "PT10M", "PT5M", ["agent.circuit_opened"]),
    "waiting": (1, "GreaterThan", 0, "PT10M", "PT5M", ["orders.waiting"]),
    "unrecorded": (1, "GreaterThan", 0, "PT30M", "PT5M", [
        "customers.order_placed", "submission.recorded", "submission.recorded",
    ]),
    "server-errors": (2, "GreaterThan", 5, "PT10M", "PT5M", []),
    "instances-at-limit": (2, "GreaterThan", 0, "PT10M", "PT5M", []),
    "log-nearly-full": (1, "GreaterThan", 0, "P1D", "PT1H", []),
}  # fmt: skip
"""Of each rule: severity, when it fires, how far back and how often it looks, and at which lines."""
TOPIC, BUS, ACCOUNT = (
    "Microsoft.EventGrid/topics",
    "Microsoft.ServiceBus/namespaces",
    "Microsoft.Storage/storageAccounts",
)
METRICS = {
    "order-events-undelivered": (1, "GreaterThan", 0, "PT5M", "PT1M", "DeadLetteredCount", "Total", TOPIC),
    "order-events-dropped": (1, "GreaterThan", 0, "PT5M", "PT1M", "DroppedEventCount", "Total", TOPIC),
    "order-events-refused": (2, "GreaterThan", 0, "PT5M", "PT1M", "PublishFailCount", "Total", TOPIC),
    "dead-lettered": (1, "GreaterThan", 0, "PT5M", "PT1M", "DeadletteredMessages", "Maximum", BUS),
    "bus-throttled": (2, "GreaterThan", 0, "PT5M", "PT1M", "ThrottledRequests", "Total", BUS),
    "storage-throttled": (2, "GreaterThan", 0, "PT5M", "PT1M", "Transactions", "Total", ACCOUNT),
}  # fmt: skip
"""The same of those on metrics, which are those of learn.microsoft.com/azure/azure-monitor/reference/metrics-index."""


@pytest.fixture(scope="module")
def rules(deployments):
    """The rules of both kinds by name, each with its one criterion."""
    named = {name: alert.properties for name, alert in alerts(deployments["default"]).items()}
    del named["unavailable"]
    return {name: (rule, *rule["criteria"]["allOf"]) for name, rule in named.items()}


def alerts(deployed):
    """The rules of both kinds by name."""
    found = deployed.of_type("/scheduledQueryRules") + deployed.of_type("/metricAlerts")
    return {alert.name.rpartition("-")[0]: alert for alert in found}


@pytest.mark.proves("SUP-7")
def test_every_rule_fires_for_what_it_says(rules):
    """Severity, comparison, window, frequency and lines; one look that finds them is enough."""
    found = {}
    for name, (rule, criterion) in rules.items():
        fires = (criterion["operator"], criterion["threshold"])
        times = (rule["windowSize"], rule["evaluationFrequency"])
        found[name] = (rule["severity"], *fires, *times, *looks_at(rule, criterion))
    assert found == RULES | METRICS


def looks_at(rule, criterion):
    """The lines of a query, or a metric, how it is put together, and of what it is one."""
    if "query" not in criterion:
        [scope] = rule["scopes"]
        assert type_and_name(scope)[0] == criterion["metricNamespace"]
        return criterion["metricName"], criterion["timeAggregation"], criterion["metricNamespace"]
    assert criterion["timeAggregation"] == "Count"
    assert criterion["failingPeriods"] == dict.fromkeys(
        ("numberOfEvaluationPeriods", "minFailingPeriodsToAlert"), 1
    )
    messages = re.findall(r'message startswith "([^"]+)"', criterion["query"])
    return ([text.strip() for text in messages],)


def test_throttling_is_counted_by_the_answers_that_mean_it(rules):
    """Of all requests to the account, the rule counts those alone.

    learn.microsoft.com/azure/storage/common/monitor-storage-reference, dimension ResponseType.
    """
    _, criterion = rules["storage-throttled"]
    [dimension] = criterion["dimensions"]
    assert (dimension["name"], dimension["operator"]) == ("ResponseType", "Include")
    assert set(dimension["values"]) == {
        "ServerBusyError",
        "ServerTimeoutError",
        "ClientThrottlingError",
        "ClientAccountRequestThrottlingError",
    }
    assert {name for name, (_, rule) in rules.items() if rule.get("dimensions")} == {
        "order-events",
        "storage-throttled",
    }


def test_rules_that_know_a_limit_know_the_one_that_was_chosen(deployments):
    """Instances, and the gigabytes of a day; without a limit for those its rule is deployed switched off (deployment.md 8)."""
    tuned, usual = deployments["tuned"], deployments["default"]
    queries = {
        name: alert.properties["criteria"]["allOf"][0]["query"]
        for name, alert in alerts(tuned).items()
        if alert.type.endswith("/scheduledQueryRules")
    }
    assert "instances >= 7\n" in queries["instances-at-limit"]
    assert "gigabytes > 0.8 * 5\n" in queries["log-nearly-full"]
    for deployed, quota, is_on in ((tuned, 5, True), (usual, -1, False)):
        workspace = deployed.one("/workspaces")
        assert workspace.properties["workspaceCapping"] == {"dailyQuotaGb": quota}
        assert alerts(deployed)["log-nearly-full"].properties["enabled"] is is_on
        assert alerts(deployed)["log-nearly-full"].properties["scopes"] == [workspace.id]


def test_somebody_asks_from_outside_whether_the_app_is_healthy(any_deployed):
    """Where it may be called; two of three places have to miss it. Else it is deployed switched off (deployment.md 7)."""
    test = any_deployed.one("/webtests")
    assert test.properties["Request"]["RequestUrl"].endswith("/api/health")
    rule = alerts(any_deployed)["unavailable"]
    criteria = rule.properties["criteria"]
    assert (criteria["webTestId"], criteria["failedLocationCount"]) == (test.id, 2)
    assert len(test.properties["Locations"]) == 3
    assert rule.properties["windowSize"] == "PT30M"
    assert test.properties["Frequency"] == 15 * 60
    wanted = any_deployed.option("monitoring", "availabilityTest")
    expected = wanted and "frontDoorId" not in any_deployed.parameters
    assert test.properties["Enabled"] is expected
    assert rule.properties["enabled"] is expected


def test_nobody_asks_from_outside_where_it_is_not_wanted_or_not_possible(deployments):
    """Each of the two reasons by itself."""
    enabled = {
        name: deployment.one("/webtests").properties["Enabled"]
        for name, deployment in deployments.items()
    }
    assert (enabled["default"], enabled["restricted"], enabled["tuned"]) == (True, False, False)
    assert deployments["restricted"].option("monitoring", "availabilityTest") is True
    assert "frontDoorId" not in deployments["tuned"].parameters


def test_every_alert_leads_to_what_to_do(deployments):
    """A rule names its runbook, and that runbook is there."""
    headings = set(re.findall(r"^### Alert ([\w-]+)$", RUNBOOKS, re.MULTILINE))
    rules = alerts(deployments["default"])
    for name, rule in rules.items():
        end = f"What to do: docs/operations/runbooks.md#alert-{name}"
        assert rule.properties["description"].endswith(end), name
    assert headings == set(rules)


def test_timers_that_operators_run_by_hand_are_there(functions):
    """The page names each timer of the app, beside the word by which an operator runs its work."""
    page = (ROOT / "docs/operations/operate.md").read_text()
    part = page.split("## Run the work of a timer by hand")[1].split("\n## ")[0]
    timers = {name for name, function in functions.items() if function["type"] == "timerTrigger"}
    named = dict(re.findall(r"^\| `([\w-]+)` \| `(\w+_\w+)` \|", part, re.MULTILINE))
    assert (set(named), set(named.values())) == (set(RUNS), timers)


def test_every_runbook_has_the_same_form():
    """Four parts in this order; what to do is a list of numbered steps."""
    part = RUNBOOKS.split("\n## Alerts of the app\n")[1]
    runbooks = re.split(r"^####? (?!Stalled$)", part, flags=re.MULTILINE)[1:]
    assert len(runbooks) > 30
    for runbook in runbooks:
        name, _, text = runbook.partition("\n")
        text = text.split("\n### Stalled\n")[0].split("\n## ")[0]
        assert re.findall(r"^\*\*([^*]+)\.\*\*", text, re.MULTILINE) == FORM, name
        assert re.search(r"^\*\*What to do\.\*\*\n\n1\. ", text, re.MULTILINE), name


def test_the_list_of_rules_has_their_severity(deployments):
    """The most severe first."""
    rules = alerts(deployments["default"])
    listed = re.findall(
        r"^\| \[([\w-]+)\]\(#alert-[\w-]+\) \|[^|]+\| (\d) \|", RUNBOOKS, re.MULTILINE
    )
    expected = {name: str(rule.properties["severity"]) for name, rule in rules.items()}
    assert dict(listed) == expected
    assert [severity for _, severity in listed] == sorted(expected.values())


@pytest.mark.proves("SUP-7")
async def test_an_alert_counts_an_order_that_ends_and_none_that_changes_in_error(caplog):
    """Operators are mailed when an order gets to `Error`, and not again for what it does there."""
    caplog.set_level("INFO", "engine.storage.unit_of_work")
    world = World()
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    await world.scheduler.receive(answer(outcome="failed", detail="declined"), "payment")
    request = OperatorRequest(operator="grace", note="asked")
    await world.scheduler.unit_of_work.run(
        ORDER_ID, lambda order, now: erase(order, request, PAYLOAD, now)
    )
    lines = [line for line in caplog.records if line.message == "order.changed"]
    assert [(line.event, line.ended) for line in lines[-2:]] == [
        ("failed", "failed"),
        ("erased", None),
    ]
    [field] = re.findall(r"where isnotempty\(change\.(\w+)\)", QUERIES["failed.kql"])
    assert [line.event for line in lines if getattr(line, field)] == ["failed"]


def test_the_workbook_counts_an_order_that_ended_well_once():
    """A change of an order that is `Processed` already, such as an erasure, is no further order."""
    assert re.findall(r'change\.ended == "([\w-]+)"', QUERIES["cost"]) == [OrderStatus.PROCESSED]
    assert "change.state" not in QUERIES["cost"]


def test_orders_wait_for_ten_minutes_before_an_alert():
    """As the rule says of itself."""
    assert QUERIES["waiting.kql"].endswith("where todouble(fields.longest_seconds) > 600\n")


def test_commands_that_operators_have_to_run_exist():
    """With their options; a command of a group too."""
    commands = [line.split() for line in re.findall(r"`operators ([^`]+)`", RUNBOOKS)]
    assert len(commands) > 10
    for words in commands:
        command = main.commands[words.pop(0)]
        if isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, command.name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("unrecorded.kql", "| where recorded == 0 and placed < ago(5m)"),
        ("server-errors.kql", "| where toint(resultCode) between (500 .. 599)"),
        ("instances.kql", "| where instances >= MAXIMUM_INSTANCES"),
        ("log-size.kql", "| where gigabytes > 0.8 * DAILY_LOG_GB"),
    ],
)
def test_a_rule_draws_the_line_where_its_description_does(name, line):
    """Nothing here can run a query, so its last line is said twice."""
    assert QUERIES[name].splitlines()[-1] == line


def test_states_that_are_looked_for_exist():
    """Of orders and of steps."""
    for query in QUERIES.values():
        assert set(re.findall(r'state == "(\w+)"', query)) <= {str(state) for state in ProcessState}
        assert set(STEP.findall(query)) <= {str(state) for state in StepState}


def test_events_that_are_looked_for_exist():
    """A value of the history is called so."""
    looked_for = {
        event for query in QUERIES.values() for event in re.findall(r'event == "([\w-]+)"', query)
    }
    assert "recovered" in looked_for
    assert looked_for <= set(EVENT_INFO)


def test_the_workbook_is_whole(template):
    """Every parameter that a query uses is asked for, and Bicep fills in the resources."""
    [parameters] = [
        item["content"]["parameters"] for item in WORKBOOK["items"] if item["type"] == 9
    ]
    used = {name for query in QUERIES.values() for name in PARAMETER.findall(query)}
    assert used == {parameter["name"] for parameter in parameters}
    [module] = [resource for resource in declared(template) if resource.symbol == "workbook"]
    filled = set(re.findall(r"'(\{[\w-]+\})'", json.dumps(module.content)))
    assert set(re.findall(r'"(\{[a-z-]+\})"', json.dumps(WORKBOOK))) == filled
    assert len({item["name"] for item in WORKBOOK["items"]}) == len(WORKBOOK["items"])


def test_the_workbook_shows_what_operators_ask():
    """States over time, durations and failures by step, recoveries, queue depths, cost per order."""
    names = {item["name"] for item in WORKBOOK["items"]}
    assert "change.seconds" in QUERIES["durations"]
    assert "by step = tostring(step[0])" in QUERIES["durations"]
    assert names >= {"states", "durations", "failures", "recoveries", "queues", "cost", "waiting"}
