"""Tries whether a service keeps the contract that its agent relies on: `python -m kit.check`."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from core.messages import OPERATION
from kit.checks import Service, Told, Verdict, findings

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
MAX_BYTES = 128 * 1024
"""The longest answer that an agent takes."""

SHORTEST = 0.1
"""The seconds between two calls at least, whatever the service asks for."""

WORKS, FAILS, NOT_TRIED = 0, 1, 2
"""The exit codes."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Calls a service over HTTP, as an agent does."""

    session: aiohttp.ClientSession
    url: str
    headers: Mapping[str, str]
    patience: float
    """Seconds for which a call that was accepted (202) is asked for again."""

    async def post(self, operation: str, key: str, content: Mapping[str, Any]) -> Told:
        """Call an operation; ask again for what was only accepted."""
        left = self.patience
        while True:
            told, pause = await self._once(operation, key, content)
            if told.status != 202 or left <= 0:
                return told
            await asyncio.sleep(min(pause, left))
            left -= pause

    async def _once(
        self, operation: str, key: str, content: Mapping[str, Any]
    ) -> tuple[Told, float]:
        """Return one answer, and the seconds after which it asks to come again."""
        body = {"orderId": key.partition(":")[0], "step": "check", "order": dict(content)}
        headers = {**self.headers, "Idempotency-Key": key}
        async with self.session.post(
            f"{self.url.rstrip('/')}/{operation}",
            json=body,
            headers=headers,
            allow_redirects=False,
        ) as answer:
            asked = answer.headers.get("Retry-After", "")
            pause = max(SHORTEST, float(asked)) if asked.isascii() and asked.isdigit() else 1.0
            return Told(status=answer.status, content=await _content(answer)), pause


async def _content(answer: aiohttp.ClientResponse) -> Mapping[str, Any] | None:
    """Return the JSON object of an answer; None if it is none, or too long."""
    body = b""
    async for chunk in answer.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > MAX_BYTES:
            answer.close()
            return None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a service; return 0 if it keeps the contract, 1 if not, 2 if it was not tried."""
    asked = _parser().parse_args(arguments)
    try:
        return asyncio.run(_check(asked))
    except (aiohttp.ClientError, OSError, TimeoutError) as away:
        print(f"no answer from the service: {type(away).__name__}", file=sys.stderr)
        return NOT_TRIED


async def _check(asked: argparse.Namespace) -> int:
    timeout = aiohttp.ClientTimeout(total=asked.timeout)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        caller = Caller(
            session=session,
            url=asked.url,
            headers=_credential(asked.token_from),
            patience=asked.patience,
        )
        service = Service(
            post=caller.post,
            do=asked.do,
            undo=asked.undo,
            content=asked.content,
            other=asked.other,
            refused=asked.refused,
        )
        if not (asked.yes or _agreed(service, asked.url)):
            print("nothing was called")
            return NOT_TRIED
        return await _tell(service)


async def _tell(service: Service) -> int:
    """Print each finding as it is made; return the exit code."""
    code = WORKS
    async for found in findings(service):
        print(f"{found.verdict:<8}{found.name}: {found.what}", flush=True)
        if found.verdict is Verdict.FAILED:
            code = FAILS
    if service.undo is None:
        print("        undo was not tried: name it with --undo")
    if service.other is None:
        print("        other content was not tried: give some that is valid with --other")
    if service.refused is None:
        print("        refusals were not tried: give a content that is refused with --refused")
    return code


def _agreed(service: Service, url: str) -> bool:
    """Ask a person whether effects may be made; without one, the answer is no."""
    undone = f", of which {service.undo} takes some back" if service.undo else ""
    print(f"This calls {service.do} at {url}, with up to {service.effects} effects{undone}.")
    if not sys.stdin.isatty():
        print("There is nobody to ask: say --yes")
        return False
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _credential(variable: str | None) -> Mapping[str, str]:
    """Return the header of a bearer token that an environment variable holds."""
    if variable is None:
        return {}
    if not (token := os.environ.get(variable)):
        raise SystemExit(f"the environment variable {variable} is empty")
    return {"Authorization": f"Bearer {token}"}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kit.check", description=__doc__)
    parser.add_argument(
        "url", type=_address, help="the address of the service, before /<operation>"
    )
    parser.add_argument("--do", type=_operation, required=True, help="the operation to try")
    parser.add_argument("--undo", type=_operation, help="the operation that takes it back")
    parser.add_argument(
        "--content", type=_object, default={}, help="what the operation is asked, as JSON"
    )
    parser.add_argument("--other", type=_object, help="another content that it would do")
    parser.add_argument("--refused", type=_object, help="a content that the service refuses")
    parser.add_argument(
        "--token-from", metavar="VARIABLE", help="the environment variable with a bearer token"
    )
    parser.add_argument("--timeout", type=_seconds, default=10.0, help="seconds for one call")
    parser.add_argument(
        "--patience", type=_seconds, default=30.0, help="seconds for a 202 to be done"
    )
    parser.add_argument("--yes", action="store_true", help="make the effects without asking")
    return parser


def _address(text: str) -> str:
    """Return the address; https is for everywhere, http for this machine only."""
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or "@" in parts.netloc:
        raise argparse.ArgumentTypeError("expected https://<host>, without a user or password")
    if parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK):
        return text
    raise argparse.ArgumentTypeError("expected https://, or http:// on this machine")


def _operation(text: str) -> str:
    if not OPERATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected a name that matches {OPERATION.pattern}")
    return text


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError("expected seconds, at most an hour")
    return seconds


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


if __name__ == "__main__":
    sys.exit(main())
