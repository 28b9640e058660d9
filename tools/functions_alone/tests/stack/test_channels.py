"""The stand-ins for channels to people, with the SMTP client of the standard library and with posts."""

import asyncio
import os
import smtplib
import sys
from email.message import EmailMessage
from functools import partial

import aiohttp
import pytest

from functions_alone import site
from functions_alone.channels import application
from functions_alone.faults import LocalCode
from functions_alone.inbox import KEPT_MESSAGES, ChannelInbox
from functions_alone.mail_server import MailServer
from functions_alone.ports import HOST, Ports, StackError, listen
from functions_alone.site import Site
from functions_alone.stack import Stack
from functions_alone.tests.support.places import TOOLS
from functions_alone.tests.support.waiting import PATIENCE_SECONDS, eventually

CARD = "application/vnd.microsoft.card.adaptive"
AT_ONCE = aiohttp.ClientTimeout(total=0.5)


class CountingInbox(ChannelInbox):
    """An inbox that counts what comes, kept or not."""

    come = 0

    async def take(self, message):
        self.come += 1
        return await super().take(message)


class Channels:
    """The stand-ins, and what clients do with them."""

    def __init__(self, ports):
        inbox = CountingInbox()
        self.ports, self.inbox = ports, inbox
        self.site = Site(ports.channels_port, partial(application, inbox))
        self.mail_server = MailServer(ports.smtp_port, inbox)

    async def call(self, method, path, **more):
        """Return status, headers and text of an answer."""
        url = f"http://{HOST}:{self.ports.channels_port}{path}"
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, url, **more) as answer,
        ):
            return answer.status, answer.headers, await answer.text()

    async def post(self, channel, subject="Two orders failed", **more):
        """Post a message to a webhook."""
        return await self.call("POST", f"/webhooks/{channel}", json=CARDS[channel](subject), **more)

    async def hanging_post(self):
        """Return a post to Slack that has arrived and hangs."""
        come = self.inbox.come
        hanging = asyncio.create_task(self.post("slack"))

        async def has_come():
            return self.inbox.come > come

        await eventually(has_come)
        return hanging

    async def set(self, channel, mode, **more):
        """Let a channel fail."""
        status, _, _ = await self.call(
            "PUT", f"/channels/{channel}/fault", json={"mode": mode, **more}
        )
        assert status == 204

    async def received(self):
        """What the stand-ins kept."""
        url = f"http://{HOST}:{self.ports.channels_port}/messages"
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            return (await answer.json())["messages"]

    async def mail(self, number=1, patience=PATIENCE_SECONDS):
        """Send a mail."""
        await asyncio.to_thread(send_mail, self.ports.smtp_port, number, patience)


def send_mail(port, number, timeout):
    message = EmailMessage()
    message["From"], message["To"] = "app@example.com", "ada@example.com"
    message["Subject"], message["Message-ID"] = "Zwei Aufträge", f"<{number}@example.com>"
    message.set_content("Zwei Aufträge sind gescheitert.\n")
    message.add_alternative("<p>Zwei Aufträge</p>", subtype="html")
    with smtplib.SMTP(HOST, port, timeout=timeout) as client:
        client.send_message(message)


def teams_card(subject):
    heading = {"type": "TextRun", "text": subject}
    body = [
        {"type": "RichTextBlock", "inlines": [heading]},
        {"type": "Container", "items": [{"type": "TextBlock", "text": "order 7"}]},
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": "Why: "}, "declined"]},
    ]
    return {
        "type": "message",
        "attachments": [{"contentType": CARD, "content": {"type": "AdaptiveCard", "body": body}}],
    }


def slack_card(subject):
    texts = [f"*{subject}*", "order 7"]
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts]
    return {"text": subject, "blocks": blocks}


CARDS = {"teams": teams_card, "slack": slack_card}


