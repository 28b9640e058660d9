"""How the command line takes what the operators' API answers, or what stands before it."""

import json
from datetime import timedelta
from pathlib import Path

import click
import httpx2
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from pydantic import ValidationError

from engine.words.catalogue import text
from operations.api.requests import OperatorRequest, PauseRequest
from operations.api.views import order_view
from operations.cli import formatting, main
from operations.cli.client import Api, ApiError, BrokenError, KeyRefusedError, UnreachableError
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, PAYLOAD, orders, steps

PAGES = {
    "complete": True,
    "until": "2026-01-31T08:15:00Z",
    "done": ["b03-1"],
    "stillWaiting": [],
    "changed": [],
}


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    """The width of tables, whatever terminal the tests run in."""
    monkeypatch.setenv("COLUMNS", "100")


def api(answer, signed_in=None):
    """The client of an API that answers so."""
    return Api("http://app", "the-key", signed_in, httpx2.MockTransport(answer))


def always(status, **answer):
    return lambda request: httpx2.Response(status, **answer)


def what_was_sent(request):
    return httpx2.Response(200, json=dict(request.headers))


def test_a_token_is_sent_besides_the_key():
    """Where operators sign in, the key alone opens nothing; elsewhere there is no token."""
    sent = api(what_was_sent, signed_in="a-token").get("overview")
    assert (sent["x-functions-key"], sent["authorization"]) == ("the-key", "Bearer a-token")
    assert "authorization" not in api(what_was_sent).get("overview")


