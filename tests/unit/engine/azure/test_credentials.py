"""What an agent shows its service: keys, tokens and certificates, over real HTTP and TLS."""

import asyncio
import ssl
from base64 import b64decode
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from azure.core.credentials import AccessToken

import engine.azure.connections
import engine.azure.credentials
from development.settings import app_settings
from engine.azure.clock import utc_now
from engine.azure.connect import connect
from engine.azure.credentials import (
    BETWEEN_REFUSALS,
    FILE_CHECK_INTERVAL,
    Certificate,
    ClientGrant,
    Token,
    Tokens,
)
from engine.azure.remote import HttpRemoteService
from engine.azure.settings import Settings, SettingsError
from engine.declarations.business import AgentDefinition
from engine.declarations.credentials import (
    ApiKey,
    ClientCertificate,
    ClientCredentials,
    EntraToken,
    Setting,
)
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import Form
from engine.domain.errors import GatewayError, RejectedError, TransientError
from functions_alone.ports import Ports
from tests.support.agency import Agency
from tests.support.builders import NOW, seconds
from tests.support.certificates import authority, signed_by
from tests.support.clocks import Clock
from tests.support.foreign import ForeignService

PHRASE = "s3cret/+ &:%é"
OAUTH = ClientCredentials("POST_TOKEN_URL", "POST_CLIENT", "POST_SECRET", scope="POST_SCOPES")
KEY = ApiKey("POST_KEY", prefix="Bearer ")


def post(auth, **more):
    return AgentDefinition(name="post", offers="post", address="POST_URL", auth=auth, **more)


@pytest.fixture
async def foreign():
    service = ForeignService()
    async with TestServer(service.app) as server, ClientSession() as session:
        service.session = lambda: session
        service.url = str(server.make_url("")).rstrip("/")
        yield service


class Posting:
    """The agent of a service that wants tokens, on a clock that the test holds."""

    def __init__(self, foreign, **grant):
        self.foreign, self.now = foreign, NOW
        options = {"scope": None, "in_body": False} | grant
        self.fetch = ClientGrant(
            session=foreign.session,
            url=f"{foreign.url}/token",
            client_id="an:id",
            secret=PHRASE,
            clock=lambda: self.now,
            **options,
        )
        self.remote = HttpRemoteService(
            base_url=foreign.url,
            session=foreign.session,
            credential=Tokens(self.fetch, lambda: self.now),
            longest_wait=seconds(60),
            clock=lambda: self.now,
        )

    async def call(self, timeout_seconds=5):
        return await self.remote.call(Agency().request, timeout_seconds)


@pytest.fixture
def posting(foreign):
    return Posting(foreign)


def read(monkeypatch, agent, **values):
    """The settings of an app with this agent alone."""
    for name, value in (app_settings(Ports(), "k", "k", ()) | values).items():
        monkeypatch.setenv(name, value)
    return Settings.read([agent])


async def call(settings):
    """Call the service of an app with these settings."""
    parts = connect(settings)
    try:
        await parts.services["post"].call(Agency().request, 5)
    finally:
        await parts.close()


# Keys


@pytest.mark.parametrize(
    ("auth", "header", "shown"),
    [
        (KEY, "Authorization", "Bearer a-key"),
        (ApiKey("POST_KEY", header="X-Api-Key"), "X-Api-Key", "a-key"),
    ],
)
async def test_a_key_goes_along_in_its_header(foreign, monkeypatch, auth, header, shown):
    """With its prefix; its value is a setting, and no other."""
    await call(read(monkeypatch, post(auth), POST_URL=foreign.url, POST_KEY="a-key"))
    assert foreign.shown(header) == [shown]


async def test_a_key_that_is_refused_costs_one_call(foreign, monkeypatch):
    """There is no other to show."""
    foreign.statuses = [401]
    with pytest.raises(TransientError) as raised:
        await call(read(monkeypatch, post(KEY), POST_URL=foreign.url, POST_KEY="a-key"))
    assert isinstance(raised.value, GatewayError)
    assert len(foreign.calls) == 1


# Tokens


