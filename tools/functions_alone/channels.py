"""Stand-ins for the channels to people: a mail server, and the webhooks of Teams and Slack.

`GET /messages` lists the messages that were received. `PUT /channels/{name}/fault` makes a channel fail: `smtp`,
`teams` or `slack`.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from json import JSONDecodeError
from typing import Any

import click
from aiohttp import web
from pydantic import ValidationError

from functions_alone.inbox import ChannelFault, ChannelInbox, Mode, SentMessage, StandInChannel
from functions_alone.mail_server import MailServer
from functions_alone.ports import HOST

CARD = "application/vnd.microsoft.card.adaptive"


class PayloadError(Exception):
    """A webhook got something other than a message. The text is the code of the answer."""


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """The HTTP handlers of the stand-ins."""

    inbox: ChannelInbox

    async def teams(self, request: web.Request) -> web.Response:
        """Answer as a Teams workflow does, but refuse a message that would fail after the workflow's 202."""
        try:
            message = teams_message(await _content(request))
        except PayloadError as error:
            return _teams_refusal(400, str(error))
        fault = await self.inbox.take(message)
        if fault.closes:
            return _closed(request)
        if fault.mode is Mode.THROTTLE:
            return _teams_refusal(429, "WorkflowRunThrottled", _headers(fault))
        if fault.mode is Mode.REFUSE:
            return _teams_refusal(401, "DirectApiAuthorizationRequired")
        return web.Response(status=202)

    async def slack(self, request: web.Request) -> web.Response:
        """Answer as an incoming webhook of Slack does: with a word."""
        try:
            message = slack_message(await _content(request))
        except PayloadError as error:
            return web.Response(status=400, text=str(error))
        fault = await self.inbox.take(message)
        if fault.closes:
            return _closed(request)
        if fault.mode is Mode.THROTTLE:
            return web.Response(status=429, text="rate_limited", headers=_headers(fault))
        if fault.mode is Mode.REFUSE:
            return web.Response(status=404, text="no_service")
        return web.Response(text="ok")

    async def list_messages(self, _: web.Request) -> web.Response:
        messages = [_shown(message) for message in self.inbox.messages]
        return web.json_response({"messages": messages})

    async def put_fault(self, request: web.Request) -> web.Response:
        """Make a channel fail as the body says."""
        try:
            channel = StandInChannel(request.match_info["name"])
        except ValueError:
            return web.Response(status=404, text=f"choose from: {', '.join(StandInChannel)}")
        try:
            fault = ChannelFault.model_validate_json(await request.read())
        except ValidationError as error:
            return web.Response(status=400, text=str(error))
        self.inbox.set_fault(channel, fault)
        return web.Response(status=204)


def application(inbox: ChannelInbox) -> web.Application:
    """Return the web application. The mail server is not part of it."""
    webhooks = Webhooks(inbox=inbox)

    async def release(_: web.Application) -> None:
        inbox.release()

    app = web.Application()
    app.add_routes(
        [
            web.post("/webhooks/teams", webhooks.teams),
            web.post("/webhooks/slack", webhooks.slack),
            web.get("/messages", webhooks.list_messages),
            web.put("/channels/{name}/fault", webhooks.put_fault),
        ]
    )
    app.on_shutdown.append(release)
    return app


def teams_message(content: Mapping[str, Any]) -> SentMessage:
    """Read the envelope of an Adaptive Card. Raises `PayloadError` if it is not one."""
    attachments = content.get("attachments")
    if not isinstance(attachments, list) or not attachments:
        raise PayloadError("AttachmentsMissing")
    for attachment in attachments:
        card = attachment.get("content") if isinstance(attachment, dict) else None
        if not isinstance(card, dict) or attachment.get("contentType") != CARD:
            raise PayloadError("AdaptiveCardMissing")
    lines = list(_lines(attachments))
    subject = lines[0] if lines else ""
    return SentMessage(channel=StandInChannel.TEAMS, subject=subject, text="\n".join(lines))


def slack_message(content: Mapping[str, Any]) -> SentMessage:
    """Read the payload of an incoming webhook. Raises `PayloadError` if it is not one."""
    subject, blocks = content.get("text"), content.get("blocks", [])
    if not isinstance(blocks, list):
        raise PayloadError("invalid_blocks")
    lines = list(_lines(blocks))
    if not isinstance(subject, str) or not (subject or lines):
        raise PayloadError("no_text")
    text = "\n".join(lines) or subject
    return SentMessage(channel=StandInChannel.SLACK, subject=subject, text=text)


def _lines(element: object) -> Iterator[str]:
    """Yield the texts of an element of a card: one line for each block."""
    if isinstance(element, list):
        for part in element:
            yield from _lines(part)
    elif isinstance(element, dict):
        if isinstance(runs := element.get("inlines"), list):
            yield "".join(run if isinstance(run, str) else str(run.get("text", "")) for run in runs)
        elif isinstance(text := element.get("text"), str):
            yield text
        else:
            for part in element.values():
                yield from _lines(part)


async def _content(request: web.Request) -> Mapping[str, Any]:
    """Return the JSON object of a request. Raises `PayloadError` for any other body."""
    try:
        content = await request.json()
    except (JSONDecodeError, UnicodeDecodeError):
        raise PayloadError("invalid_payload") from None
    if not isinstance(content, dict):
        raise PayloadError("invalid_payload")
    return content


def _closed(request: web.Request) -> web.Response:
    """Close the connection. The response that is returned reaches nobody."""
    if request.transport:
        request.transport.abort()
    return web.Response()


def _teams_refusal(
    status: int, code: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    error = {"code": code, "message": "the stand-in does not take this message"}
    return web.json_response({"error": error}, status=status, headers=headers)


def _headers(fault: ChannelFault) -> Mapping[str, str]:
    return {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}


def _shown(message: SentMessage) -> dict[str, Any]:
    shown = asdict(message).items()
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in shown
    }


@click.command(help=__doc__)
@click.option("--port", type=int, required=True, help="The port of HTTP.")
@click.option("--smtp-port", type=int, required=True, help="The port of the mail server.")
def main(port: int, smtp_port: int) -> None:
    """Serve until SIGTERM."""
    inbox = ChannelInbox()

    async def mail_server(_: web.Application) -> AsyncIterator[None]:
        server = MailServer(smtp_port, inbox)
        await server.start()
        yield
        await server.stop()

    app = application(inbox)
    app.cleanup_ctx.append(mail_server)
    web.run_app(app, host=HOST, port=port, print=None, access_log=None)


if __name__ == "__main__":
    main()
