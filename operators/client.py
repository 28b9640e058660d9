"""The operators' API as the command line calls it: an address and a key are all that it needs."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx

TIMEOUT_SECONDS = 60.0

Json = dict[str, Any]


class ApiError(Exception):
    """The API did not do what was asked; `exit_code` tells scripts why."""

    exit_code = 1
    """Refused, or not found."""


class UnreachableError(ApiError):
    """The app, or something that it needs, is away: worth another try."""

    exit_code = 3


class KeyRefusedError(ApiError):
    """The key is not the operators' key."""

    exit_code = 4


class Api:
    """The operators' API of one app."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"x-functions-key": key}, timeout=TIMEOUT_SECONDS)

    def get(self, *path: str, **query: Any) -> Json:
        """Ask; raises `ApiError` with what the API says of the fault."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._answer("GET", path, params=given)

    def post(self, *path: str, body: Mapping[str, Any]) -> Json:
        """Have something done; raises `ApiError` with what the API says of the fault."""
        return self._answer("POST", path, json={name: value for name, value in body.items() if value is not None})

    def every(self, path: str, items: str, *, first_only: bool, **query: Any) -> Json:
        """Return all pages of a list as one, or only the first."""
        page = self.get(path, **query)
        found = list(page[items])
        while page["continuation"] and not first_only:
            page = self.get(path, continuation=page["continuation"], **query)
            found += page[items]
        return {items: found, "continuation": page["continuation"]}

    def each_page(self, body: Mapping[str, Any]) -> Iterator[Json]:
        """Carry out a bulk action page by page; every page acts up to the time that the first one names."""
        page = self.post("bulk", body=body)
        yield page
        while page["continuation"]:
            page = self.post("bulk", body={**body, "until": page["until"], "continuation": page["continuation"]})
            yield page

    def orders_of(self, email: str, signature: Mapping[str, str]) -> Iterator[str]:
        """Yield a customer's orders."""
        continuation: str | None = ""
        while continuation is not None:
            body = {**signature, "email": email, "continuation": continuation or None}
            page = self.post("customers", "find", body=body)
            yield from page["orders"]
            continuation = page["continuation"]

    def _answer(self, method: str, path: tuple[str, ...], **options: Any) -> Json:
        place = "/".join(quote(part, safe="") for part in path)
        try:
            response = self._http.request(method, f"/api/operator/{place}", **options)
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self._http.base_url} cannot be reached: {error}") from error
        if response.status_code == 401:
            raise KeyRefusedError("the key was refused: OPERATOR_KEY or --key has to be the operators' key")
        if response.status_code >= 500:
            raise UnreachableError(_fault(response))
        if response.status_code >= 400:
            raise ApiError(_fault(response))
        answer: Json = response.json()
        return answer


def _fault(response: httpx.Response) -> str:
    """Return what the problem details say; whatever stands between us and the app may answer something else."""
    if "json" not in response.headers.get("content-type", ""):
        return f"{response.status_code}, without a reason"
    problem = response.json()
    return "; ".join([problem["title"], *filter(None, [problem.get("detail")]), *problem.get("faults", ())])
