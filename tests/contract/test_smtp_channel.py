"""The channel over SMTP against a server on this machine, which plays what servers are known to answer."""

import asyncio
import logging
import ssl
import traceback
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from email.utils import parsedate_to_datetime

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from pydantic import SecretStr

from engine.azure.channels.addresses import Encryption, SmtpServer
from engine.azure.channels.message_texts import html_text, plain_text
from engine.azure.channels.opening import open_channels
from engine.azure.channels.smtp import SmtpChannel
from engine.azure.connections import Connections
from engine.domain.errors import ChannelAwayError, ChannelRefusedError
from engine.words.digests import subject_of
from tests.support.apps import set_to
from tests.support.builders import NOW
from tests.support.certificates import authority, signed_by
from tests.support.digests import DIGEST_ID, FAILED, HOSTILE, STALLED, digest

ADA, GRACE = "ada@example.com", "grace@example.com"
SECRETS = (ADA, GRACE, "very-secret")
HANGS, CUT = "hangs", "cut"


@dataclass
class Server:
    """A mail server that answers as it is told, and keeps what it took."""

    recipients: dict = field(default_factory=dict)
    """Its answer to each recipient, if it does not take one."""
    data: str = "250 OK"
    """Its answer to the message, or what it does instead."""
    mails: list = field(default_factory=list)
    """Who sent to whom, over which connection, and the message."""
    commands: list = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_MAIL(self, _server, _session, envelope, address, options):  # noqa: N802 - aiosmtpd calls it so
        self.commands.append("MAIL")
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, _server, _session, envelope, address, options):  # noqa: N802 - as above
        if address in self.recipients:
            return self.recipients[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - as above
        if self.data == CUT:
            server.transport.abort()
        if self.data == HANGS:
            await self.may_end.wait()
        if self.data.startswith("250"):
            message = message_from_bytes(envelope.content, policy=default)
            self.mails.append(
                (envelope.mail_from, envelope.rcpt_tos, session.ssl is not None, message)
            )
        return self.data if self.data[:1].isdigit() else "250 OK"

    def authenticate(self, _server, _session, _envelope, _mechanism, login):
        self.commands.append("AUTH")
        right = (login.login, login.password) == (b"ops", b"very-secret")
        # Not handled: the library would leave the answer to us, and the client without one.
        return AuthResult(success=right, handled=False)


@pytest.fixture
async def server():
    server = Server()
    yield server
    server.may_end.set()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """The contexts of a server on this machine, and of clients that trust it."""
    issuer = authority()
    file = tmp_path_factory.mktemp("certificates") / "server.pem"
    file.write_text(signed_by(issuer, "server").pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    return context, ssl.create_default_context(cadata=issuer.public)


@asynccontextmanager
async def served(handler, *, over_tls=None, **options):
    """The port of a server; its options are those of aiosmtpd."""
    loop = asyncio.get_running_loop()

    def made():
        return SMTP(handler, hostname="mail.example.com", loop=loop, **options)

    listening = await loop.create_server(made, "127.0.0.1", 0, ssl=over_tls)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        handler.may_end.set()
        listening.close()
        await listening.wait_closed()


def channel_at(port, encryption=Encryption.NONE, *, login=False, **more):
    """The channel to a server on this machine."""
    user, password = ("ops", "very-secret") if login else ("", "")
    at = SmtpServer(
        host="127.0.0.1", port=port, encryption=encryption, user=user, password=password
    )
    return SmtpChannel(server=at, sender="orders@example.com", recipients=[ADA, GRACE], **more)


def hidden(error, caplog):
    """Whether neither the error nor our log has a secret."""
    ours = [
        record.getMessage() + str(vars(record))
        for record in caplog.records
        if record.name.startswith("adapters")
    ]
    text = "".join([*traceback.format_exception(error), *ours, repr(error)])
    return [secret for secret in SECRETS if secret in text] == []


async def test_a_mail_is_complete(server):
    """As the settings open the channel: the text twice, and the headers by which servers and readers recognise it."""
    async with served(server) as port:
        settings = set_to(
            smtp_url=SecretStr(f"smtp://127.0.0.1:{port}"),
            smtp_sender="orders@example.com",
            alert_recipients=SecretStr(f"{ADA}, {GRACE}"),
        )
        channels = open_channels(settings.channels, Connections(settings))
        assert list(channels) == ["smtp"]
        await channels["smtp"].send(digest())
    [(sender, recipients, _, message)] = server.mails
    assert (sender, recipients) == ("orders@example.com", [ADA, GRACE])
    assert message["From"] == "orders@example.com"
    assert [address.addr_spec for address in message["To"].addresses] == [ADA, GRACE]
    assert message["Subject"] == subject_of(digest())
    assert message["Message-ID"] == f"<{DIGEST_ID}@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert parsedate_to_datetime(message["Date"]) == NOW
    assert message.get_content_type() == "multipart/alternative"
    plain, html = message.iter_parts()
    assert (plain.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    assert plain.get_content().splitlines() == plain_text(digest()).splitlines()
    assert html.get_content().splitlines() == html_text(digest()).splitlines()


async def test_a_repeat_has_the_same_message_id(server):
    """By which a reader's mailbox may join the two."""
    async with served(server) as port:
        for _ in range(2):
            await channel_at(port).send(digest())
    assert [message["Message-ID"] for *_, message in server.mails] == [
        f"<{DIGEST_ID}@example.com>"
    ] * 2


async def test_no_text_adds_a_header_or_a_recipient(server):
    """Not even one that was cleaned by nobody; non-ASCII and lines of dots arrive as they are."""
    texts = dict.fromkeys(("title", "about"), f"ä\r\nBcc: b@example.com\x00\u2028\x0b{HOSTILE}")
    hostile = replace(FAILED, **texts, reason="a\r\n.\r\nQUIT\r\n", advice="ä" * 2000)
    async with served(server) as port:
        await channel_at(port).send(digest(hostile, STALLED))
    [(_, recipients, _, message)] = server.mails
    assert recipients == [ADA, GRACE]
    assert set(message.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
        "X-Peer", "X-MailFrom", "X-RcptTo",
    } - {"X-Peer", "X-MailFrom", "X-RcptTo"}  # fmt: skip
    plain, _ = message.iter_parts()
    assert plain.get_content().splitlines() == plain_text(digest(hostile, STALLED)).splitlines()


@pytest.mark.parametrize("encryption", [Encryption.TLS, Encryption.STARTTLS])
async def test_an_encrypted_mail_is_sent_after_the_login(encryption, server, certificates):
    """The password goes through the encrypted connection alone."""
    context, trusting = certificates
    over_tls = encryption is Encryption.TLS
    options = (
        {"over_tls": context} if over_tls else {"tls_context": context, "require_starttls": True}
    )
    options |= {"authenticator": server.authenticate, "auth_require_tls": not over_tls}
    async with served(server, **options) as port:
        await channel_at(port, encryption, login=True, context=lambda: trusting).send(digest())
    assert server.commands == ["AUTH", "MAIL"]
    [(_, _, encrypted, _)] = server.mails
    assert encrypted or over_tls


async def test_nothing_is_sent_to_a_server_that_cannot_encrypt(server, certificates, caplog):
    """Neither the password nor the mail: a server of STARTTLS without it may be another one."""
    async with served(server, authenticator=server.authenticate, auth_require_tls=False) as port:
        channel = channel_at(port, Encryption.STARTTLS, login=True, context=lambda: certificates[1])
        with pytest.raises(ChannelRefusedError) as caught:
            await channel.send(digest())
    assert (server.commands, server.mails) == ([], [])
    assert hidden(caught.value, caplog)


@pytest.mark.parametrize("encryption", [Encryption.TLS, Encryption.STARTTLS])
async def test_nothing_is_sent_to_a_server_that_nobody_vouches_for(
    encryption, server, certificates
):
    """Its certificate may be renewed, so a later try may succeed."""
    context, _ = certificates
    options = {"over_tls": context} if encryption is Encryption.TLS else {"tls_context": context}
    async with served(server, **options) as port:
        with pytest.raises(ChannelAwayError):
            await channel_at(port, encryption).send(digest())
    assert (server.commands, server.mails) == ([], [])


async def test_tls_from_the_beginning_is_not_given_up(server, certificates):
    """A server without it gets nothing."""
    async with served(server) as port:
        with pytest.raises(ChannelAwayError):
            await channel_at(port, Encryption.TLS, context=lambda: certificates[1]).send(digest())
    assert server.mails == []


@pytest.mark.parametrize("knows_logins", [True, False])
async def test_a_login_that_fails_is_a_refusal(knows_logins, server, caplog):
    """The password is wrong, or the server knows none: no later try helps, until the setting is mended."""
    options = (
        {"authenticator": server.authenticate, "auth_require_tls": False} if knows_logins else {}
    )
    async with served(server, **options) as port:
        channel = channel_at(port, login=True)
        other = {"password": "another-very-secret"}
        wrong = replace(channel, server=replace(channel.server, **other))
        with pytest.raises(ChannelRefusedError) as caught:
            await wrong.send(digest())
    assert server.mails == []
    assert ("535" in str(caught.value)) == knows_logins
    assert hidden(caught.value, caplog)


async def test_a_mail_that_one_recipient_gets_is_sent(server, caplog):
    """The log says how many did not, and not who: a repeat would reach the others twice."""
    server.recipients = {GRACE: f"550 no mailbox {GRACE}"}
    async with served(server) as port:
        await channel_at(port).send(digest())
    [(_, recipients, _, _)] = server.mails
    assert recipients == [ADA]
    [logged] = [record for record in caplog.records if record.msg == "channel.recipients_refused"]
    assert (logged.levelno, logged.channel, logged.count, logged.codes) == (
        logging.WARNING,
        "smtp",
        1,
        [550],
    )
    assert hidden(None, caplog)


@pytest.mark.parametrize(
    ("recipients", "data", "kind"),
    [
        ({ADA: "550 no", GRACE: f"553 {GRACE}"}, "250 OK", ChannelRefusedError),
        ({ADA: "550 no", GRACE: "450 busy"}, "250 OK", ChannelAwayError),
        ({}, f"451 later, {ADA}", ChannelAwayError),
        ({}, "421 closing", ChannelAwayError),
        ({}, f"554 spam for {ADA}", ChannelRefusedError),
        ({}, "552 too large", ChannelRefusedError),
        ({}, CUT, ChannelAwayError),
    ],
)
async def test_every_answer_has_its_meaning(recipients, data, kind, server, caplog):
    """4xx is for now, 5xx for good; a connection that is cut may have carried the mail."""
    caplog.set_level(logging.DEBUG)
    server.recipients, server.data = recipients, data
    async with served(server) as port:
        with pytest.raises(kind) as caught:
            await channel_at(port).send(digest())
    assert server.mails == []
    codes = [answer[:3] for answer in (*recipients.values(), data) if not answer.startswith("250")]
    assert [code for code in codes if code.isdigit() and code not in str(caught.value)] == []
    assert getattr(caught.value, "retry_after", timedelta()) == timedelta()
    assert hidden(caught.value, caplog)


async def test_a_server_that_hangs_takes_no_longer_than_the_limit(server, caplog):
    """Another channel waits for no answer of this one."""
    server.data = HANGS
    async with served(server) as port:
        with pytest.raises(ChannelAwayError) as caught:
            await channel_at(port, limit_seconds=1.0).send(digest())
    assert hidden(caught.value, caplog)


async def test_nobody_at_the_address_is_an_absence(unused_tcp_port, caplog):
    """A server may restart."""
    with pytest.raises(ChannelAwayError) as caught:
        await channel_at(unused_tcp_port).send(digest())
    assert hidden(caught.value, caplog)


@pytest.mark.parametrize(
    "about",
    [
        "=?utf-8?q?a=0D=0ABcc:_eve@example.com?=",
        "=?utf-8?b?DQpCY2M6IGV2ZUBleGFtcGxlLmNvbQ==?=",
        "=?utf-8?q?=0D=0A=0D=0Abody?=",
        "==??utf-8?q?=0D=0ABcc:_eve@example.com?=",
    ],
)
def test_an_encoded_word_in_a_subject_makes_no_header(about):
    """The library decodes it, line breaks too; `clean` sees only printable characters."""
    local = SmtpServer(host="localhost", port=25, encryption=Encryption.NONE)
    channel = SmtpChannel(server=local, sender="orders@example.com", recipients=[ADA])
    sent = message_from_bytes(
        channel._message(digest(replace(FAILED, about=about))).as_bytes(), policy=default
    )
    usual = message_from_bytes(channel._message(digest()).as_bytes(), policy=default)
    assert sent.keys() == usual.keys()
    assert "q?" in sent["Subject"] or "b?" in sent["Subject"]
