"""What a command did in part, it reports as done in part."""

import json

import httpx2
import pytest
from click.testing import CliRunner

from engine.words.catalogue import text
from operations.cli import main
from operations.cli.client import Api, ApiError, UnreachableError

SIGNED = ("--operator", "grace", "-m", "why")


class Service:
    """An operators' API, which keeps what was sent to it."""

    def __init__(self, answer):
        self.answer, self.posted = answer, []

    def __call__(self, request):
        path = request.url.path.removeprefix("/api/operator/")
        body = json.loads(request.content) if request.content else None
        if body is not None:
            self.posted.append((path, body))
        status, answer = self.answer(path, body or dict(request.url.params))
        return httpx2.Response(status, json=answer)


@pytest.fixture
def run(monkeypatch):
    """Run a command against an API that answers so; return how it ended, and what was posted."""

    def run(answer, *words):
        service = Service(answer)
        transport = httpx2.MockTransport(service)
        monkeypatch.setattr(main, "Api", lambda *given: Api(*given, transport))
        return CliRunner().invoke(main.main, ["--key", "k", *words]), service.posted

    return run


ALERTS = 2_300
PAGE = 1_000
ORDERS = [f"b00-{number}" for number in range(4)]
MEANT = "customer: Field required"


class Alerts:
    """2,300 alerts of one cause, and behind them an older one of another."""

    def __init__(self, fails_at=None, others=(), unknown=()):
        self.open, self.calls, self.fails_at = set(map(str, range(ALERTS))), 0, fails_at
        self.others, self.unknown = {*others}, {*unknown}

    def __call__(self, path, given):
        if path == "alerts/causes":
            return 200, self.page(int(given.get("continuation", 0)))
        self.calls += 1
        if self.calls == self.fails_at:
            return 503, {"title": "away"}
        keys = given["alerts"]
        assert len(keys) <= PAGE
        self.open -= {*keys}
        own = [key for key in keys if key not in self.others | self.unknown]
        others = [key for key in keys if key in self.others]
        unknown = [key for key in keys if key in self.unknown]
        return 200, {"acknowledged": own, "byOthers": others, "unknown": unknown}

    def page(self, start):
        end = min(start + PAGE, ALERTS)
        keys = [str(number) for number in range(start, end) if str(number) in self.open]
        causes = [group("", MEANT, end - start, keys)]
        if end == ALERTS:
            causes.append(group("", "an older fault", 1, ["older"]))
        return {"causes": causes, "continuation": str(end) if end < ALERTS else None}


def group(cause, reason, count, keys):
    names = {"type": "T", "step": "", "cause": cause, "reason": reason, "isEnd": False}
    times = {"first": "2026-01-31T08:15:00Z", "last": "2026-01-31T08:15:00Z"}
    return names | times | {"count": count, "open": count, "unacknowledged": keys, "taken": []}


def test_all_alerts_of_a_cause_are_acknowledged(run):
    """Page by page, and none of another cause (bugs2 53)."""
    there = Alerts()
    ran, posted = run(there, "acknowledge", "--cause", MEANT, *SIGNED)
    assert (ran.exit_code, there.open) == (0, set())
    assert "older" not in str(posted)
    assert f"{ALERTS} " in ran.stdout
    ran, _ = run(there, "acknowledge", "--cause", MEANT, *SIGNED)
    assert ran.exit_code == ApiError.exit_code


def test_alerts_that_were_not_acknowledged_are_named(run):
    """Unknown ones, and those of others; the command ends with an error (bugs2 53)."""
    ran, _ = run(Alerts(others=["1"], unknown=["x2"]), "acknowledge", "0", "1", "x2", *SIGNED)
    assert ran.exit_code == ApiError.exit_code
    assert ran.stdout.startswith("1 ")
    assert [key for key in ("1", "x2") if key not in ran.stderr] == []


def test_what_was_acknowledged_before_a_failure_is_counted(run):
    """The rest is not told as done."""
    ran, _ = run(Alerts(fails_at=2), "acknowledge", "--cause", MEANT, *SIGNED)
    assert ran.exit_code == UnreachableError.exit_code
    assert ran.stdout.startswith(f"{PAGE} ")


def test_no_alert_at_all_is_wrong_usage(run):
    ran, posted = run(Alerts(), "acknowledge", *SIGNED)
    assert (ran.exit_code, posted) == (2, [])