TO_SIGN_IN = {"headers": {"location": "https://login.microsoftonline.com/x"}}
PAGE = {"html": "<html>Sign in</html>"}


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (always(302, **TO_SIGN_IN), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(401), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(403, **PAGE), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(200, **PAGE), UnreachableError, "check the app's address"),
        (always(200, json=["no", "object"]), UnreachableError, "check the app's address"),
        (always(502, **PAGE), UnreachableError, text("cli.no-reason", status=502)),
        (
            always(503, json={"error": "no title"}),
            UnreachableError,
            text("cli.no-reason", status=503),
        ),
        (always(500, json={"title": "It broke"}), BrokenError, "It broke"),
        (
            always(400, content=b"{broken", headers={"content-type": "application/json"}),
            ApiError,
            text("cli.no-reason", status=400),
        ),
        (
            always(409, json={"title": "Refused", "detail": "why", "faults": ["a"]}),
            ApiError,
            "Refused; why; a",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_is_answered_becomes_a_fault_that_says_what_to_do(answer, error, says):
    """Also what Easy Auth or a proxy says: never a traceback, and the exit code that fits."""
    with pytest.raises(ApiError, match=says.replace("?", "[?]")) as raised:
        api(answer).get("overview")
    assert type(raised.value) is error


@pytest.mark.proves("OPR-1")
def test_an_order_is_shown_with_what_was_ordered_and_what_its_steps_came_to():
    """It names its priority, answers and rests, and nothing of who the customer is."""
    step = steps.with_counts(steps.completed(result={"authorisation": "A-1"}), cooldowns=7)
    order = orders.pending(steps=[step])
    text = formatting.order_text(
        order_view(order, PAYLOAD, [], NOW).model_dump(mode="json", by_alias=True)
    )
    lines = {
        line.partition(" ")[0]: line.split(maxsplit=1)[1] for line in text.splitlines() if line
    }
    assert lines["priority"] == "normal"
    assert lines["items"] == '[{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}]'
    assert "Ada" not in text
    assert lines["payment"].split(maxsplit=4) == [
        "Completed",
        "1",
        "0",
        "7",
        '{"authorisation": "A-1"}',
    ]


@pytest.mark.proves("AGT-3", "OPR-1")
def test_an_order_is_shown_with_the_round_of_a_step():
    """One in its first round, as most are, shows no word of it."""
    second = steps.with_counts(steps.with_key("payment", generation=1), attempts=2)
    again = orders.pending(steps=[second])
    for order, number, expected in (
        (orders.new(), 0, "NotStarted  0  "),
        (again, 1, "2 (key generation 2)"),
    ):
        view = order_view(order, PAYLOAD, [], NOW).model_dump(mode="json", by_alias=True)
        assert view["steps"][0]["keyGeneration"] == number
        assert expected in formatting.order_text(view)


def test_a_list_says_which_step_an_order_is_at_and_until_when():
    """What has failed comes before what is awaited; what cannot be read has neither step nor time."""
    row = {"orderId": "b00-1", "processState": "s", "situation": "x", "failedSteps": []}
    row |= {"updatedAt": "then", "reason": None}
    row |= {"step": None, "waitsFor": [], "completeBy": None, "notBefore": None}
    at_work = {"step": "check", "completeBy": "soon"}
    rows = [
        row,
        row | at_work,
        row | at_work | {"waitsFor": ["pictures", "approval"]},
        row | at_work | {"failedSteps": ["pay"], "completeBy": None, "notBefore": "later"},
    ]
    header, *lines = formatting.orders_table(rows).splitlines()
    assert header.split() == ["ORDER", "STATUS", "UNTIL", "SINCE", "STEP"]
    assert [line.split()[2:] for line in lines] == [
        ["then"],
        ["soon", "then", "check"],
        ["soon", "then", "pictures,", "approval"],
        ["later", "then", "pay"],
    ]


def test_an_order_is_shown_with_its_keys():
    """One without any shows no line of them."""
    keyed = orders.new(key_rows=("=C-1|x", "=a=3d=b|x"))
    for order, expected in ((orders.new(), False), (keyed, True)):
        view = order_view(order, PAYLOAD, [], NOW).model_dump(mode="json", by_alias=True)
        text = formatting.order_text(view)
        assert ("keys" in text, "C-1, a=b" in text) == (expected, expected)


SEARCHED = json.loads(Path("tests/data/inputs/search_terms.json").read_text())
FOUND = {
    **dict.fromkeys(("orderId", "processState", "outcome", "updatedAt", "reason"), "x"),
    **dict.fromkeys(("situation", "completeBy", "notBefore", "step", "failedSteps", "waitsFor")),
}


def searches(monkeypatch, *words, by_id=(), by_key=()):
    """Run the command; return the calls that it made by their parameter, and what it printed."""
    sent = {}

    def answer(request):
        [(name, value)] = request.url.params.items()
        sent[name] = value
        found = by_id if name == "id" else by_key
        orders = [FOUND | {"orderId": order_id} for order_id in found]
        if name == "key":
            return httpx2.Response(200, json={"orders": orders, "continuation": None})
        return httpx2.Response(200, json={"orders": orders, "unreadable": [], "more": False})

    monkeypatch.setattr(main, "Api", lambda *_: api(answer))
    ran = CliRunner().invoke(main.main, ["--key", "k", "search", *words])
    assert ran.exit_code == 0
    return sent, ran.output


@pytest.mark.parametrize("term", SEARCHED)
def test_a_term_that_may_be_an_id_or_a_key_is_looked_for_as_both(monkeypatch, term):
    """Bugs2 44: the key of a business may look like the beginning of an id."""
    assert searches(monkeypatch, term)[0] == SEARCHED[term]


def test_what_is_found_as_both_is_shown_once(monkeypatch):
    """Bugs2 44: with --json, each order is one of the list."""
    found = {"by_id": ["b07-1", "b07-2"], "by_key": ["b07-2", "b03-3"]}
    _, in_json = searches(monkeypatch, "b07-2041", "--json", **found)
    assert [order["orderId"] for order in json.loads(in_json)["orders"]] == [
        "b07-1",
        "b07-2",
        "b03-3",
    ]
    _, shown = searches(monkeypatch, "b07-2041", **found)
    assert all(order_id in shown for order_id in ("b07-1", "b07-2", "b03-3"))


def test_a_bulk_action_is_to_be_repeated_only_for_what_was_refused():
    """It went through all pages: nothing else is left."""
    refused = [{"orderId": "b03-2", "why": "it is Processed"}]
    again = f"--go --until {PAGES['until']}"
    assert again not in formatting.bulk_text(PAGES | {"refused": []}, go=True)
    assert formatting.bulk_text(PAGES | {"refused": refused}, go=True).endswith(again)


def test_an_order_that_was_erased_before_keeps_no_other_from_being_erased(monkeypatch):
    """Who repeats a command that was cut short gets to the rest; an app that is away ends it."""

    def erased(request):
        status = {"b00-1": 409, "b00-3": 503}.get(request.url.path.split("/")[4], 202)
        return httpx2.Response(
            status, json={"title": "no", "orderId": request.url.path, "status": "erased"}
        )

    monkeypatch.setattr(main, "Api", lambda *_: api(erased))

    def erase(*order_ids):
        orders = [word for order_id in order_ids for word in ("--order", order_id)]
        return CliRunner().invoke(main.main, ["--key", "k", "erase", "--go", "-m", "note", *orders])

    ran = erase("b00-1", "b00-2")
    assert (ran.exit_code, ran.output.count("/b00-2")) == (ApiError.exit_code, 1)
    assert "b00-1: no" in ran.output
    ran = erase("b00-3", "b00-2")
    assert (ran.exit_code, ran.output.count("/b00-2")) == (UnreachableError.exit_code, 0)


@pytest.mark.proves("OPR-9")
def test_an_agent_is_held_and_released_from_the_command_line(monkeypatch):
    """With who acts, why and until when; a refusal is told like any other."""
    sent = []

    def acted(request):
        sent.append((request.url.path, json.loads(request.content)))
        answer = {"agent": "payment", "until": "2026-01-31T04:00:00Z"}
        return httpx2.Response(202 if len(sent) < 3 else 409, json=answer | {"title": "no"})

    monkeypatch.setattr(main, "Api", lambda *_: api(acted))

    def run(*words):
        signed = ["--operator", "grace", "-m", "maintenance"]
        ran = CliRunner().invoke(main.main, ["--key", "k", *words, *signed])
        return ran.exit_code, ran.output

    hold = ("pause-agent", "payment", "--until", "2026-01-31T04:00:00Z")
    code, output = run(*hold, "--utc")
    assert (code, "2026-01-31 04:00:00Z" in output) == (0, True)
    assert run("resume-agent", "payment")[0] == 0
    who = {"operator": "grace", "note": "maintenance"}
    assert sent == [
        ("/api/operator/agents/payment/pause", who | {"until": "2026-01-31T04:00:00Z"}),
        ("/api/operator/agents/payment/resume", who),
    ]
    assert run(*hold)[0] == ApiError.exit_code


def test_the_overview_in_the_terminal_is_no_reading_from_before_the_last_command(monkeypatch):
    """Two commands follow each other at once, perhaps on two hosts (bugs2.md 66)."""
    sent = []

    def answered(request):
        sent.append(request.url.params.get("fresh"))
        return httpx2.Response(503, json={"title": "away"})

    monkeypatch.setattr(main, "Api", lambda *_: api(answered))
    CliRunner().invoke(main.main, ["--key", "k", "overview"])
    assert sent == ["true"]


async def test_the_overview_names_the_held_agents_in_the_terminal():
    """Beside what the instances say."""
    there = app(in_memory())
    until = there.engine.adapters.clock() + timedelta(hours=1)
    request = PauseRequest(operator="grace", note="maintenance", until=until)
    await there.operations.services.agents.pause("payment", request)
    seen = await there.operations.services.overview.look()
    text = formatting.overview_text(seen.model_dump(mode="json", by_alias=True))
    assert [name for name in ("payment", "grace") if name not in text] == []


def test_an_answer_is_sent_to_the_step_that_awaits_it(monkeypatch):
    """As a JSON object, or as a refusal; what is no object is wrong usage."""
    posted = []

    def post(_self, *path, body):
        posted.append((path, body))
        return {"status": "recorded"}

    monkeypatch.setattr(Api, "post", post)

    def run(*words):
        who = ("--operator", "grace")
        return CliRunner().invoke(main.main, ["--key", "k", "answer", "b03-1", *words, *who])

    assert run("photos", '{"urls": []}').output == "b03-1: photos recorded\n"
    assert run("photos", "--refusal", "no damage").exit_code == 0
    assert posted == [
        (
            ("orders", "b03-1", "answers", "photos"),
            {"operator": "grace", "answer": {"urls": []}, "refusal": None},
        ),
        (
            ("orders", "b03-1", "answers", "photos"),
            {"operator": "grace", "answer": None, "refusal": "no damage"},
        ),
    ]
    assert (run("photos", "[1]").exit_code, run("photos", "{").exit_code) == (2, 2)


@pytest.mark.parametrize(
    ("url", "by_proxy"), [("http://127.0.0.1:7071", False), ("https://tea.example", True)]
)
def test_the_key_goes_to_no_proxy_in_clear(monkeypatch, url, by_proxy):
    """Only the name of the other machine is readable for a proxy, by https."""
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.2:3128")
    http = Api(url, "key")._http
    transport = http._transport_for_url(httpx2.URL(url))
    assert (transport is not http._transport) == by_proxy


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://192.0.2.2:7295", False),
        ("http://tea.example", False),
        ("http://127.0.0.1@tea.example", False),
        ("https://tea.example", True),
        ("http://localhost:7071", True),
        ("http://[::1]:7071", True),
    ],
)
def test_the_key_goes_to_no_other_machine_in_clear(monkeypatch, url, taken):
    """Whoever is on the way could read it."""
    sent = []
    monkeypatch.setattr(main.Api, "get", lambda *_, **__: sent.append(url) or {"problem": 1})
    ended = CliRunner().invoke(main.main, ["--url", url, "--key", "k", "show", "b00-1"])
    assert bool(sent) == taken
    assert ("expected https://" in ended.stderr) == (not taken)


