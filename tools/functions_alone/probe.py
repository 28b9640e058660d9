"""Checks over HTTP whether a part is ready."""

from collections.abc import Container

import aiohttp

ANSWER_SECONDS = 5.0
SHOWN_CHARACTERS = 300


async def missing_at(url: str, accept: Container[int]) -> str:
    """Return an empty text if the status of the answer is acceptable, otherwise the answer."""
    try:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as client, client.get(url) as response:
            if response.status in accept:
                return ""
            return (
                f"GET {url} answers {response.status} {(await response.text())[:SHOWN_CHARACTERS]}"
            )
    except (aiohttp.ClientError, TimeoutError):
        return f"no answer from {url}"
