"""The channel to a chat through a webhook.

The webhook's address is a secret that lets anybody post.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from engine.alerts.digests import Digest
from engine.azure.answers import ServiceAnswer, answer_of
from engine.azure.channels.outcomes import is_passing, no_answer, pause, why
from engine.domain.errors import ChannelAwayError, ChannelRefusedError
from engine.ports import Clock

LIMIT_SECONDS = 10.0
HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, kw_only=True)
class WebhookChannel:
    """`Channel` over a webhook of Teams or Slack."""

    name: str
    url: str = field(repr=False)
    body: Callable[[Digest], bytes]
    session: Callable[[], aiohttp.ClientSession]
    clock: Clock
    limit_seconds: float = LIMIT_SECONDS

    async def send(self, digest: Digest) -> None:
        """Send a digest. Neither service recognises a repeat."""
        url = URL(self.url, encoded=True)  # its query is signed as it is written
        host = url.host or ""
        try:
            async with asyncio.timeout(self.limit_seconds):
                answer = await self._post(url, self.body(digest))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise no_answer(host, error) from None
        if not 200 <= answer.status < 300:
            reason = why(host, answer.status, _code(answer))
            if is_passing(answer.status):
                raise ChannelAwayError(reason, pause(answer, self.clock()))
            raise ChannelRefusedError(reason)

    async def _post(self, url: URL, body: bytes) -> ServiceAnswer:
        async with self.session().post(
            url,
            data=body,
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(),
            allow_redirects=False,  # the body would go wherever the answer says
        ) as response:
            return await answer_of(response)


def _code(answer: ServiceAnswer) -> str:
    """Return the code of a refusal: the whole answer of Slack, or a field of Teams' answer."""
    error = (answer.content or {}).get("error")
    if isinstance(error, dict):
        return str(error.get("code", ""))
    return answer.body.decode("utf-8", "replace").strip()