@pytest.mark.parametrize("blank", [" ", "\u200b", "\u00a0\ufeff", ""])
@pytest.mark.parametrize("field", ["operator", "note"])
def test_a_signature_can_be_seen(field, blank):
    """Who acted, and why, is what an order's history is read for."""
    given = {"operator": "grace", "note": "not needed"}
    assert OperatorRequest(**given)
    with pytest.raises(ValidationError):
        OperatorRequest(**given | {field: blank})


def test_what_is_awaited_is_extended_reminded_of_and_linked_anew(monkeypatch):
    """Each with who asks and why; of a new link only that is printed, to be passed on."""
    posted = []

    def post(_self, *path, body):
        posted.append((path[-1], body))
        done = {"orderId": "b03-1", "status": f"{path[-1]}ed"}
        return done | ({"callbackUrl": "https://app/x"} if path[-1] == "link" else {})

    monkeypatch.setattr(Api, "post", post)

    def run(name, *words):
        given = ("b03-1", "photos", *words, "--operator", "grace", "-m", "away")
        return CliRunner().invoke(main.main, ["--key", "k", name, *given]).output

    assert run("extend", "2026-02-01T00:00:00Z") == "b03-1: extended\n"
    assert run("remind") == "b03-1: reminded\n"
    assert run("link") == "https://app/x\n"
    signed = {"operator": "grace", "note": "away"}
    assert posted == [
        ("extend", signed | {"until": "2026-02-01T00:00:00Z"}),
        ("remind", signed),
        ("link", signed),
    ]


