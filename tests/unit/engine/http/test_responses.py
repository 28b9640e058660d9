"""What errors become on their way to an HTTP caller."""

import json

import azure.functions as func
import pytest
from pydantic import BaseModel

from engine.domain.causes import Cause, Code
from engine.domain.errors import (
    ConflictError,
    InvalidError,
    UnavailableError,
    UnknownOrderError,
    UnreadableRowError,
)
from engine.http.responses import MAX_BODY_BYTES, answers, body_of, ok, order_id_of, unless_known
from engine.words.catalogue import text
from tests.support.builders import ORDER_ID

AWAY = UnavailableError("table away")


async def answer_to(error):
    """The answer of a handler that raises this: its status, headers and body."""

    @answers
    async def handler(req):
        raise error

    answer = await handler(func.HttpRequest(method="GET", url="http://x/api?code=secret", body=b""))
    assert answer.mimetype == "application/problem+json"
    body = json.loads(answer.get_body())
    assert body["status"] == answer.status_code
    return answer.status_code, answer.headers.get("Retry-After"), answer.get_body().decode()


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize(
    "error",
    [
        AWAY,
        ConflictError("busy"),
        ExceptionGroup("2 of 8 failed", [AWAY, ExceptionGroup("1 of 1 failed", [AWAY])]),
    ],
    ids=["one", "a conflict", "several at once"],
)
async def test_what_is_away_is_to_be_tried_again(error):
    """Also when several buckets were asked at once."""
    status, retry_after, _ = await answer_to(error)
    assert (status, retry_after) == (503, "1")


@pytest.mark.proves("OPR-2", "FLT-6")
async def test_of_an_order_that_cannot_be_read_the_caller_hears_why():
    """It is no fault of the request, and nothing that passes."""
    status, _, body = await answer_to(UnreadableRowError(Cause(Code.ROW_MISSING)))
    assert status == 409
    assert json.loads(body)["detail"] == text("cause.row-missing")


@pytest.mark.parametrize(
    "error",
    [KeyError("mail of ada"), ExceptionGroup("2 of 8 failed", [AWAY, KeyError("mail of ada")])],
    ids=["alone", "among others"],
)
async def test_what_nobody_expected_is_logged_and_not_answered(error, caplog):
    """The caller sees no text of it; the log has all of it, but not the query."""
    status, _, body = await answer_to(error)
    assert status == 500
    assert "ada" not in body
    assert "mail of ada" in caplog.text
    assert [record.message for record in caplog.records] == ["http.broke"]
    assert "secret" not in str(vars(caplog.records[0])["route"])


class NameBody(BaseModel):
    name: str


@answers
async def greet(req):
    return ok({"name": body_of(req, NameBody).name})


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Transfer-Encoding": "chunked"}, b"", 411),
        ({}, b"", 411),
        ({"content-length": "0"}, b"", 400),
        ({"Content-Length": "14"}, b'{"name":"Ada"}', 200),
        ({"Transfer-Encoding": "chunked"}, b'{"name":"Ada"}', 200),
    ],
    ids=["in chunks", "not announced", "empty", "announced", "in chunks, and handed over"],
)
async def test_a_body_whose_length_is_not_known_is_411(headers, body, status, caplog):
    """Azure's host hands over none of it; the caller is told what to do, and the log nothing."""
    answer = await greet(
        func.HttpRequest(method="POST", url="http://x/", headers=headers, body=body)
    )
    assert answer.status_code == status
    assert (b"send it with a Content-Length" in answer.get_body()) == (status == 411)
    assert caplog.records == []


async def test_every_fault_is_named():
    """Of what the caller can mend."""
    status, _, body = await answer_to(InvalidError(["a: wrong", "b: missing"]))
    assert status == 400
    assert json.loads(body)["faults"] == ["a: wrong", "b: missing"]


@pytest.mark.parametrize("order_id", [f"{ORDER_ID}x", f"x{ORDER_ID}", "b03", ""])
def test_what_can_be_no_order_is_not_looked_for(order_id):
    """It could reach rows of another kind."""
    request = func.HttpRequest(
        method="GET", url="http://x/api", body=b"", route_params={"orderId": order_id}
    )
    with pytest.raises(UnknownOrderError):
        order_id_of(request)


def test_a_body_that_is_too_long_is_not_read():
    """It is refused by its length."""
    body = b" " * (MAX_BODY_BYTES + 1)
    with pytest.raises(InvalidError, match="too-many-bytes"):
        body_of(func.HttpRequest(method="POST", url="http://x/api", body=body), BaseModel)


def knowing(known=""):
    headers = {"If-None-Match": known} if known else {}
    return func.HttpRequest(method="GET", url="http://x/api", body=b"", headers=headers)


def test_what_the_caller_knows_already_is_not_sent_again():
    """ETag and If-None-Match; both say when to ask again."""

    def pending():
        return ok({"state": "Pending"}, headers={"Retry-After": "2"})

    first = unless_known(knowing(), pending())
    assert (first.status_code, first.headers["Retry-After"]) == (200, "2")
    tag = first.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = unless_known(knowing(known), pending())
        assert (again.status_code, again.get_body()) == (304, b"")
        assert (again.headers["ETag"], again.headers["Retry-After"]) == (tag, "2")
    assert unless_known(knowing(tag), ok({"state": "Processed"})).status_code == 200
