"""Tries a deployment from outside: health, an order, an alert, a resubmit (docs/deploy.md)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from operators.cli.client import Api, ApiError, Json, KeyRefusedError

PURCHASE: Json = {
    "customer": {"name": "A check", "email": "check@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 1}],
}
SIGNATURE = {"operator": "check", "note": "the check has removed its fault"}
FAULTS = "/simulator/payment/faults"
PAUSE_SECONDS = 0.5
TRIES = 5
"""To have an order meet the fault: it may be done before the fault is there."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of one deployment."""

    api: Api
    patience_seconds: float
    """How long each thing may take; the first ones may have to start instances."""
    say: Callable[[str], None]

    def run(self) -> None:
        """Try everything; raises `ApiError` with what was seen last of what did not come about."""
        self._until("health", self._healthy)
        if self.api.ask("GET", FAULTS)[0] == 404:
            self.say("not tried: order, alert, resubmit; where the services are real, the order would be too")
            return
        self._until("order", partial(self._is, self._place(), "Processed"))
        failed = self._failed()
        self._until("alert", partial(self._alerted, failed))
        self._fault("none", failed)
        self.api.post("orders", failed, "resubmit", body=SIGNATURE)
        self._until("resubmit", partial(self._is, failed, "Processed"))

    def _until(self, what: str, seen: Callable[[], tuple[bool, str]]) -> None:
        """Look until it is so."""
        began = time.monotonic()
        while True:
            done, said = _look(seen)
            took = time.monotonic() - began
            if done:
                self.say(f"ok  {what}: {said} ({took:.1f} s)")
                return
            if took >= self.patience_seconds:
                raise ApiError(f"{what}: {said}, still after {took:.0f} s")
            time.sleep(PAUSE_SECONDS)

    def _healthy(self) -> tuple[bool, str]:
        status, answer = self.api.ask("GET", "/api/health")
        states = [f"{name} {state}" for name, state in answer.get("dependencies", {}).items()]
        return status == 200, ", ".join(states) or f"{status} from {self.api.url}"

    def _place(self) -> str:
        status, answer = self.api.ask("POST", "/api/orders", json=PURCHASE)
        if status != 202:
            raise ApiError(f"order: {status}, {answer}")
        return str(answer["orderId"])

    def _failed(self) -> str:
        """Return an order that was refused its last step, and is in Error."""
        for _ in range(TRIES):
            order_id = self._place()
            self._fault("reject", order_id)
            self._until("failure", partial(self._is, order_id, "Error", "Processed"))
            if self.api.get("orders", order_id)["processState"] == "Error":
                return order_id
            self._fault("none", order_id)
        raise ApiError("failure: every order was done before the fault met it")

    def _fault(self, mode: str, order_id: str) -> None:
        body = {"mode": mode, "match": {"orderId": order_id, "action": "capture"}}
        status, answer = self.api.ask("PUT", FAULTS, json=body)
        if status != 200:
            raise ApiError(f"fault: {status}, {answer}")

    def _is(self, order_id: str, *wanted: str) -> tuple[bool, str]:
        order = self.api.get("orders", order_id)
        state = order["processState"]
        return state in wanted, f"{order_id} is {state}" + (f": {order['reason']}" if order["reason"] else "")

    def _alerted(self, order_id: str) -> tuple[bool, str]:
        found = [each["type"] for each in self.api.get("alerts")["alerts"] if each["subject"] == f"orders/{order_id}"]
        return bool(found), f"{found[0]} of {order_id}" if found else f"none of {order_id}"


def _look(seen: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    """Return what is seen; what is away, or not recorded yet, may come."""
    try:
        return seen()
    except KeyRefusedError:
        raise
    except ApiError as error:
        return False, str(error)
