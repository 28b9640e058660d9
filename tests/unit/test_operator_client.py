"""How the command line takes what the operators' API answers, or what stands before it."""

import httpx
import pytest

from operators.cli.client import Api, ApiError, KeyRefusedError, UnreachableError


def api(answer, signed_in=None):
    """The client of an API that answers so."""
    return Api("http://app", "the-key", signed_in, httpx.MockTransport(answer))


def always(status, **answer):
    return lambda request: httpx.Response(status, **answer)


def what_was_sent(request):
    return httpx.Response(200, json=dict(request.headers))


def test_a_token_is_sent_besides_the_key():
    """Where operators sign in, the key alone opens nothing; elsewhere there is no token."""
    sent = api(what_was_sent, signed_in="a-token").get("overview")
    assert (sent["x-functions-key"], sent["authorization"]) == ("the-key", "Bearer a-token")
    assert "authorization" not in api(what_was_sent).get("overview")


TO_SIGN_IN = {"headers": {"location": "https://login.microsoftonline.com/x"}}
PAGE = {"html": "<html>Sign in</html>"}


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (always(302, **TO_SIGN_IN), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(401), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(403, **PAGE), KeyRefusedError, "OPERATOR_TOKEN"),
        (always(200, **PAGE), UnreachableError, "is that the app's address?"),
        (always(200, json=["no", "object"]), UnreachableError, "is that the app's address?"),
        (always(502, **PAGE), UnreachableError, "502, without a reason"),
        (always(503, json={"error": "no title"}), UnreachableError, "503, without a reason"),
        (always(400, content=b"{broken", headers={"content-type": "application/json"}), ApiError, "400, without"),
        (always(409, json={"title": "Refused", "detail": "why", "faults": ["a"]}), ApiError, "Refused; why; a"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_is_answered_becomes_a_fault_that_says_what_to_do(answer, error, says):
    """Also what Easy Auth or a proxy says: never a traceback, and the exit code that fits."""
    with pytest.raises(ApiError, match=says.replace("?", "[?]")) as raised:
        api(answer).get("overview")
    assert type(raised.value) is error