@pytest.fixture
async def channels(monkeypatch):
    monkeypatch.setattr(
        site, "PATIENCE_SECONDS", 10 * PATIENCE_SECONDS
    )  # so that a wait is noticed
    channels = Channels(Ports.free())
    await channels.site.start()
    await channels.mail_server.start()
    yield channels
    await channels.mail_server.stop()
    await channels.site.stop()


async def test_a_mail_is_kept_with_its_id_subject_and_plain_text(channels):
    """So a test recognises a repeat, and a person reads what was sent."""
    await channels.mail()
    [message] = await channels.received()
    assert message.pop("time")
    assert message == {
        "channel": "smtp",
        "id": "<1@example.com>",
        "subject": "Zwei Aufträge",
        "text": "Zwei Aufträge sind gescheitert.\n",
    }


@pytest.mark.parametrize(
    ("channel", "answer", "text"),
    [
        ("teams", (202, ""), "Two orders failed\norder 7\nWhy: declined"),
        ("slack", (200, "ok"), "*Two orders failed*\norder 7"),
    ],
)
async def test_a_card_is_answered_as_the_service_does_and_kept_as_text(
    channels, channel, answer, text
):
    """Both have no id of a message."""
    status, _, answered = await channels.post(channel)
    assert (status, answered) == answer
    [message] = await channels.received()
    assert (message["channel"], message["id"]) == (channel, None)
    assert (message["subject"], message["text"]) == ("Two orders failed", text)


@pytest.mark.parametrize(
    ("channel", "body"),
    [
        *((channel, body) for channel in CARDS for body in (b"{", b"[]", b"{}", b"\xff")),
        ("teams", b'{"attachments": [{"contentType": "text/plain", "content": {}}]}'),
        ("teams", b'{"attachments": [7]}'),
        ("slack", b'{"text": ""}'),
        ("slack", b'{"text": "x", "blocks": 7}'),
    ],
)
async def test_what_is_no_message_is_refused(channels, channel, body):
    """Also by Teams, whose workflow would fail after its 202."""
    status, _, _ = await channels.call("POST", f"/webhooks/{channel}", data=body)
    assert (status, await channels.received()) == (400, [])


async def test_the_last_hundred_messages_are_kept(channels):
    """The oldest go first; memory stays bounded."""
    for number in range(KEPT_MESSAGES + 2):
        await channels.post("slack", f"message {number}")
    subjects = [message["subject"] for message in await channels.received()]
    assert (len(subjects), subjects[0]) == (KEPT_MESSAGES, "message 2")


@pytest.mark.parametrize(("mode", "code"), [("429", 451), ("refuse", 554)])
async def test_a_mail_server_that_fails_answers_with_its_code_and_keeps_nothing(
    channels, mode, code
):
    """A code of 4xx is for now, one of 5xx is final; afterwards mail arrives again."""
    await channels.set("smtp", mode)
    with pytest.raises(smtplib.SMTPDataError) as raised:
        await channels.mail()
    assert (raised.value.smtp_code, await channels.received()) == (code, [])
    await channels.set("smtp", "none")
    await channels.mail()
    assert len(await channels.received()) == 1


@pytest.mark.parametrize("channel", CARDS)
async def test_a_throttled_webhook_says_when_to_try_again(channels, channel):
    """429, with the header only if a time was set; other channels are not touched."""
    await channels.set(channel, "429", retryAfter=7)
    status, headers, _ = await channels.post(channel)
    assert (status, headers["Retry-After"]) == (429, "7")
    await channels.set(channel, "429")
    _, headers, _ = await channels.post(channel)
    assert "Retry-After" not in headers
    await channels.mail()
    assert [message["channel"] for message in await channels.received()] == ["smtp"]


@pytest.mark.parametrize(("channel", "status"), [("teams", 401), ("slack", 404)])
async def test_a_webhook_that_refuses_answers_with_a_status_that_is_final(
    channels, channel, status
):
    """Nothing is kept."""
    await channels.set(channel, "refuse")
    answered, _, _ = await channels.post(channel)
    assert (answered, await channels.received()) == (status, [])


