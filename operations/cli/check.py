"""Checks a deployment from outside: health, an order, an alert, a resubmit.

docs/operations/deploy.md describes it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, takewhile

from engine.words.catalogue import text, texts
from operations.cli.client import Api, ApiError, Json, KeyRefusedError

SIGNATURE = {"operator": "check", "note": "the check has removed its fault"}
SIMULATOR = "/simulator"
NOT_LET_IN = (301, 302, 401, 403)
"""The statuses for a refused key, or for a sign-in in front of the app."""
PAUSE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check of a deployment."""

    api: Api
    patience_seconds: float
    """How long each check may take, in seconds. The first one may have to wait for new instances.
    """
    say: Callable[[str], None]

    def run(self) -> None:
        """Run all checks. Raises `ApiError` with the last state of the check that failed."""
        self._until("health", self._healthy)
        steps = self._steps_of_sample()
        if not steps:
            self.say(text("cli.check.no-sample"))
            return
        self._until("order", partial(self._is, self._place({}), "Processed"))
        step = next((sample_step for sample_step in reversed(steps) if sample_step["waits"]), None)
        if step is None:
            self.say(text("cli.check.no-step"))
            return
        self._try_failure(step)

    def _try_failure(self, step: Json) -> None:
        """Let a service refuse this step of an order, then remove the fault and resubmit."""
        failed = self._place({"refuse": step["name"]})
        self._until("failure", partial(self._is, failed, "Error"))
        self._until("alert", partial(self._alerted, failed))
        self._mend(step, failed)
        self.api.post("orders", failed, "resubmit", body=SIGNATURE)
        self._until("resubmit", partial(self._is, failed, "Processed"))

    def _until(self, what: str, seen: Callable[[], tuple[bool, str]]) -> None:
        """Repeat a check until it succeeds. Raises `ApiError` if this takes too long."""
        began = time.monotonic()
        while True:
            done, found = _look(seen)
            took = time.monotonic() - began
            if done:
                self.say(
                    text(
                        "cli.check.ok",
                        what=text(f"cli.check.{what}"),
                        found=found,
                        took=f"{took:.1f}",
                    )
                )
                return
            if took >= self.patience_seconds:
                what = text(f"cli.check.{what}")
                raise ApiError(text("cli.check.still", what=what, found=found, took=f"{took:.0f}"))
            time.sleep(PAUSE_SECONDS)

    def _healthy(self) -> tuple[bool, str]:
        status, answer = self.api.ask("GET", "/api/health")
        states = [f"{name} {state}" for name, state in answer.get("dependencies", {}).items()]
        return status == 200, ", ".join(states) or text(
            "cli.check.from", status=status, url=self.api.url
        )

    def _steps_of_sample(self) -> Sequence[Json]:
        """Return the steps of the sample order. Empty if there is no such order."""
        status, answer = self.api.ask("GET", SIMULATOR)
        if status in NOT_LET_IN:
            raise KeyRefusedError(text("cli.check.key-refused", status=status, url=SIMULATOR))
        if status not in (200, 404):
            raise ApiError(f"sample: {status}, {answer}")
        sample: Json = answer.get("sample") or {}
        return list(sample.get("steps", ()))

    def _place(self, request: Json) -> str:
        status, answer = self.api.ask("POST", f"{SIMULATOR}/sample", json=request)
        if status != 202:
            raise ApiError(f"order: {status}, {answer}")
        return str(answer["orderId"])

    def _mend(self, step: Json, order_id: str) -> None:
        """Remove the faults of the step's services for this order."""
        body = {"mode": "none", "match": {"orderId": order_id, "action": step["action"]}}
        for service in step["services"]:
            status, answer = self.api.ask("PUT", f"{SIMULATOR}/{service}/faults", json=body)
            if status != 200:
                raise ApiError(f"fault: {status}, {answer}")

    def _is(self, order_id: str, *wanted: str) -> tuple[bool, str]:
        order = self.api.get("orders", order_id)
        state = order["processState"]
        because = f": {order['reason']}" if order["reason"] else ""
        word = texts().get(f"state.{state}", state)  # a newer app may have another one
        found = text("cli.check.is", order=order_id, state=word, because=because)
        return state in wanted, found

    def _alerted(self, order_id: str) -> tuple[bool, str]:
        since = datetime.fromisoformat(self.api.get("orders", order_id)["placedAt"])
        alerts = chain.from_iterable(page["alerts"] for page in self.api.pages("alerts", limit=500))
        newer = takewhile(lambda alert: datetime.fromisoformat(alert["at"]) >= since, alerts)
        found = (alert["type"] for alert in newer if alert["subject"] == f"orders/{order_id}")
        first = next(found, None)
        return first is not None, text(
            "cli.check.alerted", alert=first or text("cli.none"), order=order_id
        )


def _look(seen: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    """Return the result of a check. An `ApiError` counts as not yet, except for a refused key."""
    try:
        return seen()
    except KeyRefusedError:
        raise
    except ApiError as error:
        return False, str(error)
