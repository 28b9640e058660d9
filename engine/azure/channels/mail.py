"""The channel that sends email through Azure Communication Services, with the app's identity."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import aiohttp
from azure.communication.email.aio import EmailClient
from azure.core.exceptions import AzureError, HttpResponseError

from engine.alerts.channels import ChannelName
from engine.alerts.digests import Digest
from engine.azure.answers import ServiceAnswer
from engine.azure.channels.message_texts import html_text, plain_text, subject_of
from engine.azure.channels.outcomes import is_passing, no_answer, pause, why
from engine.domain.errors import ChannelAwayError, ChannelRefusedError
from engine.ports import Clock

LIMIT_SECONDS = 25.0
"""The time limit for the identity's token and the one request together."""
NO_RIGHT = {401, 403}
"""The statuses for a missing role. A new role takes effect only after minutes."""
UNEXPECTED = range(200, 300)
"""The service accepts an email only with 202. After another success, its acceptance is unknown."""
LEAST_PAUSE = timedelta(minutes=1)
"""The shortest pause after 429. Each request counts against the subscription's limits, even a
refused one."""


@dataclass(frozen=True, kw_only=True)
class MailChannel:
    """`Channel` over Azure Communication Services.

    The client neither retries nor follows redirects, because the SDK would sleep through
    `Retry-After`.
    """

    host: str
    client: Callable[[], EmailClient]
    sender: str
    recipients: Sequence[str] = field(repr=False)
    clock: Clock
    limit_seconds: float = LIMIT_SECONDS
    name: str = ChannelName.MAIL

    async def send(self, digest: Digest) -> None:
        """Send a digest.

        The service is documented to treat a repeated operation id as the same email.
        """
        try:
            async with asyncio.timeout(self.limit_seconds):
                # Without polling, which has a limit of its own: 202 means that the mail was taken.
                await self.client().begin_send(
                    self._message(digest), operation_id=str(digest.id), polling=False
                )
        except HttpResponseError as error:
            raise self._failure(error) from None
        except (AzureError, aiohttp.ClientError, OSError, TimeoutError) as error:
            raise no_answer(self.host, error) from None

    def _message(self, digest: Digest) -> dict[str, Any]:
        return {
            "senderAddress": self.sender,
            "recipients": {"to": [{"address": address} for address in self.recipients]},
            "content": {
                "subject": subject_of(digest),
                "plainText": plain_text(digest),
                "html": html_text(digest),
            },
            "userEngagementTrackingDisabled": True,
        }

    def _failure(self, error: HttpResponseError) -> ChannelAwayError | ChannelRefusedError:
        if error.status_code is None:  # the app's identity has no token
            return no_answer(self.host, error)
        status = error.status_code
        headers: Mapping[str, str] = getattr(error.response, "headers", {})
        retry_after = headers.get("Retry-After", "").strip()
        answer = ServiceAnswer(status=status, body=b"", retry_after=retry_after)
        reason = why(self.host, status, str(getattr(error.error, "code", "")))
        if is_passing(status) or status in NO_RIGHT or status in UNEXPECTED:
            least = LEAST_PAUSE if status == 429 else timedelta()
            return ChannelAwayError(reason, pause(answer, self.clock(), least))
        return ChannelRefusedError(reason)
