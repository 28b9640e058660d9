"""What the check of a deployment says when something is not as it should be."""

import httpx
import pytest

from operators.cli.check import Check
from operators.cli.client import Api, ApiError, KeyRefusedError

HEALTHY = {"status": "healthy", "dependencies": {"stateStore": "available"}}
ORDER = {"processState": "Processed", "reason": None}
FAILED = {"processState": "Error", "reason": "card declined"}
ALERT = {"type": "OrderFailed", "subject": "orders/b01-x"}


def deployment(**answers):
    """An app that answers so; what is not said here, it does not have."""
    asked = []

    def answer(request):
        name = f"{request.method} {request.url.path.rpartition('/')[2]}"
        asked.append(name)
        status, body = answers.get(name.replace(" ", "_"), (404, {}))
        return httpx.Response(status, json=body)

    return Api("http://app", "the-key", transport=httpx.MockTransport(answer)), asked


def run(api):
    """Check it without patience; return what was said."""
    said = []
    Check(api=api, patience_seconds=0, say=said.append).run()
    return said


SIMULATED = {"GET_health": (200, HEALTHY), "GET_faults": (200, {}), "PUT_faults": (200, {})}
PLACED = SIMULATED | {"POST_orders": (202, {"orderId": "b01-x"})}


def test_nothing_is_ordered_where_the_services_are_real():
    """The goods would be sent."""
    api, asked = deployment(GET_health=(200, HEALTHY))
    assert [line.partition(":")[0] for line in run(api)] == ["ok  health", "not tried"]
    assert asked == ["GET health", "GET faults"]


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ({"GET_health": (503, {"dependencies": {"serviceBus": "refused"}})}, "health: serviceBus refused, still"),
        ({"GET_health": (404, {})}, "health: 404 from http://app, still"),
        (SIMULATED | {"POST_orders": (503, {"title": "away"})}, "order: 503"),
        (PLACED | {"GET_b01-x": (404, {"title": "No such order"})}, "order: No such order, still"),
        (PLACED | {"GET_b01-x": (200, FAILED)}, "order: b01-x is Error: card declined, still"),
        (PLACED | {"GET_b01-x": (200, ORDER)}, "failure: every order was done before"),
    ],
)
def test_what_does_not_come_about_is_named_with_what_was_seen_last(answers, fault):
    """By one line, which docs/deploy.md explains."""
    with pytest.raises(ApiError, match=fault):
        run(deployment(**answers)[0])


def test_a_key_that_is_refused_is_not_tried_again():
    """It will not become right."""
    with pytest.raises(KeyRefusedError):
        run(deployment(**PLACED | {"GET_b01-x": (401, {})})[0])


@pytest.mark.parametrize(
    ("alerts", "fault"), [([], "alert: none of b01-x, still"), ([ALERT], "resubmit: b01-x is Err")]
)
def test_each_step_is_checked_after_the_one_before(alerts, fault, monkeypatch):
    """An alert that does not come through Event Grid; an order that does not go on."""
    states = iter([ORDER])
    api, _ = deployment(**PLACED | {"GET_alerts": (200, {"alerts": alerts}), "POST_resubmit": (202, {})})
    monkeypatch.setattr(api, "get", lambda *path: _get(path, alerts, states))
    with pytest.raises(ApiError, match=fault):
        run(api)


def _get(path, alerts, states):
    return {"alerts": alerts} if path == ("alerts",) else next(states, FAILED)