async def test_a_connection_that_is_cut_leaves_the_sender_without_an_answer(channels):
    """The message has arrived all the same, so a repeat is the second one."""
    for channel in ("smtp", *CARDS):
        await channels.set(channel, "cut")
    with pytest.raises(smtplib.SMTPServerDisconnected):
        await channels.mail()
    for channel in CARDS:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await channels.post(channel)
    assert [message["channel"] for message in await channels.received()] == ["smtp", *CARDS]


async def test_a_channel_that_hangs_gives_no_answer_and_keeps_nothing(channels):
    """The sender has to give up; a new mode closes what still hangs."""
    for channel in ("smtp", *CARDS):
        await channels.set(channel, "hang")
    with pytest.raises(smtplib.SMTPServerDisconnected, match="timed out"):
        await channels.mail(patience=0.5)
    for channel in CARDS:
        with pytest.raises(TimeoutError):
            await channels.post(channel, timeout=AT_ONCE)
    hanging = await channels.hanging_post()
    await channels.set("slack", "none")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await hanging
    assert await channels.received() == []


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("pigeon", b'{"mode": "none"}', 404),
        ("smtp", b'{"mode": "late"}', 400),
        ("smtp", b'{"mode": "429", "retryAfter": -1}', 400),
        ("smtp", b'{"mode": "429", "retry": 1}', 400),
        ("smtp", b"{", 400),
    ],
)
async def test_a_fault_that_does_not_exist_is_refused(channels, name, body, status):
    """And the channel works as before."""
    answered, _, _ = await channels.call("PUT", f"/channels/{name}/fault", data=body)
    assert answered == status
    await channels.mail()


async def test_a_stand_in_that_stops_waits_for_no_call_that_hangs(channels):
    """It can be started again, and still has its messages and its faults."""
    await channels.post("teams")
    await channels.set("slack", "hang")
    hanging = await channels.hanging_post()
    mailing = await asyncio.to_thread(smtplib.SMTP, HOST, channels.ports.smtp_port)
    await asyncio.wait_for(channels.site.stop(), PATIENCE_SECONDS)
    await channels.mail_server.stop()
    with pytest.raises(aiohttp.ClientError):
        await hanging
    with pytest.raises(smtplib.SMTPServerDisconnected):
        await asyncio.to_thread(mailing.noop)
    with pytest.raises(ConnectionRefusedError):
        await channels.mail()
    await channels.site.start()
    await channels.mail_server.start()
    assert [message["channel"] for message in await channels.received()] == ["teams"]
    with pytest.raises(TimeoutError):
        await channels.post("slack", timeout=AT_ONCE)


async def test_a_stack_has_the_stand_ins_on_its_ports(services):
    """Mail and posts reach the list that a person opens."""
    channels = Channels(services.ports)
    await channels.mail(number=2)
    await channels.post("teams")
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{services.channels_url}/messages") as answer,
    ):
        received = (await answer.json())["messages"]
    assert [message["channel"] for message in received] == ["smtp", "teams"]


@pytest.mark.parametrize("name", ["channels_port", "smtp_port"])
async def test_a_port_that_is_taken_is_named_with_its_variable(config_of, name):
    """Somebody took it after the stack had looked."""
    stack = Stack(config_of())
    with listen(getattr(stack.ports, name)), pytest.raises(StackError) as raised:
        await stack.start_channels()
    await stack.stop_channels()
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (LocalCode.PORT_IN_USE, name.upper())


async def test_they_run_as_a_process_of_their_own_too():
    """Until it is told to end."""
    channels = Channels(Ports.free())
    places = [
        f"--port={channels.ports.channels_port}",
        f"--smtp-port={channels.ports.smtp_port}",
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "functions_alone.channels", *places),
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
    )
    try:

        async def answers():
            try:
                return await channels.received() == []
            except aiohttp.ClientError:
                return False

        await eventually(answers)
        await channels.mail()
        assert len(await channels.received()) == 1
    finally:
        process.terminate()
    assert await process.wait() == 0
