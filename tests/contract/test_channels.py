"""The channels over HTTP against stubs on this machine, which play every answer that is known of the services."""

import asyncio
import json
import logging
import ssl
import time
import traceback
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector, web
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import AioHttpTransport
from azure.identity import CredentialUnavailableError
from pydantic import SecretStr

from engine.alerts.channels import ChannelName
from engine.azure.channels.opening import open_channels
from engine.azure.connections import Connections
from engine.domain.errors import ChannelAwayError, ChannelRefusedError
from tests.support.apps import set_to
from tests.support.certificates import authority, signed_by
from tests.support.digests import DIGEST_ID, FAILED, HOSTILE, digest

DATA = Path(__file__).parent.parent / "data/channels"
RECORDED = {
    name: json.loads((DATA / f"{name}.json").read_text()) for name in ("mail", "teams", "slack")
}
SECRETS = (
    "very-secret",
    "ada@example.com",
    "grace@example.com",
    "T0AB/B0CD",
    "9f7c",
    "token-of-app",
)
SIGNED = "/workflows/9f7c/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2frun&sv=1.0&sig=a%2Bb~%7Every-secret"
CUT, HANGS = "cut", "hangs"


@dataclass
class Stub:
    """A service that plays one answer, and keeps what it was sent."""

    answer: dict | str = field(default_factory=lambda: {"status": 202})
    requests: list = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request):
        self.requests.append(
            (request.method, request.raw_path, dict(request.headers), await request.read())
        )
        if self.answer == CUT:
            request.transport.abort()
        if self.answer == HANGS:
            await self.may_end.wait()
        if isinstance(self.answer, str):
            return web.Response()
        headers = self.answer.get("headers", {})
        return web.Response(
            status=self.answer["status"], headers=headers, text=self.answer.get("body", "")
        )


class Credential:
    """The app's identity."""

    def __init__(self):
        self.scopes = []

    async def get_token(self, *scopes, **_):
        self.scopes += scopes
        return AccessToken("token-of-app", int(time.time()) + 3600)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """The contexts of a server on this machine, and of clients that trust it."""
    issuer = authority()
    file = tmp_path_factory.mktemp("certificates") / "server.pem"
    file.write_text(signed_by(issuer, "server").pem())
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=issuer.public)


@pytest.fixture
async def stub(certificates):
    """The service of all channels over HTTP; mail has TLS, as tokens are sent nowhere else."""
    stub = Stub()
    yield stub
    stub.may_end.set()