async def test_a_token_is_requested_as_the_settings_say(foreign, monkeypatch):
    """Address, client and scope; the call goes with it."""
    values = {"POST_CLIENT": "an:id", "POST_SECRET": "a secret", "POST_SCOPES": "parcels"}
    await call(
        read(
            monkeypatch,
            post(OAUTH),
            POST_URL=foreign.url,
            POST_TOKEN_URL=f"{foreign.url}/token",
            **values,
        )
    )
    (request,) = foreign.token_requests
    assert request.body == "grant_type=client_credentials&scope=parcels"
    assert b64decode(request.headers["Authorization"].removeprefix("Basic ")) == b"an%3Aid:a+secret"
    assert foreign.shown() == ["Bearer token-1"]


async def test_a_server_of_tokens_may_want_the_client_in_the_body(foreign):
    """Then it is not told a second time."""
    await Posting(foreign, in_body=True, scope="a b").call()
    (request,) = foreign.token_requests
    assert "Authorization" not in request.headers
    assert request.body == (
        "grant_type=client_credentials&scope=a+b&client_id=an%3Aid"
        "&client_secret=s3cret%2F%2B+%26%3A%25%C3%A9"
    )


@pytest.mark.parametrize(
    ("says", "lasts"),
    [
        ({"expires_in": 3600}, 3540),
        ({"expires_in": "3600"}, 3540),
        ({"expires_in": 100}, 90),
        ({"expires_in": None}, 270),
        ({"expires_in": "soon"}, 270),
        ({"expires_in": 1e300}, 86_340),
        ({"expires_in": -1e300}, 0),
        ({"expires_in": [1]}, 270),
    ],
    ids=str,
)
async def test_a_token_is_shown_until_shortly_before_its_end(posting, foreign, says, lasts):
    """Then another one is fetched."""
    foreign.token = says
    await posting.call()
    posting.now += seconds(lasts) - timedelta(microseconds=1)
    if lasts:
        await posting.call()
    posting.now += timedelta(microseconds=1)
    await posting.call()
    expected = ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    assert foreign.shown() == (expected if lasts else expected[1:])


async def test_concurrent_calls_share_one_fetch_even_if_one_of_them_leaves(posting, foreign):
    """The one that began it has no time left; the others go on."""
    foreign.may_answer.clear()
    impatient = asyncio.create_task(posting.call(0.05))
    others = [asyncio.create_task(posting.call()) for _ in range(5)]
    with pytest.raises(TransientError, match="TimeoutError"):
        await impatient
    foreign.may_answer.set()
    await asyncio.gather(*others)
    assert foreign.shown() == 5 * ["Bearer token-1"]
    assert len(foreign.token_requests) == 1


@pytest.mark.proves("AGT-3")
async def test_a_refused_token_is_replaced_once_and_the_call_made_again_with_its_key(
    posting, foreign
):
    """What the service then says is its answer."""
    foreign.statuses = [401]
    assert await posting.call() == {}
    assert foreign.shown() == ["Bearer token-1", "Bearer token-2"]
    first, second = foreign.calls
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert (first.target, first.body) == (second.target, second.body)


async def test_a_second_refusal_is_one_like_any_other(posting, foreign):
    """It may pass, and is no word of the service; the token is not replaced for every call."""
    foreign.statuses = [401] * 3
    for _ in range(2):
        with pytest.raises(TransientError, match="401") as raised:
            await posting.call()
        assert isinstance(raised.value, GatewayError)
    assert foreign.shown() == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]
    posting.now += BETWEEN_REFUSALS
    foreign.statuses = [401]
    await posting.call()
    assert foreign.shown()[3:] == ["Bearer token-2", "Bearer token-3"]


@pytest.mark.parametrize(
    ("renews", "statuses", "shown"),
    [
        (True, [200, 403], [1, 1, 2, 2]),
        (True, [200, 401], [1, 1, 2, 2]),
        (False, [200, 403], [1, 1]),
        (False, [200, 401], [1, 1, 2, 2]),
    ],
)
async def test_a_service_may_answer_403_to_a_token_that_was_withdrawn(
    foreign, monkeypatch, renews, statuses, shown
):
    """Where that is declared, another one is fetched (bugs 25)."""
    auth = replace(OAUTH, scope=None, renew_on_403=renews)
    values = {"POST_CLIENT": "c", "POST_SECRET": "s", "POST_TOKEN_URL": f"{foreign.url}/token"}
    foreign.statuses = statuses
    parts = connect(read(monkeypatch, post(auth), POST_URL=foreign.url, **values))
    for _ in range(len(set(shown)) + 1):
        with suppress(GatewayError):
            await parts.services["post"].call(Agency().request, 5)
    await parts.close()
    assert foreign.shown() == [f"Bearer token-{number}" for number in shown]


