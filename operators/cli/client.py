"""The operators' API as the command line calls it: an address and a key, and a token where operators sign in."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 60.0

Json = dict[str, Any]

SIGN_IN = "; where operators sign in, OPERATOR_TOKEN has to be a token of theirs besides"


class ApiError(Exception):
    """The API did not do what was asked; `exit_code` tells scripts why."""

    exit_code = 1
    """Refused, or not found."""


class UnreachableError(ApiError):
    """The app, or something that it needs, is away: worth another try."""

    exit_code = 3


class BrokenError(ApiError):
    """The app has failed in a way that nobody expected: another try may end the same way."""

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url
        signed_in = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=url,
            headers={"x-functions-key": key} | signed_in,
            timeout=TIMEOUT_SECONDS,
            transport=transport,
            follow_redirects=False,  # they lead to the sign-in page, which is for browsers
        )

    def get(self, *path: str, **query: Any) -> Json:
        """Ask; raises `ApiError` with what the API says of the fault."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer("GET", path, params=given)

    def post(self, *path: str, body: Mapping[str, Any]) -> Json:
        """Have something done; raises `ApiError` with what the API says of the fault."""
        return self._answer(
            "POST", path, json={name: value for name, value in body.items() if value is not None}
        )

    def every(self, path: str, items: str, *, first_only: bool, **query: Any) -> Json:
        """Return all pages of a list as one, or only the first."""
        page = self.get(path, **query)
        found = list(page[items])
        while page["continuation"] and not first_only:
            page = self.get(path, continuation=page["continuation"], **query)
            found += page[items]
        return {**page, items: found}

    def each_page(self, body: Mapping[str, Any]) -> Iterator[Json]:
        """Carry out a bulk action page by page; every page acts up to the time that the first one names."""
        page = self.post("bulk", body=body)
        yield page
        while page["continuation"]:
            page = self.post(
                "bulk", body={**body, "until": page["until"], "continuation": page["continuation"]}
            )
            yield page

    def orders_of(self, email: str, signature: Mapping[str, str]) -> Iterator[Json]:
        """Yield a customer's orders, page by page."""
        continuation: str | None = ""
        while continuation is not None:
            body = {**signature, "email": email, "continuation": continuation or None}
            page = self.post("customers", "find", body=body)
            yield page
            continuation = page["continuation"]

    def ask(self, method: str, path: str, **options: Any) -> tuple[int, Json]:
        """Ask for any path of the app; return the status and the object that was answered, if it was one."""
        response = self._send(method, path, **options)
        return response.status_code, _object_of(response) or {}

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self.url} cannot be reached: {error}") from error

    def _answer(self, method: str, path: tuple[str, ...], **options: Any) -> Json:
        place = "/".join(quote(part, safe="") for part in path)
        response = self._send(method, f"/api/operator/{place}", **options)
        answer = _object_of(response)
        if response.is_success and answer is not None:
            return answer
        raise _error(response, answer or {})


def _object_of(response: httpx.Response) -> Json | None:
    """Return the JSON object that was answered; None if it is something else."""
    try:
        answer = response.json()
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _error(response: httpx.Response, problem: Json) -> ApiError:
    """Return what the status means; whatever stands between us and the app may have answered it."""
    status = response.status_code
    if status == 401:
        return KeyRefusedError(
            f"the key was refused: OPERATOR_KEY or --key has to be the operators' key{SIGN_IN}"
        )
    if status == 403 or response.is_redirect:
        return KeyRefusedError(f"{status}, the app does not let you in{SIGN_IN}")
    if response.is_success:
        return UnreachableError(
            f"{response.url} answers, but not as the operators' API does: is that the app's address?"
        )
    kind = BrokenError if status == 500 else UnreachableError if status > 500 else ApiError
    return kind(_fault(status, problem))


def _fault(status: int, problem: Json) -> str:
    """Return what the problem details say."""
    title = problem.get("title") or f"{status}, without a reason"
    return "; ".join(
        [str(title), *filter(None, [problem.get("detail")]), *problem.get("faults", ())]
    )
