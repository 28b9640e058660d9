"""`python -m testkit.check`: what it finds at a service that keeps the contract, and at others."""

import asyncio
import json
import sys
from collections import Counter

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from engine.azure.answers import MAX_BYTES
from engine.workflow import Agent, ApiKey, Body, Model, Operation
from samples.simulator.ledger import Ledger
from testkit.check import FAILS, NOT_TRIED, WORKS, main
from testkit.checks import CallResult, CheckedService, Verdict, findings
from testkit.keys import MemoryKeys
from testkit.memory import of_columns
from testkit.receiver import Receiver
from tests.support.banks import CONTENT, UNDOES, Bank, Faulty, poster, served
from tests.support.simulated_world import World

OTHER = {"amount": "11.00"}
REFUSED = {"amount": None}
TWICE, AT_ONCE, OTHERS = (
    "the same key twice",
    "two calls at the same time",
    "the same key, other content",
)
UNKNOWN, UNDONE, REFUSAL = "undo of an unknown key", "undo of a done operation", "a refusal"


async def found(post, do="pay", undo="recall", other=OTHER, refused=REFUSED):
    """The findings at a service, by the name of their check."""
    service = CheckedService(
        post=post, do=do, undo=undo, content=CONTENT, other=other, refused=refused
    )
    return {finding.name: finding async for finding in findings(service)}


def verdicts(found):
    return {name: str(finding.verdict) for name, finding in found.items()}


async def test_a_service_behind_the_receiver_keeps_the_contract():
    """Every check passes, and no more effects are made than were announced."""
    bank = Bank()
    seen = await found(poster(Receiver(app=bank, store=MemoryKeys(), undoes=UNDOES)))
    assert verdicts(seen) == dict.fromkeys((TWICE, AT_ONCE, OTHERS, UNKNOWN, UNDONE), "ok") | {
        REFUSAL: "note"
    }
    assert seen[REFUSAL].what == "422; the key is free again, so the service remembers no refusals"
    announced = CheckedService(
        post=None, do="pay", undo="recall", content={}, other=OTHER, refused=REFUSED
    ).effects
    assert bank.effects.count("/pay") == announced


@pytest.mark.parametrize(
    ("fault", "names"),
    [
        ("", {}),
        ("forgets", {TWICE, AT_ONCE, OTHERS}),
        ("says nothing", {TWICE, AT_ONCE}),
        ("races", {AT_ONCE}),
        ("pays other content", {OTHERS}),
        ("knows no unknown key", {UNKNOWN}),
        ("forgets an undo", {UNKNOWN}),
        ("undone and done again", {UNKNOWN, UNDONE}),
        ("recalls once", {UNDONE}),
        ("stumbles", {REFUSAL}),
    ],
)
async def test_every_fault_is_named(fault, names):
    """By the check that it breaks, and by no other."""
    seen = await found(Faulty(fault).post)
    failed = {name for name, finding in seen.items() if finding.verdict is Verdict.FAILED}
    assert failed == set(names)


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        ("says the same to all", TWICE, "the number of effects is unknown"),
        ("takes other content for the same", OTHERS, "the caller does not notice the mistake"),
        ("remembers refusals", REFUSAL, "declare remembers_refusals=True"),
        ("needs a card", REFUSAL, "402; declare refusals=(402,); the key is free again"),
    ],
)
async def test_what_an_author_has_to_know_is_printed(fault, name, words):
    """It breaks nothing, so it is no failure."""
    seen = (await found(Faulty(fault).post))[name]
    assert (str(seen.verdict), words in seen.what) == ("note", True), seen


@pytest.mark.parametrize("fault", ["is away after a refusal", "knows no caller"])
async def test_only_a_status_that_refuses_says_that_the_key_stays_refused(fault):
    """After an outage or a missing token nobody knows (engine 26)."""
    seen = (await found(Faulty(fault).post))[REFUSAL]
    assert seen.verdict is Verdict.NOTE
    assert "remembers_refusals" not in seen.what


async def test_the_simulated_services_keep_the_contract():
    """They say nothing of other content, since the app sends none."""
    world = World(Ledger(of_columns()))

    async def post(operation, key, content):
        answer = await world.call(operation, key)
        return CallResult(status=answer.status, content=answer.result)

    seen = await found(post, "authorise", "void", refused=None)
    assert verdicts(seen) == dict.fromkeys((TWICE, AT_ONCE, UNKNOWN, UNDONE), "ok") | {
        OTHERS: "note"
    }