async def test_a_403_that_is_meant_costs_one_more_call_in_a_while(posting, foreign):
    """The token is not replaced for every call; the answer to the second one counts (bugs 25)."""
    posting.remote = replace(posting.remote, renew_on=(401, 403), refusals=(403,))
    foreign.statuses = [403] * 4
    for _ in range(3):
        with pytest.raises(RejectedError):
            await posting.call()
    assert foreign.shown() == ["Bearer token-1"] + 3 * ["Bearer token-2"]
    assert len(foreign.token_requests) == 2


async def test_calls_whose_token_is_refused_together_share_its_replacement(posting, foreign):
    """Whoever comes with the old one finds the new one."""
    await posting.call()
    foreign.statuses = [401] * 5
    await asyncio.gather(*(posting.call() for _ in range(5)))
    assert foreign.shown()[6:] == 5 * ["Bearer token-2"]
    assert len(foreign.token_requests) == 2


async def test_a_second_call_has_no_time_of_its_own(posting, foreign):
    """The refused call, the new token and the second call share one time-out."""
    await posting.call()
    foreign.statuses = [401]
    foreign.may_answer.clear()
    with pytest.raises(TransientError, match="TimeoutError"):
        await posting.call(0.1)
    foreign.may_answer.set()
    assert len(foreign.calls) == 2


async def test_a_server_of_tokens_that_hangs_holds_up_nobody_for_ever(monkeypatch):
    """Those who come later have a fetch of their own."""
    monkeypatch.setattr(engine.azure.credentials, "FETCH_SECONDS", 0.05)
    hangs = [asyncio.Event()]

    async def fetch(_):
        if hangs:
            await hangs.pop().wait()
        return Token(text="a-token", ends=NOW + seconds(60))

    tokens = Tokens(fetch, lambda: NOW)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tokens.headers(), 5)
    shown = await asyncio.wait_for(tokens.headers(), 5)
    assert shown == {"Authorization": "Bearer a-token"}


NO_TOKEN = {
    "refused": ({"error": "invalid_client", "error_description": PHRASE}, 401, "401 invalid_client"),
    "other words": ({"error": PHRASE}, 400, "400"),
    "no text": ({"access_token": 7}, 200, "200"),
    "a line": ({"access_token": "a\r\nX-Admin: 1"}, 200, "200"),
    "away": ({}, 503, "503"),
    "elsewhere": ({}, 302, "302"),
}  # fmt: skip


@pytest.mark.parametrize("label", NO_TOKEN)
async def test_without_a_token_there_is_no_call_and_no_secret_is_shown(posting, foreign, label):
    """It may pass, and the service has no part in it."""
    foreign.token, foreign.token_status, why = NO_TOKEN[label]
    with pytest.raises(TransientError) as raised:
        await posting.call()
    assert str(raised.value) == f"no token: {why}"
    assert isinstance(raised.value, GatewayError)
    assert foreign.calls == []


