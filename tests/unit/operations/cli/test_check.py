"""What the check of a deployment says when something is not as it should be."""

import httpx2
import pytest

from operations.cli.check import Check
from operations.cli.client import Api, ApiError, KeyRefusedError

HEALTHY = {"status": "healthy", "dependencies": {"stateStore": "available"}}
PLACED_AT = "2026-01-31T08:15:00+00:00"
ORDER = {"processState": "Processed", "reason": None, "placedAt": PLACED_AT}
FAILED = ORDER | {"processState": "Error", "reason": "card declined"}
QUEUED = ORDER | {"processState": "Accepted"}
NEWER = ORDER | {"processState": "Parked"}
ALERT = {"type": "OrderFailed", "subject": "orders/b01-x", "at": "2026-01-31T08:15:09Z"}
OTHER = ALERT | {"subject": "orders/b01-y"}
OLDER = OTHER | {"at": "2026-01-31T08:14:59Z"}


def deployment(**answers):
    """An app that answers so; what is not said here, it does not have."""
    requests = []

    def answer(request):
        name = f"{request.method} {request.url.path.rpartition('/')[2]}"
        requests.append(name)
        status, body = answers.get(name.replace(" ", "_"), (404, {}))
        return httpx2.Response(status, json=body)

    return Api("http://app", "the-key", transport=httpx2.MockTransport(answer)), requests


def run(api):
    """Check it without patience; return what was said."""
    lines = []
    Check(api=api, patience_seconds=0, say=lines.append).run()
    return lines


def sample_of(*steps):
    """What is told of the sample order, whose steps have these names, and may need an operator."""
    sample = [
        {"name": name, "services": ["one", "two"], "action": f"do-{name}", "waits": waits}
        for name, waits in steps
    ]
    return {"GET_simulator": (200, {"services": [], "marks": [], "sample": {"steps": sample}})}


STEPS = [("first", True), ("last", True), ("undone", False)]
SIMULATED = {"GET_health": (200, HEALTHY), "PUT_faults": (200, {})} | sample_of(*STEPS)
PLACED = SIMULATED | {"POST_sample": (202, {"orderId": "b01-x"})}


@pytest.mark.parametrize(
    "simulator", [(404, {}), (200, {"services": [], "marks": [], "sample": None})]
)
def test_nothing_is_ordered_where_the_services_are_real(simulator):
    """What is ordered would be done."""
    api, requests = deployment(GET_health=(200, HEALTHY), GET_simulator=simulator)
    assert [line.partition(":")[0] for line in run(api)] == ["ok  health", "skipped"]
    assert requests == ["GET health", "GET simulator"]


def test_where_no_refusal_waits_for_an_operator_an_order_is_all_that_is_tried():
    """Of the failure of any other it is made undone."""
    answers = PLACED | sample_of(("undone", False)) | {"GET_b01-x": (200, ORDER)}
    api, requests = deployment(**answers)
    assert [line.partition(":")[0] for line in run(api)] == ["ok  health", "ok  order", "skipped"]
    assert requests.count("POST sample") == 1


