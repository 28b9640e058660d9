"""The client of the operators' API, with its key, and a token if operators sign in."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from engine.domain import exact_json
from engine.words.catalogue import text

TIMEOUT_SECONDS = 60.0
TRANSIENT = (408, 429)
"""The statuses below 500 after which another attempt may succeed."""

Json = dict[str, Any]


class ApiError(Exception):
    """The API did not carry out the request. `exit_code` tells scripts why."""

    exit_code = 1
    """The request was refused, or its subject was not found."""


class WrongUsageError(ApiError):
    """A setting, an argument or a local file is wrong. The same call would fail again."""

    exit_code = 2


class UnreachableError(ApiError):
    """The app, or a service that it needs, is unavailable. Another attempt may succeed."""

    exit_code = 3


class BrokenError(ApiError):
    """The app failed with an unexpected error. Another attempt may fail in the same way."""

    exit_code = 5


class KeyRefusedError(ApiError):
    """The key is not the operators' key, or the sign-in is missing."""

    exit_code = 4


class Api:
    """The operators' API of one app."""

    def __init__(
        self,
        url: str,
        key: str,
        token: str | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url
        signed_in = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx2.Client(
                base_url=url,
                headers={"x-functions-key": key} | signed_in,
                timeout=TIMEOUT_SECONDS,
                transport=transport,
                trust_env=url.startswith("https:"),  # a proxy could read the key on http://
                follow_redirects=False,  # they lead to the sign-in page, which is for browsers
            )
        except (httpx2.InvalidURL, ValueError, OSError) as fault:
            # Its text may hold the password of a proxy.
            raise WrongUsageError(text("cli.no-client", error=type(fault).__name__)) from None

    def close(self) -> None:
        self._http.close()

    def get(self, *path: str, **query: Any) -> Json:
        """Get an object. Raises `ApiError` with the API's problem details."""
        return self._answer("GET", path, params=_given(query))

    def post(self, *path: str, body: Mapping[str, Any]) -> Json:
        """Carry out an action. Raises `ApiError` with the API's problem details."""
        with _as_wrong_usage():
            content = exact_json.write(_given(body)).encode()
        kind = {"Content-Type": "application/json"}
        return self._answer("POST", path, content=content, headers=kind)

    def every(self, path: str, items: str, *, first_only: bool, **query: Any) -> Json:
        """Return all pages of a list as one, or only the first page."""
        pages = self.pages(path, **query)
        page = next(pages)
        found = list(page[items])
        for page in () if first_only else pages:
            found += page[items]
        return {**page, items: found}

    def pages(self, *path: str, **query: Any) -> Iterator[Json]:
        page = self.get(*path, **query)
        yield page
        while page.get("continuation"):  # an older app groups causes without it
            page = self.get(*path, continuation=page["continuation"], **query)
            yield page

    def bulk_pages(self, body: Mapping[str, Any]) -> Iterator[Json]:
        """Carry out a bulk action page by page.

        All pages use the time that the first page returns.
        """
        page = self.post("bulk", body=body)
        yield page
        while page["continuation"]:
            following = {"until": page["until"], "continuation": page["continuation"]}
            page = self.post("bulk", body={**body, **following})
            yield page

    def orders_of(self, email: str, signature: Mapping[str, str]) -> Iterator[Json]:
        continuation: str | None = ""
        while continuation is not None:
            body = {**signature, "email": email, "continuation": continuation or None}
            page = self.post("customers", "find", body=body)
            yield page
            continuation = page["continuation"]

    def ask(self, method: str, path: str, **options: Any) -> tuple[int, Json]:
        """Call any path of the app. Return the status and the JSON object, or an empty object."""
        response = self._send(method, path, **options)
        return response.status_code, _object_of(response) or {}

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        try:
            with _as_wrong_usage():
                return self._http.request(method, path, **options)
        except httpx2.HTTPError as error:
            raise UnreachableError(text("cli.unreachable", url=self.url, error=error)) from error

    def _answer(self, method: str, path: tuple[str, ...], **options: Any) -> Json:
        with _as_wrong_usage():
            quoted = "/".join(quote(part, safe="") for part in path)
        response = self._send(method, f"/api/operator/{quoted}", **options)
        answer = _object_of(response)
        if response.is_success and answer is not None:
            return answer
        raise _error(response, answer or {})


@contextmanager
def _as_wrong_usage() -> Iterator[None]:
    """Raise `WrongUsageError` for a request that cannot be sent, without the request's content."""
    try:
        yield
    except (httpx2.InvalidURL, httpx2.LocalProtocolError, ValueError, RecursionError) as fault:
        raise WrongUsageError(text("cli.not-sent", error=type(fault).__name__)) from None


def _given(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _object_of(response: httpx2.Response) -> Json | None:
    """Return the JSON object in the response. None if there is none."""
    try:
        answer = exact_json.read(response.content)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _error(response: httpx2.Response, problem: Json) -> ApiError:
    """Return the error for a status, which may come from a proxy in front of the app."""
    status = response.status_code
    if status == 401:
        return KeyRefusedError(text("cli.key-refused"))
    if status == 403 or response.is_redirect:
        return KeyRefusedError(text("cli.not-let-in", status=status))
    if response.is_success:
        return UnreachableError(text("cli.not-the-api", url=response.url))
    if status == 500:
        return BrokenError(_fault(status, problem))
    kind = UnreachableError if status > 500 or status in TRANSIENT else ApiError
    return kind(_fault(status, problem))


def _fault(status: int, problem: Json) -> str:
    title = problem.get("title") or text("cli.no-reason", status=status)
    detail = problem.get("detail")
    faults = problem.get("faults")
    details = [*([detail] if detail else []), *(faults if isinstance(faults, list) else [])]
    return "; ".join(map(str, [title, *details]))
