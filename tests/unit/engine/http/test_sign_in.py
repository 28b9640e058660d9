"""Who acts on orders: the person who signed in where the platform has a sign-in, and only there."""

import base64
import json

import azure.functions as func
import pytest

from tests.support.apps import app, functions
from tests.support.builders import ORDER_ID
from tests.support.memory_world import World

NAME, PRINCIPAL = "X-MS-CLIENT-PRINCIPAL-NAME", "X-MS-CLIENT-PRINCIPAL"
BODY = {"operator": "grace", "note": "the stock is counted"}


def claims(*roles, kind="roles"):
    """All claims of a person with these roles, as the platform sends them."""
    content = {
        "claims": [
            {"typ": "name", "val": "operator"},
            *({"typ": kind, "val": role} for role in roles),
        ]
    }
    return base64.b64encode(json.dumps(content).encode()).decode()


@pytest.fixture
async def world():
    """A world with one order, that anybody may act on."""
    made = World()
    await made.submitted()
    return made


async def call(world, headers, *, name="operator_hold", body=BODY, **settings):
    """Call a function of an app with these settings; return the status, and who acted last."""
    made = functions(app(world.parts, **settings)).get_functions()
    [function] = [candidate for candidate in made if candidate.get_function_name() == name]
    request = func.HttpRequest(
        method="POST",
        url="http://x/api/operator",
        headers=headers,
        route_params={"orderId": ORDER_ID, "name": "payment"},
        body=json.dumps(body).encode(),
    )
    answer = await function.get_user_function()(request)
    [*_, last] = await world.store.history(ORDER_ID)
    return answer.status_code, last.actor


@pytest.mark.proves("OPR-10")
async def test_a_name_that_a_caller_makes_up_is_not_believed(world):
    """Without the platform's sign-in its header is anybody's: the name is the one of the call, as ever."""
    forged = {NAME: "mallory@example.com", PRINCIPAL: claims("operator")}
    assert await call(world, forged) == (202, "operator/grace")


@pytest.mark.proves("OPR-10")
async def test_who_signed_in_acts_whatever_name_the_call_gives(world):
    """The platform sets the header, and takes away what a caller sends.

    learn.microsoft.com/azure/app-service/configure-authentication-user-identities
    """
    found = await call(world, {NAME: "ada@example.com"}, operator_sign_in=True)
    assert found == (202, "operator/ada@example.com")


async def test_another_app_that_signed_in_acts_under_its_id(world):
    """It has no name."""
    headers = {"X-MS-CLIENT-PRINCIPAL-ID": "an-id"}
    assert await call(world, headers, operator_sign_in=True) == (202, "operator/an-id")


async def test_a_name_fits_into_the_history_whatever_it_is(world):
    """Nothing that is no text, and no more than a call may give."""
    found = await call(world, {NAME: "a\x00\n" + "d" * 200}, operator_sign_in=True)
    assert found == (202, "operator/a" + "d" * 79)


@pytest.mark.parametrize("headers", [{}, {NAME: ""}, {NAME: "\x00"}])
async def test_nobody_acts_who_did_not_sign_in(world, headers):
    """Such a call cannot come, unless the app believes in a sign-in that is off."""
    assert (await call(world, headers, operator_sign_in=True))[0] == 401


@pytest.mark.proves("OPR-10")
@pytest.mark.parametrize(
    ("principal", "status"),
    [
        (claims("operator"), 202),
        (claims("reader", "operator"), 202),
        (
            claims("operator", kind="http://schemas.microsoft.com/ws/2008/06/identity/claims/role"),
            202,
        ),
        (claims(), 403),
        (claims("reader"), 403),
        ("", 403),
        ("no base64!", 403),
        (base64.b64encode(b'{"claims": [1]}').decode(), 403),
        (base64.b64encode(b"[" * 9999).decode(), 403),
    ],
)
async def test_whoever_lacks_the_operators_role_may_do_nothing(world, principal, status):
    """A claim of another kind with its name is none, and what cannot be read has none."""
    headers = {NAME: "ada@example.com", PRINCIPAL: principal}
    settings = {"operator_sign_in": True, "operator_role": "operator"}
    found = await call(world, headers, **settings)
    assert found[0] == status
    assert (found[1] == "operator/ada@example.com") == (status == 202)
    listed = await call(world, headers, name="operator_orders", **settings)
    assert listed[0] == (200 if status == 202 else 403)


async def test_calls_that_are_open_ask_for_nobody(world):
    """Whether the app is healthy, say."""
    status, _ = await call(world, {}, name="health_report", operator_sign_in=True)
    assert status == 200