class Identity:
    """Gives out one token for its whole life, as the library does."""

    made = 0

    def __init__(self, **_):
        Identity.made += 1
        self.number = Identity.made

    async def get_token(self, scope):
        return AccessToken(f"{scope}-{self.number}", int(utc_now().timestamp()) + 3600)

    async def close(self):
        """Nothing is open."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()


@pytest.mark.parametrize(
    ("auth", "scope"),
    [
        (None, "POST_URL_SCOPE"),
        (EntraToken(), "POST_URL_SCOPE"),
        (EntraToken("ITS", renew_on_403=True), "ITS"),
    ],
)
async def test_a_refused_token_of_the_apps_identity_is_requested_again(
    foreign, monkeypatch, auth, scope
):
    """Of an identity that does not remember the refused one."""
    monkeypatch.setattr(Identity, "made", 0)
    monkeypatch.setattr(engine.azure.connections, "DefaultAzureCredential", Identity)
    foreign.statuses = [200, 401]
    parts = connect(read(monkeypatch, post(auth), POST_URL=foreign.url, **{scope: "api"}))
    for _ in range(3):
        await parts.services["post"].call(Agency().request, 5)
    await parts.close()
    assert foreign.shown() == ["Bearer api-1", "Bearer api-1", "Bearer api-2", "Bearer api-2"]


# Certificates


@pytest.fixture
async def strict(tmp_path, monkeypatch):
    """A service over TLS that talks to nobody without a certificate of its authority."""
    issuer = authority()
    (tmp_path / "ca.pem").write_text(issuer.public)
    (tmp_path / "server.pem").write_text(signed_by(issuer, "the service").pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.pem")
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    names = []

    async def answer(request):
        peer = request.transport.get_extra_info("peercert")
        names.append(dict(pair for (pair,) in peer["subject"])["commonName"])
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/authorise", answer)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    server.names, server.issuer = names, issuer
    yield server
    await server.close()


@pytest.mark.parametrize("form", ["text", "file"])
async def test_a_service_is_shown_a_certificate(strict, monkeypatch, tmp_path, form):
    """From the text of a setting, or from a file that it names."""
    pem = signed_by(strict.issuer, "the app").pem()
    (tmp_path / "client.pem").write_text(pem)
    value = pem if form == "text" else str(tmp_path / "client.pem")
    url = str(strict.make_url(""))
    auth = ClientCertificate("POST_CERTIFICATE")
    await call(read(monkeypatch, post(auth), POST_URL=url, POST_CERTIFICATE=value))
    assert strict.names == ["the app"]


async def test_without_its_certificate_the_service_does_not_talk(strict, monkeypatch):
    """And that may pass."""
    other = signed_by(authority(), "somebody").pem()
    auth = ClientCertificate("POST_CERTIFICATE")
    url = str(strict.make_url(""))
    with pytest.raises(TransientError, match="no answer"):
        await call(read(monkeypatch, post(auth), POST_URL=url, POST_CERTIFICATE=other))
    assert strict.names == []


@pytest.mark.parametrize("form", ["text", "file"])
def test_the_certificate_is_read_once(tmp_path, form):
    """And not for every call."""
    pem = signed_by(authority(), "the app").pem()
    (tmp_path / "client.pem").write_text(pem)
    value = pem if form == "text" else str(tmp_path / "client.pem")
    clock = Clock()
    certificate = Certificate("POST_CERTIFICATE", value, clock)
    context = certificate.context()
    for _ in range(3):
        assert certificate.context() is context
        clock.now += FILE_CHECK_INTERVAL


async def test_a_renewed_certificate_is_shown_without_a_restart(strict, monkeypatch, tmp_path):
    """On a new connection, although the old one is still open (bugs 4)."""
    monkeypatch.setattr(engine.azure.credentials, "FILE_CHECK_INTERVAL", timedelta())
    file = tmp_path / "client.pem"
    file.write_text(signed_by(strict.issuer, "the first").pem())
    auth = ClientCertificate("POST_CERTIFICATE")
    url = str(strict.make_url(""))
    parts = connect(read(monkeypatch, post(auth), POST_URL=url, POST_CERTIFICATE=str(file)))
    for name in ("the first", "the second"):
        file.write_text(signed_by(strict.issuer, name).pem())
        for _ in range(2):
            await parts.services["post"].call(Agency().request, 5)
    await parts.close()
    assert strict.names == 2 * ["the first"] + 2 * ["the second"]


@pytest.fixture
def renewed(tmp_path):
    """A certificate in a file that a test changes, on a clock that the test holds."""
    issuer = authority()
    file, clock = tmp_path / "client.pem", Clock()
    file.write_text(signed_by(issuer, "the first").pem())
    certificate = Certificate("POST_CERTIFICATE", str(file), clock)
    return SimpleNamespace(file=file, clock=clock, certificate=certificate, issuer=issuer)


def test_the_file_of_a_certificate_is_checked_at_intervals(renewed):
    """And not for every call (bugs 4)."""
    first = renewed.certificate.context()
    assert renewed.certificate.context() is first
    renewed.file.write_text(signed_by(renewed.issuer, "the second").pem())
    renewed.clock.now += FILE_CHECK_INTERVAL - timedelta(microseconds=1)
    assert renewed.certificate.context() is first
    renewed.clock.now += timedelta(microseconds=1)
    assert renewed.certificate.context() is not first


def gone(file):
    file.unlink()


def half_written(file):
    file.write_text(file.read_text()[:-200])


def of_another_key(file):
    first, other = (signed_by(authority(), "the app") for _ in range(2))
    file.write_text(first.public + other.pem().removeprefix(other.public))


@pytest.mark.parametrize("breaks", [gone, half_written, of_another_key])
def test_the_last_good_certificate_stays_until_the_new_one_can_be_read(renewed, caplog, breaks):
    """It is reported once, without its path, and read again at each check (bugs 4)."""
    first = renewed.certificate.context()
    breaks(renewed.file)
    for _ in range(3):
        renewed.clock.now += FILE_CHECK_INTERVAL
        assert renewed.certificate.context() is first
    (record,) = [record for record in caplog.records if record.msg == "certificate.not_renewed"]
    assert record.setting == "POST_CERTIFICATE"
    assert str(renewed.file) not in str(vars(record))
    renewed.file.write_text(signed_by(renewed.issuer, "the second").pem())
    renewed.clock.now += FILE_CHECK_INTERVAL
    assert renewed.certificate.context() is not first


def test_a_certificate_that_was_never_readable_raises_until_it_is(renewed):
    """There is no other to show (bugs 4)."""
    pem = renewed.file.read_text()
    renewed.file.unlink()
    for _ in range(2):
        with pytest.raises(OSError, match="No such file"):
            renewed.certificate.context()
    renewed.file.write_text(pem)
    assert renewed.certificate.context()


# Settings

PROTECTED = signed_by(authority(), "the app").pem("very-secret")
UNUSABLE = ("POST_CERTIFICATE", FaultCode.AGENT_SETTING_UNUSABLE)
WRONG = {
    "no key": (KEY, {}, ("POST_KEY", FaultCode.AGENT_SETTING_MISSING)),
    "a key over two lines": (
        KEY,
        {"POST_KEY": "very-secret\n"},
        ("POST_KEY", FaultCode.AGENT_SETTING_NOT_IN_HEADER),
    ),
    "no secret behind a reference": (
        KEY,
        {"POST_KEY": "@Microsoft.KeyVault(SecretUri=https://v/secrets/very-secret)"},
        ("POST_KEY", FaultCode.KEY_VAULT_UNRESOLVED),
    ),
    "no scope": (EntraToken(), {}, ("POST_URL_SCOPE", FaultCode.AGENT_SETTING_MISSING)),
    "no certificate": (
        ClientCertificate("POST_CERTIFICATE"),
        {"POST_CERTIFICATE": "-----BEGIN very-secret"},
        UNUSABLE,
    ),
    "no file": (
        ClientCertificate("POST_CERTIFICATE"),
        {"POST_CERTIFICATE": "/very-secret.pem"},
        UNUSABLE,
    ),
    "a key with a password": (
        ClientCertificate("POST_CERTIFICATE"),
        {"POST_CERTIFICATE": PROTECTED},
        UNUSABLE,
    ),
    "tokens for everybody to see": (
        OAUTH,
        {
            "POST_TOKEN_URL": "http://login.example.com",
            "POST_CLIENT": "c",
            "POST_SECRET": "very-secret",
            "POST_SCOPES": "s",
        },
        ("POST_TOKEN_URL", FaultCode.AGENT_SETTING_NO_ADDRESS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("label", WRONG)
def test_what_cannot_be_shown_is_reported_at_the_start_without_its_value(monkeypatch, label):
    """Before any order finds it out."""
    auth, values, (name, code) = WRONG[label]
    with pytest.raises(SettingsError) as raised:
        read(monkeypatch, post(auth), POST_URL="https://post.example.com", **values)
    meanings = {setting.name: setting.meaning for setting in post(auth).settings}
    facts = {"expected": meanings[name], "agent": "post"} if code.facts else {}
    assert raised.value.faults == [Fault(code, name, **facts)]
    assert "very-secret" not in f"{raised.value} {raised.value.faults}"


def test_everything_that_is_missing_is_reported_together(monkeypatch):
    """With the address."""
    with pytest.raises(SettingsError) as raised:
        read(monkeypatch, post(OAUTH))
    address, *others = post(OAUTH).settings
    faults = [
        Fault(FaultCode.AGENT_SETTING_MISSING, setting.name, expected=setting.meaning, agent="post")
        for setting in others
    ]
    faults.append(Fault(FaultCode.ADDRESS_MISSING, address.name, agent="post"))
    assert len(faults) == 5
    assert raised.value.faults == sorted(faults, key=lambda fault: fault.place)


def test_an_agent_that_is_left_out_needs_nothing(monkeypatch):
    """One that has an address needs what it shows there, optional or not."""
    agent = post(KEY, optional=True)
    assert read(monkeypatch, agent).addresses == {}
    with pytest.raises(SettingsError) as raised:
        read(monkeypatch, agent, POST_URL="https://post.example.com")
    assert [(fault.place, fault.code) for fault in raised.value.faults] == [
        ("POST_KEY", FaultCode.AGENT_SETTING_MISSING)
    ]


@pytest.mark.parametrize(
    "auth", [None, EntraToken(), KEY, OAUTH, ClientCertificate("POST_CERTIFICATE")]
)
async def test_a_simulated_service_is_called_as_declared_and_is_shown_nothing(
    foreign, monkeypatch, auth
):
    """So a business runs on one machine without a secret, whatever is set for its real service."""
    agent = post(auth, form=Form(key_header="Request-Id"))
    simulated = f"{foreign.url}/simulator/post"
    await call(read(monkeypatch, agent, POST_URL=simulated, POST_URL_SCOPE="api"))
    (received,) = foreign.calls
    assert received.target == "/simulator/post/authorise"
    assert received.headers["Request-Id"]
    assert foreign.shown() == [None]


def test_an_agent_lists_what_it_reads():
    """Which of it is required, and which of it nobody may see; and what each holds, in words."""

    def listed(agent):
        assert all(setting.meaning for setting in agent.settings)
        return [(setting.name, setting.required, setting.secret) for setting in agent.settings]

    address = ("POST_URL", True, False)
    assert listed(post(None)) == [address, ("POST_URL_SCOPE", False, False)]
    assert listed(post(EntraToken())) == [address, ("POST_URL_SCOPE", True, False)]
    assert listed(post(KEY)) == [address, ("POST_KEY", True, True)]
    assert listed(post(ClientCertificate("PEM"))) == [address, ("PEM", True, True)]
    assert listed(post(OAUTH)) == [
        address,
        ("POST_TOKEN_URL", True, False),
        ("POST_CLIENT", True, False),
        ("POST_SECRET", True, True),
        ("POST_SCOPES", True, False),
    ]
    assert not any(setting.required for setting in post(OAUTH, optional=True).settings)
    assert all(isinstance(setting, Setting) for setting in post(KEY).settings)


def test_no_secret_is_in_what_a_log_would_show_of_settings_and_services(monkeypatch):
    """Nor in the text of any part of them."""
    values = {"POST_CLIENT": "c", "POST_SECRET": "very-secret", "POST_SCOPES": "s"}
    urls = {"POST_URL": "https://p.example", "POST_TOKEN_URL": "https://t.example"}
    pem = signed_by(authority(), "the app").pem()
    certificate = ClientCertificate("POST_CERTIFICATE")
    for settings in (
        read(monkeypatch, post(OAUTH), **urls, **values),
        read(monkeypatch, post(KEY), **urls, POST_KEY="very-secret"),
        read(monkeypatch, post(certificate), **urls, POST_CERTIFICATE=pem),
    ):
        remote = connect(settings).services["post"]
        representation = f"{settings!r} {remote!r} {remote.credential!r} {vars(remote)}"
        representation += repr(getattr(remote.credential, "_fetch", ""))
        assert "very-secret" not in representation
        assert "PRIVATE KEY" not in representation