def test_an_answer_that_is_not_given_shows_the_question(monkeypatch):
    """Whoever is to answer for somebody reads first what, until when, and in which fields."""
    question = {
        "orderId": "b03-1",
        "step": "photos",
        "title": "of the roof",
        "whyClosed": None,
        "until": "2026-02-01T00:00:00Z",
        "requestsSent": 1,
        "asks": 3,
        "question": {"text": "Please send them"},
        "fields": ["urls", "by"],
    }
    monkeypatch.setattr(Api, "get", lambda _self, *path: question if path[-1] == "photos" else {})
    shown = CliRunner().invoke(main.main, ["--key", "k", "answer", "b03-1", "photos"]).output
    for part in ("of the roof", "until 2026-02-01", "1 of 3", "Please send them", "urls, by"):
        assert part in shown


def every_command(group, name="operators"):
    """A group and its commands, by their names."""
    yield name, group
    for word, command in getattr(group, "commands", {}).items():
        yield from every_command(command, f"{name} {word}")


@pytest.mark.parametrize(("name", "command"), list(every_command(main.main)))
def test_the_help_of_a_command_is_whole(name, command):
    """Its list shows the first sentence uncut in 80 columns; each option is described (newcomer C, `--help`)."""
    first, _, _ = (command.help or "").partition("\n\n")
    space = 80 - len("    ") - len("retry-with-new-key") - len("  ")
    assert command.get_short_help_str(space) == " ".join(first.split()), name
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.opts for option in options if not option.help] == []
    names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
    assert len(names) == len(set(names)), "an argument of an action has the name of an option"