async def run(*arguments):
    """What the command returns; it has a loop of its own."""
    return await asyncio.to_thread(main, arguments)


async def test_the_command_tells_every_finding(capsys, monkeypatch):
    """Over HTTP, with a token that it takes from the environment and shows to nobody."""
    monkeypatch.setenv("BANK_TOKEN", "hush")
    bank = Bank()
    content = ["--do", "pay", "--content", json.dumps(CONTENT)]
    async with served(Receiver(app=bank, store=MemoryKeys(), undoes=UNDOES)) as url:
        more = ["--undo", "recall", "--token-from", "BANK_TOKEN", "--yes"]
        assert await run(url, *content, *more) == WORKS
    printed = capsys.readouterr()
    assert [line.split(":")[0].split(maxsplit=1) for line in printed.out.splitlines()[:4]] == [
        ["ok", name] for name in (TWICE, AT_ONCE, UNKNOWN, UNDONE)
    ]
    assert "valid content with --other" in printed.out
    assert "hush" not in printed.out + printed.err
    async with served(Bank()) as url:
        assert await run(url, *content, "--yes") == FAILS
    assert f"FAILED  {TWICE}: the second call differs" in capsys.readouterr().out


async def test_nothing_is_called_unless_somebody_agrees(capsys, monkeypatch):
    """A person at the terminal is asked; where there is none, `--yes` has to say so."""
    bank = Bank()
    async with served(Receiver(app=bank, store=MemoryKeys())) as url:
        arguments = (url, "--do", "pay", "--content", json.dumps(CONTENT))
        monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
        assert await run(*arguments) == NOT_TRIED
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", lambda _: "n")
        assert await run(*arguments) == NOT_TRIED
        assert bank.effects == []
        monkeypatch.setattr("builtins.input", lambda _: "y")
        assert await run(*arguments) == WORKS
    assert f"This calls pay at {url}, with up to 3 effects" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://bank.example"], "expected https://, or http:// on this machine"),
        (["ftp://localhost"], "expected https://"),
        (["https://ada:secret@bank.example"], "without a user or password"),
        (["https://[::1"], "expected https://<host>"),
        (["https://bank.example/api?code=secret"], "expected an address without ? and #"),
        (["https://bank.example#secret"], "expected an address without ? and #"),
        (["https://bank.example", "--undo", "../admin"], "expected a name that matches"),
        (["https://bank.example", "--content", "[1]"], "expected a JSON object"),
        (["https://bank.example", "--timeout", "-1"], "expected seconds"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_call(arguments, words, capsys):
    """Each fault is told, and no password is repeated."""
    with pytest.raises(SystemExit):
        main([*arguments, "--do", "pay", "--yes"])
    assert words in capsys.readouterr().err


class Deposit(Model):
    """What is asked of the dealer."""

    amount: str


class Held(Model):
    """The dealer's answer, which names what was made."""

    id: str


class Dealing(Agent):
    """A service that was not built for this app."""

    hold = Operation(Deposit, Held, method="PUT", path="/v1/holds/{key}")
    free = Operation(Deposit, method="DELETE", path="/v1/holds/{key}/{result.id}")


dealer = Dealing(
    "dealer",
    key_header="X-Request-Key",
    headers={"Api-Version": "7"},
    body=Body.CONTENT,
    auth=ApiKey("DEALER_KEY", prefix="Key "),
    refusals=(409,),
)


class Dealer:
    """Keeps holds by their keys, in a form of its own; `called` has what it was shown."""

    def __init__(self):
        self.holds, self.gone, self.called = {}, set(), []
        self.app = web.Application()
        self.app.router.add_put("/v1/holds/{key}", self.hold)
        self.app.router.add_delete("/v1/holds/{key}/{id}", self.free)

    async def hold(self, request):
        body = await self._note(request)
        key = request.match_info["key"]
        if key in self.gone or self.holds.setdefault(key, body) != body:
            return web.Response(status=409)
        return web.json_response({"id": f"h-{list(self.holds).index(key)}"})

    async def free(self, request):
        await self._note(request)
        self.gone.add(request.match_info["key"])
        return web.Response(status=204)

    async def _note(self, request):
        names = ("Authorization", "Api-Version")
        shown = [request.headers.get(name) for name in names]
        is_key = request.headers.get("X-Request-Key") == request.match_info["key"]
        self.called.append((request.method, *shown, is_key))
        return await request.text()


async def test_a_declared_agent_is_tried_as_it_calls_its_service(capsys, monkeypatch):
    """By its method, path, headers, body and key, at the address of its setting; 409 is final here."""
    there = Dealer()
    arguments = ("--agent", f"{__name__}:dealer", "--do", "hold", "--undo", "free", "--yes")
    contents = ("--content", json.dumps(CONTENT), "--other", json.dumps(OTHER))
    monkeypatch.setenv("DEALER_KEY", "secret")
    async with TestServer(there.app) as server:
        monkeypatch.setenv("DEALER_URL", str(server.make_url("")))
        assert await run(*arguments, *contents) == WORKS
    assert set(there.called) == {
        ("PUT", "Key secret", "7", True),
        ("DELETE", "Key secret", "7", True),
    }
    assert list(map(json.loads, set(there.holds.values()))) == [CONTENT]
    printed = capsys.readouterr().out
    assert "other content: 409: refused" in printed
    assert "undo of a done operation: undone once, and 409 for later calls" in printed
    assert UNKNOWN not in printed  # its path has the answer to what it takes back


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({}, (), "the environment variable DEALER_URL is empty"),
        ({"DEALER_URL": "http://dealer.example"}, (), "DEALER_URL: expected https://, or http://"),
        ({"DEALER_URL": "https://dealer.example"}, (), "variable DEALER_KEY is empty"),
        (
            {"DEALER_URL": "https://dealer.example?code=secret"},
            (),
            "DEALER_URL: expected an address",
        ),
        ({}, ("--agent", "shop.business:SHOP"), "shop.business:SHOP is not an agent"),
        ({}, ("--agent", "nowhere:dealer"), "nowhere:dealer: No module named 'nowhere'"),
    ],
)
async def test_an_agent_that_cannot_call_says_why(settings, arguments, words, capsys, monkeypatch):
    """Before any call, and without what its settings hold."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    options = ("--agent", f"{__name__}:dealer", "--do", "hold", "--yes")
    assert await run(*options, *arguments) == NOT_TRIED
    assert words in capsys.readouterr().err


async def test_nothing_is_called_without_an_address_or_an_agent(capsys):
    assert await run("--do", "hold", "--yes") == NOT_TRIED
    assert "give the address of the service, or its agent" in capsys.readouterr().err


async def test_a_service_that_is_not_there_was_not_tried(capsys):
    """It has kept nothing and broken nothing."""
    async with served(Bank()) as url:
        pass
    assert await run(url, "--do", "pay", "--yes") == NOT_TRIED
    assert "no answer from the service" in capsys.readouterr().err


async def test_what_was_accepted_is_requested_again(capsys):
    """With the same key, as soon as the service says, until it is done; what is never done fails."""
    bank, calls, never = Receiver(app=Bank(), store=MemoryKeys()), Counter(), False

    async def later(scope, receive, send):
        key = dict(scope["headers"])[b"idempotency-key"]
        calls[key] += 1
        if calls[key] > 1 and not never:
            return await bank(scope, receive, send)
        headers = [(b"retry-after", b"0")]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        return await send({"type": "http.response.body", "body": b"{}"})

    options = ("--do", "pay", "--content", json.dumps(CONTENT), "--yes")
    async with served(later) as url:
        assert await run(url, *options) == WORKS
        never = True
        calls.clear()
        assert await run(url, *options, "--patience", "0.25") == FAILS
    assert set(calls.values()) == {4, 8, 12}  # a key is called once, twice or three times
    assert f"{TWICE}: the service answered pay with 202" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [(307, [(b"location", b"/elsewhere")], b""), (200, [], b'{"a": "' + b"x" * MAX_BYTES + b'"}')],
    ids=["elsewhere", "too long"],
)
async def test_what_no_agent_takes_is_no_answer(capsys, status, headers, body):
    """No redirect is followed, and an answer has its longest size."""
    paths = set()

    async def answer(scope, receive, send):
        paths.add(scope["path"])
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with served(answer) as url:
        assert await run(url, "--do", "pay", "--yes") == FAILS
    assert paths == {"/pay"}
    assert (
        f"{TWICE}: the service answered pay with {status} without a JSON object"
        in capsys.readouterr().out
    )