def test_causes_say_that_they_are_those_of_the_newest_alerts(run):
    """With all pages, they are those of all alerts, and say nothing (bugs2 53)."""
    ran, _ = run(Alerts(), "causes")
    _, row, hint = ran.stdout.splitlines()
    assert (row.split()[:3], f"{PAGE}" in hint) == ([f"{PAGE}"] * 3, True)
    ran, _ = run(Alerts(), "causes", "--all")
    _, *rows = ran.stdout.splitlines()
    assert [row.split()[0] for row in rows] == [f"{ALERTS}", "1"]
    ran, _ = run(Alerts(), "causes", "--json")
    assert json.loads(ran.stdout)["continuation"]


def bulk_page(done, refused=(), more=False):
    """One page of a bulk action."""
    return {
        "until": "2026-01-31T08:15:00Z",
        "matching": [{"orderId": order_id} for order_id in (*done, *refused)],
        "done": list(done),
        "stillWaiting": [],
        "refused": [{"orderId": order_id, "why": "no"} for order_id in refused],
        "changed": [],
        "continuation": "next" if more else None,
    }


GO = ("bulk", "resubmit", "--go", "--until", "2026-01-31T08:15:00Z", *SIGNED)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_bulk_action_that_was_refused_for_an_order_ends_with_an_error(run, form):
    """All others were done; the refused one is named (bugs2 53)."""
    ran, _ = run(lambda *_: (200, bulk_page(ORDERS[:2], ORDERS[2:3])), *GO, *form)
    assert ran.exit_code == ApiError.exit_code
    assert ORDERS[2] in ran.stdout
    ran, _ = run(lambda *_: (200, bulk_page(ORDERS[:2])), *GO, *form)
    assert ran.exit_code == 0


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_bulk_action_that_was_cut_short_tells_what_it_did(run, form):
    """Also what was refused until then, and that it did not reach its end (bugs2 53)."""
    answers = [(200, bulk_page(ORDERS[:2], ORDERS[2:3], more=True)), (503, {"title": "away"})]
    ran, _ = run(lambda *_: answers.pop(0), *GO, *form)
    assert ran.exit_code == UnreachableError.exit_code
    assert (ORDERS[2] in ran.stdout, "away" in ran.stderr) == (True, True)
    if form:
        summary = json.loads(ran.stdout)
        assert (summary["done"], summary["complete"]) == (ORDERS[:2], False)


def erased(statuses, found=(), unreadable=(), messages=()):
    """An API that erases each order with this status."""

    def answer(path, _):
        match path.split("/"):
            case ["orders", order_id, "erase"]:
                done = {"orderId": order_id, "status": "erased"}
                return statuses.get(order_id, 202), done | {"title": "no"}
            case ["customers", "find"]:
                page = {"orders": list(found), "unreadable": list(unreadable)}
                return 200, page | {"messages": list(messages), "continuation": None}
        raise AssertionError(path)

    return answer


def test_an_erasure_counts_the_orders_that_were_erased(run):
    """And names those that were not (bugs2 53)."""
    names = [word for order_id in ORDERS for word in ("--order", order_id)]
    ran, _ = run(erased({ORDERS[1]: 409}), "erase", "--go", *names, *SIGNED)
    assert ran.exit_code == ApiError.exit_code
    assert text("cli.erased", orders=3) in ran.stdout
    assert ORDERS[1] in ran.stderr


@pytest.mark.parametrize(
    "left",
    [
        {"unreadable": ORDERS[2:3]},
        {"messages": [{"queue": "order-submissions", "id": "m1"}]},
    ],
    ids=["order", "message"],
)
def test_an_erasure_that_leaves_something_ends_with_an_error(run, left):
    """An order that cannot be read, or a message that names the customer, or may (bugs2 53)."""
    there = erased({}, ORDERS[:2], **left)
    ran, _ = run(there, "erase", "--go", "--email", "ada@example.com", *SIGNED)
    assert (ran.exit_code, text("cli.erased", orders=2) in ran.stdout) == (ApiError.exit_code, True)
    assert ("m1" in ran.stdout) != (ORDERS[2] in ran.stdout)
    ran, _ = run(there, "erase", "--email", "ada@example.com", *SIGNED)
    assert ran.exit_code == 0
    whole = erased({}, ORDERS[:2])
    ran, _ = run(whole, "erase", "--go", "--email", "ada@example.com", *SIGNED)
    assert ran.exit_code == 0


def test_an_erasure_that_was_cut_short_tells_how_many_it_did(run):
    """The app was away for the third."""
    names = [word for order_id in ORDERS for word in ("--order", order_id)]
    ran, posted = run(erased({ORDERS[2]: 503}), "erase", "--go", *names, *SIGNED)
    assert (ran.exit_code, len(posted)) == (UnreachableError.exit_code, 3)
    assert text("cli.erased", orders=2) in ran.stdout
