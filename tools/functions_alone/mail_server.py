"""A stand-in for a mail server: it delivers nothing, and keeps each mail in the inbox."""

import asyncio
from email import message_from_bytes
from email.policy import default
from weakref import WeakSet

from aiosmtpd.smtp import SMTP, Envelope, Session

from functions_alone.inbox import ChannelInbox, Mode, SentMessage, StandInChannel
from functions_alone.ports import HOST

ANSWERS = {
    Mode.THROTTLE: "451 4.3.2 Try again later",
    Mode.REFUSE: "554 5.7.1 Message refused",
}


class MailServer:
    """A `StandIn` that speaks SMTP, without encryption and without a login."""

    def __init__(self, port: int, inbox: ChannelInbox) -> None:
        self._port, self._handler = port, _Handler(inbox)
        self._server: asyncio.Server | None = None
        self._connections = WeakSet[SMTP]()

    async def start(self) -> None:
        """See `StandIn`."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, HOST, self._port)

    async def stop(self) -> None:
        """See `StandIn`; open connections are closed."""
        if self._server:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            if isinstance(connection.transport, asyncio.WriteTransport):
                connection.transport.abort()

    def _connection(self) -> SMTP:
        # With a name of its own: looking up that of the machine may take seconds.
        connection = SMTP(
            self._handler,
            hostname="localhost",
            enable_SMTPUTF8=True,
            loop=asyncio.get_running_loop(),
        )
        self._connections.add(connection)
        return connection


class _Handler:
    def __init__(self, inbox: ChannelInbox) -> None:
        self._inbox = inbox

    async def handle_DATA(self, server: SMTP, _: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content or b""
        fault = await self._inbox.take(
            mail(content if isinstance(content, bytes) else content.encode())
        )
        if fault.closes and isinstance(server.transport, asyncio.WriteTransport):
            server.transport.abort()
        return ANSWERS.get(fault.mode, "250 OK")


def mail(content: bytes) -> SentMessage:
    """Read a mail. Its text is the plain text, or otherwise the text of its HTML."""
    message = message_from_bytes(content, policy=default)
    body = message.get_body(("plain", "html"))
    return SentMessage(
        channel=StandInChannel.SMTP,
        id=str(message["Message-ID"]) if "Message-ID" in message else None,
        subject=str(message["Subject"] or ""),
        text=body.get_content().replace("\r\n", "\n") if body else "",
    )