@pytest.mark.parametrize(
    ("before", "begun", "expected"),
    [
        (
            [],
            "re",
            {
                "release",
                "remind",
                "resubmit",
                "restore",
                "resume-agent",
                "retry-with-new-key",
                "reveal",
            },
        ),
        (["list"], "--u", {"--utc"}),
        (["bulk"], "res", {"resubmit"}),
        (["poison"], "", {"list", "redrive", "drop"}),
    ],
)
def test_a_shell_completes_commands_options_and_values(before, begun, expected):
    """Without a key, and without the app (newcomer D)."""
    shell = BashComplete(main.main, {}, "operators", "_OPERATORS_COMPLETE")
    assert {completion.value for completion in shell.get_completions(before, begun)} == expected


@pytest.mark.parametrize(
    ("variables", "code", "says"),
    [
        ({"HTTP_PORT": "9"}, 3, "http://127.0.0.1:9 "),
        ({"OPERATOR_URL": "https://tea.example"}, 2, "--key"),
        ({"OPERATOR_URL": "http://127.0.0.1:no-port"}, 2, "--url"),
    ],
)
def test_the_command_knows_the_system_that_runs_on_this_machine(monkeypatch, variables, code, says):
    """Its port and its key, without `make` (newcomer C); elsewhere the key has to be given."""
    for name in ("HTTP_PORT", "OPERATOR_URL", "OPERATOR_KEY"):
        monkeypatch.delenv(name, raising=False)
    ran = CliRunner().invoke(main.main, ["overview"], env=variables)
    assert ran.exit_code == code
    assert says in ran.stderr


@pytest.mark.proves("OPR-12")
def test_a_step_in_doubt_is_settled_from_the_command_line(monkeypatch):
    """With its outcome, of one order or of many; without one nothing is sent."""
    posted = []

    def acted(request):
        posted.append((request.url.path.rpartition("/")[2], json.loads(request.content)))
        page = PAGES | {"matching": [], "refused": [], "continuation": None}
        return httpx2.Response(200, json={"orderId": "b03-1", "status": "settled", **page})

    monkeypatch.setattr(main, "Api", lambda *_: api(acted))

    def run(*words):
        signed = ["--operator", "grace", "-m", "asked"]
        return CliRunner().invoke(main.main, ["--key", "k", *words, *signed]).exit_code

    who = {"operator": "grace", "note": "asked"}
    one = ("settle", "b03-1", "--step", "pay")
    assert run(*one, "--done", "--answer", '{"reference": "P-1"}') == 0
    assert run(*one, "--not-done", "--confirm-late-effect") == 0
    assert run("bulk", "settle", "--not-done") == 0
    done = {"step": "pay", "wasDone": True, "answer": {"reference": "P-1"}}
    not_done = {"step": "pay", "wasDone": False, "confirmLateEffect": True}
    assert posted[:2] == [("settle", who | done), ("settle", who | not_done)]
    name, body = posted[2]
    assert (name, body["dryRun"], body["arguments"]) == ("bulk", True, {"wasDone": False})
    assert {run(*one), run("bulk", "settle"), run(*one, "--done", "--answer", "[]")} == {2}
    assert len(posted) == 3


def test_of_the_bulk_actions_only_settle_needs_a_step():
    """Its other arguments are about that step, so its help says that the option is required."""
    helps = {
        name: next(option.help for option in command.params if option.name == "step")
        for name, command in main.main.commands["bulk"].commands.items()
    }
    needed = text("cli.option.step.needed")
    assert [name for name, shown in helps.items() if shown == needed] == ["settle"]
    assert {shown for name, shown in helps.items() if name != "settle"} == {text("cli.option.step")}
