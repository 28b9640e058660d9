"""Check whether a service keeps the contract of its agent: `python -m testkit.check`."""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from engine.declarations.business import AgentDefinition
from engine.declarations.service_forms import Form
from engine.domain.errors import PermanentError, TransientError
from engine.domain.messages import OPERATION
from engine.urls import takes_paths
from testkit.calls import BUILT_FOR_THE_APP, Caller, NotCalledError, declared, remote, setting
from testkit.checks import CheckedService, Verdict, findings

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
WORKS, FAILS, NOT_TRIED = 0, 1, 2
"""The exit codes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a service. Return 0 if it keeps the contract, 1 if not, and 2 if it was not checked."""
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_check(options))
    except (NotCalledError, PermanentError, TransientError) as fault:
        print(fault, file=sys.stderr)
        return NOT_TRIED
    except (aiohttp.ClientError, OSError, TimeoutError) as away:
        print(f"no answer from the service: {type(away).__name__}", file=sys.stderr)
        return NOT_TRIED


async def _check(options: argparse.Namespace) -> int:
    agent = declared(options.agent) if options.agent else BUILT_FOR_THE_APP
    url = options.url or _address_of(agent)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        token = setting(options.token_from) if options.token_from else None
        there = remote(agent, url, token, session)
        service = CheckedService(
            post=Caller(remote=there, timeout=options.timeout, patience=options.patience).post,
            do=options.do,
            undo=options.undo,
            content=options.content,
            other=options.other,
            refused=options.refused,
            refusals=agent.refusals,
            undo_needs_answer=_needs_answer(there.form, options.undo),
        )
        if by_code := [
            operation for operation in (options.do, options.undo) if operation in agent.code
        ]:
            raise NotCalledError(
                f"{by_code[0]} is a function of the business: try it in a `WorkflowTestEnvironment`"
            )
        if not (options.yes or _agreed(service, url)):
            print("no call was made")
            return NOT_TRIED
        return await _tell(service)


def _address_of(agent: AgentDefinition) -> str:
    """Return the address of an agent's service. Raises `NotCalledError`."""
    if agent is BUILT_FOR_THE_APP:
        raise NotCalledError("give the address of the service, or its agent with --agent")
    try:
        return _address(setting(agent.address))
    except argparse.ArgumentTypeError as error:
        raise NotCalledError(f"{agent.address}: {error}") from error


def _needs_answer(form: Form, undo: str | None) -> bool:
    """Whether the path of the undo has a field from the answer to the undone operation."""
    fields = form.route(undo).fields if undo else ()
    return any(field.partition(".")[0] == "result" for field in fields)


async def _tell(service: CheckedService) -> int:
    """Print each result when its check ends. Return the exit code."""
    code = WORKS
    async for found in findings(service):
        print(f"{found.verdict:<8}{found.name}: {found.what}", flush=True)
        if found.verdict is Verdict.FAILED:
            code = FAILS
    if service.undo is None:
        print("        undo was not checked: name the undo operation with --undo")
    if service.other is None:
        print("        other content was not checked: give a different valid content with --other")
    if service.refused is None:
        print("        refusals were not checked: give a refused content with --refused")
    return code


def _agreed(service: CheckedService, url: str) -> bool:
    """Ask the user whether the checks may have effects. Without a terminal, the answer is no."""
    undone = f"; {service.undo} undoes some of them" if service.undo else ""
    print(f"This calls {service.do} at {url}, with up to {service.effects} effects{undone}.")
    if not sys.stdin.isatty():
        print("There is no terminal to confirm the calls. To confirm them, add --yes")
        return False
    return input("Continue? [y/N] ").strip().lower() in ("y", "yes")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testkit.check", description=__doc__)
    parser.add_argument(
        "url",
        nargs="?",
        type=_address,
        help="the address of the service, without /<operation>; --agent takes it from a setting",
    )
    parser.add_argument(
        "--agent",
        metavar="MODULE:NAME",
        help="the agent of a business, such as shop.business:provider; the service is called as "
        "the agent declares, and the agent's settings come from the environment",
    )
    parser.add_argument("--do", type=_operation, required=True, help="the operation to try")
    parser.add_argument("--undo", type=_operation, help="the operation that undoes it")
    parser.add_argument(
        "--content", type=_object, default={}, help="the content of the request, as JSON"
    )
    parser.add_argument("--other", type=_object, help="a different, valid content")
    parser.add_argument("--refused", type=_object, help="a content that the service refuses")
    parser.add_argument(
        "--token-from", metavar="VARIABLE", help="the environment variable with a bearer token"
    )
    parser.add_argument("--timeout", type=_seconds, default=10.0, help="seconds for one call")
    parser.add_argument(
        "--patience",
        type=_seconds,
        default=30.0,
        help="seconds within which the service must finish the work after a 202",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before the calls")
    return parser


def _address(text: str) -> str:
    """Return the address. Only this machine may be called over http, all others need https."""
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        host = None
    if not takes_paths(text):
        raise argparse.ArgumentTypeError("expected an address without ? and #")
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