def test_the_order_that_fails_is_refused_the_last_step_that_waits(monkeypatch):
    """Then each service that may be asked for it is mended, for this order alone."""
    sent, states = [], iter([ORDER, FAILED, FAILED, ORDER])
    alerts = {"GET_alerts": (200, {"alerts": [ALERT]}), "POST_resubmit": (202, {})}
    api, _ = deployment(**PLACED | alerts)
    ask = api.ask
    monkeypatch.setattr(
        api,
        "ask",
        lambda *call, **more: sent.append((call[1], more.get("json"))) or ask(*call, **more),
    )
    monkeypatch.setattr(api, "get", lambda *path, **query: _get(path, [ALERT], states))
    assert [line.partition(":")[0] for line in run(api)] == [
        "ok  health",
        "ok  order",
        "ok  failure",
        "ok  alert",
        "ok  resubmit",
    ]
    mended = {"mode": "none", "match": {"orderId": "b01-x", "action": "do-last"}}
    assert [request for request in sent if request[1] is not None] == [
        ("/simulator/sample", {}),
        ("/simulator/sample", {"refuse": "last"}),
        ("/simulator/one/faults", mended),
        ("/simulator/two/faults", mended),
    ]


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        (
            {"GET_health": (503, {"dependencies": {"serviceBus": "refused"}})},
            "health: no success after .* s; last seen: serviceBus refused",
        ),
        (
            {"GET_health": (404, {})},
            "health: no success after .* s; last seen: 404 from http://app",
        ),
        (SIMULATED | {"GET_simulator": (503, {"title": "away"})}, "sample: 503"),
        (SIMULATED | {"POST_sample": (503, {"title": "away"})}, "order: 503"),
        (
            PLACED | {"GET_b01-x": (404, {"title": "No such order"})},
            "order: no success after .* s; last seen: No such order",
        ),
        (
            PLACED | {"GET_b01-x": (200, FAILED)},
            "order: no success after .* s; last seen: b01-x is Error: card declined",
        ),
        (
            PLACED | {"GET_b01-x": (200, QUEUED)},
            "order: no success after .* s; last seen: b01-x is Accepted",
        ),
        (
            PLACED | {"GET_b01-x": (200, NEWER)},
            "order: no success after .* s; last seen: b01-x is Parked",
        ),
        (
            PLACED | {"GET_b01-x": (200, ORDER)},
            "failure: no success after .* s; last seen: b01-x is Processed",
        ),
    ],
)
def test_what_does_not_come_about_is_named_with_what_was_seen_last(answers, fault):
    """By one line, which docs/operations/deploy.md explains."""
    with pytest.raises(ApiError, match=fault):
        run(deployment(**answers)[0])


def test_a_key_that_is_refused_is_not_tried_again():
    """It will not become right."""
    for status in (401, 302):
        with pytest.raises(KeyRefusedError):
            run(deployment(**SIMULATED | {"GET_simulator": (status, {})})[0])
    with pytest.raises(KeyRefusedError):
        run(deployment(**PLACED | {"GET_b01-x": (401, {})})[0])


@pytest.mark.parametrize(
    ("alerts", "fault"),
    [
        ([], "alert: no success after .* s; last seen: none for b01-x"),
        ([ALERT], "resubmit: no success after .* s; last seen: b01-x is Err"),
    ],
)
def test_every_step_is_checked_after_the_one_before(alerts, fault, monkeypatch):
    """An alert that does not come through Event Grid; an order that does not go on."""
    states = iter([ORDER])
    api, _ = deployment(
        **PLACED | {"GET_alerts": (200, {"alerts": alerts}), "POST_resubmit": (202, {})}
    )
    monkeypatch.setattr(api, "get", lambda *path, **query: _get(path, alerts, states))
    with pytest.raises(ApiError, match=fault):
        run(api)


@pytest.mark.parametrize(
    ("pages", "looks"),
    [
        ([[OTHER] * 500, [OTHER, ALERT]], 2),
        ([[OTHER] * 500, [OTHER, OLDER], [ALERT]], 2),
        ([[ALERT], [OTHER]], 1),
    ],
    ids=["behind others", "not behind older ones", "among the first"],
)
def test_an_alert_is_found_among_many_others(pages, looks, monkeypatch):
    """A storm of alerts may come meanwhile: it is looked for up to those that are older than its order."""
    states, seen = iter([ORDER, FAILED, FAILED, ORDER]), []

    def get(*path, **query):
        if path != ("alerts",):
            return next(states)
        seen.append(query)
        number = int(query.get("continuation", 0))
        more = str(number + 1) if number + 1 < len(pages) else None
        return {"alerts": pages[number], "continuation": more}

    api, _ = deployment(**PLACED | {"POST_resubmit": (202, {})})
    monkeypatch.setattr(api, "get", get)
    if ALERT in [alert for page in pages[:looks] for alert in page]:
        assert run(api)[-1].startswith("ok  resubmit")
    else:
        with pytest.raises(
            ApiError, match=r"alert: no success after .* s; last seen: none for b01-x"
        ):
            run(api)
    assert len(seen) == looks


def _get(path, alerts, states):
    return {"alerts": alerts} if path == ("alerts",) else next(states, FAILED)
