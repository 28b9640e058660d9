"""The channel that sends email through your own server."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import aiosmtplib

from engine.alerts.channels import ChannelName
from engine.alerts.digests import Digest
from engine.azure.channels.addresses import Encryption, SmtpServer
from engine.azure.channels.message_texts import html_text, plain_text, subject_of
from engine.azure.channels.outcomes import no_answer
from engine.domain.errors import ChannelAwayError, ChannelRefusedError

log = logging.getLogger(__name__)

LIMIT_SECONDS = 20.0
ONE_ANSWER = 0.4
"""The share of the time limit for one answer. If a server hangs at QUIT, it has accepted the
message."""
PASSING = range(400, 500)
"""The codes of a server that may accept the message later (RFC 5321, 4.2.1)."""


@dataclass(frozen=True, kw_only=True)
class SmtpChannel:
    """`Channel` over SMTP.

    An unencrypted connection is only allowed to a server on this machine.
    """

    server: SmtpServer
    sender: str
    recipients: Sequence[str] = field(repr=False)
    limit_seconds: float = LIMIT_SECONDS
    context: Callable[[], ssl.SSLContext] = ssl.create_default_context
    name: str = ChannelName.SMTP

    async def send(self, digest: Digest) -> None:
        """Send a digest. It counts as sent if the server accepts it for one of the recipients."""
        try:
            async with asyncio.timeout(self.limit_seconds):
                refused, _ = await self._deliver(self._message(digest))
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [recipient.code for recipient in error.recipients]
            raise self._failure(codes, error) from None
        except aiosmtplib.SMTPResponseException as error:
            raise self._failure([error.code], error) from None
        except (OSError, TimeoutError) as error:
            raise no_answer(self.server.host, error) from None
        except (aiosmtplib.SMTPException, ValueError) as error:
            # The server cannot encrypt, or knows no login: nothing was sent.
            raise self._failure([], error) from None
        if refused:
            codes = sorted({code for code, _ in refused.values()})
            log.warning(
                "channel.recipients_refused",
                extra={"channel": self.name, "count": len(refused), "codes": codes},
            )

    async def _deliver(
        self, message: EmailMessage
    ) -> tuple[dict[str, aiosmtplib.SMTPResponse], str]:
        server, encryption = self.server, self.server.encryption
        return await aiosmtplib.send(
            message,
            sender=self.sender,
            recipients=list(self.recipients),
            hostname=server.host,
            port=server.port,
            username=server.user or None,
            password=server.password or None,
            use_tls=encryption is Encryption.TLS,
            start_tls=encryption is Encryption.STARTTLS,
            local_hostname=socket.gethostname(),  # the usual name takes a look-up of seconds
            tls_context=None if encryption is Encryption.NONE else self.context(),
            timeout=self.limit_seconds * ONE_ANSWER,
        )

    def _message(self, digest: Digest) -> EmailMessage:
        """Make the email. A repeat has the same `Message-ID`."""
        message = EmailMessage(policy=SMTP)
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message["Subject"] = subject_of(digest)
        message["Date"] = format_datetime(digest.at)
        message["Message-ID"] = f"<{digest.id}@{self.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(plain_text(digest))
        message.add_alternative(html_text(digest), subtype="html")
        return message

    def _failure(
        self, codes: Sequence[int], error: Exception
    ) -> ChannelAwayError | ChannelRefusedError:
        words = [self.server.host, type(error).__name__, *map(str, sorted(set(codes)))]
        why = " ".join(words)
        if any(code in PASSING for code in codes):
            return ChannelAwayError(why)
        return ChannelRefusedError(why)