@pytest.fixture
async def opened(stub, certificates):
    """The channels as the settings open them, all at the stub."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stub.handle)
    server_context, context = certificates

    def transport():
        session = ClientSession(connector=TCPConnector(ssl=context))
        return AioHttpTransport(session=session, use_env_settings=False)

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    clear, encrypted = web.TCPSite(runner, "127.0.0.1", 0), web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context)  # fmt: skip
    ports = []
    for site in (clear, encrypted):
        await site.start()
        ports.append(site._server.sockets[0].getsockname()[1])
    settings = set_to(
        mail_endpoint=f"https://127.0.0.1:{ports[1]}",
        mail_sender="DoNotReply@example.com",
        alert_recipients=SecretStr("ada@example.com,grace@example.com"),
        teams_webhook_url=SecretStr(f"http://127.0.0.1:{ports[0]}{SIGNED}"),
        slack_webhook_url=SecretStr(f"http://127.0.0.1:{ports[0]}/services/T0AB/B0CD/very-secret"),
    )
    pool = Connections(settings, transport=transport)
    pool._credentials[settings.storage_client_id] = credential = Credential()
    channels = open_channels(settings.channels, pool)
    yield channels, credential
    stub.may_end.set()
    await pool.close()
    await runner.cleanup()


def hidden(error, caplog):
    """Whether neither the error nor the log has a secret."""
    text = "".join(traceback.format_exception(error)) + caplog.text + repr(error)
    return [secret for secret in SECRETS if secret in text] == []


def test_every_configured_channel_is_opened(opened):
    """By its name, and hides what it knows."""
    channels, _ = opened
    assert list(channels) == [ChannelName.MAIL, ChannelName.TEAMS, ChannelName.SLACK]
    assert [name for name, channel in channels.items() if channel.name != name] == []
    shown = repr(channels)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize("name", RECORDED)
async def test_a_request_is_the_recorded_one(name, opened, stub):
    """One request, with these headers and this body, to the address as it was given."""
    channels, credential = opened
    await channels[name].send(digest())
    [(method, path, headers, body)] = stub.requests
    recorded = RECORDED[name]["request"]
    assert (method, path) == (recorded["method"], recorded["path"])
    assert {header: headers.get(header) for header in recorded["headers"]} == recorded["headers"]
    assert json.loads(body) == recorded["body"]
    scopes = ["https://communication.azure.com//.default"]
    assert credential.scopes == (scopes if name == "mail" else [])


async def test_a_repeat_of_a_mail_has_the_same_operation(opened, stub):
    """By which the service recognises it; the webhooks have nothing of the kind."""
    channels, _ = opened
    for _ in range(2):
        await channels["mail"].send(digest())
    assert [headers["Operation-Id"] for _, _, headers, _ in stub.requests] == [DIGEST_ID] * 2


ANSWERS = [(name, answer) for name, recorded in RECORDED.items() for answer in recorded["answers"]]


@pytest.mark.parametrize(
    ("name", "answer"),
    ANSWERS,
    ids=[f"{name} {answer['status']} {answer['case']}" for name, answer in ANSWERS],
)
async def test_every_answer_has_its_meaning(name, answer, opened, stub, caplog):
    """One request whatever it is, no redirect, and a pause within its bounds."""
    caplog.set_level(logging.DEBUG)
    channels, _ = opened
    stub.answer = answer
    kinds = {"away": ChannelAwayError, "refused": ChannelRefusedError}
    if answer["outcome"] == "sent":
        await channels[name].send(digest())
    else:
        with pytest.raises(kinds[answer["outcome"]]) as caught:
            await channels[name].send(digest())
        pause = getattr(caught.value, "retry_after", None)
        wanted = answer.get("retryAfterSeconds")
        assert pause == (None if wanted is None else timedelta(seconds=wanted))
        assert str(answer["status"]) in str(caught.value)
        assert answer.get("code", "") in str(caught.value)
        assert hidden(caught.value, caplog)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("answer", [CUT, HANGS])
async def test_no_answer_is_an_absence(name, answer, opened, stub, caplog):
    """After one request and within the time limit: the message perhaps arrived, and is repeated later."""
    caplog.set_level(logging.DEBUG)
    channels, _ = opened
    stub.answer = answer
    channel = replace(channels[name], limit_seconds=1.0 if answer == HANGS else 20.0)
    with pytest.raises(ChannelAwayError) as caught:
        await channel.send(digest())
    assert caught.value.retry_after == timedelta()
    assert len(stub.requests) == 1
    assert hidden(caught.value, caplog)


@pytest.mark.parametrize("name", RECORDED)
async def test_a_service_that_repeats_secrets_is_not_quoted(name, opened, stub, caplog):
    """Its words are in no error and no log, but for a code."""
    caplog.set_level(logging.DEBUG)
    channels, _ = opened
    words = "no post to /services/T0AB/B0CD/very-secret for ada@example.com"
    for body in (
        words,
        json.dumps({"error": words}),
        json.dumps({"error": {"code": words, "message": words}}),
    ):
        stub.answer = {"status": 400, "body": body, "headers": {"Content-Type": "application/json"}}
        with pytest.raises(ChannelRefusedError) as caught:
            await channels[name].send(digest())
        assert hidden(caught.value, caplog)


async def test_nobody_at_an_address_is_an_absence(unused_tcp_port, opened, caplog):
    """A chat may move or restart; its address stays hidden."""
    channels, _ = opened
    url = f"http://127.0.0.1:{unused_tcp_port}/services/T0AB/B0CD/very-secret"
    with pytest.raises(ChannelAwayError) as caught:
        await replace(channels["slack"], url=url).send(digest())
    assert hidden(caught.value, caplog)


async def test_an_identity_without_a_token_is_an_absence(opened, stub, caplog):
    """It may come: an identity takes a moment after a start."""
    channels, credential = opened

    async def get_token(*_, **__):
        raise CredentialUnavailableError(message="no identity for ada@example.com")

    credential.get_token = get_token
    with pytest.raises(ChannelAwayError) as caught:
        await channels["mail"].send(digest())
    assert stub.requests == []
    assert hidden(caught.value, caplog)


@pytest.mark.parametrize("name", RECORDED)
async def test_hostile_texts_arrive_as_json(name, opened, stub):
    """Control characters are gone, and nothing is lost."""
    channels, _ = opened
    await channels[name].send(digest(replace(FAILED, title=f"a\r\nb\x00\ud800{HOSTILE}")))
    [(_, _, _, body)] = stub.requests
    text = json.dumps(json.loads(body.decode()))
    assert [escape for escape in ("\\r", "\\u0000", "\\ud800") if escape in text] == []
    assert "script" in text
