"""`python -m tests.support.served MODULE:NAME PORT`: a business in memory behind HTTP, for pages that are followed.

Each call lets ten seconds pass, in steps of five, so that whoever asks again sees what has happened since.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import azure.functions as func
from yarl import URL

from development.business import named
from engine.domain.messages import Submission
from engine.http.external_events import callback_routes
from engine.http.openapi import Route
from engine.http.public_api.triggers import endpoint_routes
from engine.runtime.api import http_functions
from functions_alone.host.routes import compile_route, order_of_name
from operations.api.triggers import operator_routes
from samples.simulator.service import Simulator
from samples.simulator.triggers import simulator_functions
from testkit.world import AppWorld

KEY = "local-operator"
SECONDS = 5.0
SUBMIT = "/make-submit"
"""Where an order is put on its queue: the app has no such call."""


class Served:
    """The app of a business, as a host with HTTP alone runs it."""

    def __init__(self, business: str, port: int) -> None:
        threshold = int(os.environ.get("FAILURE_THRESHOLD", "25"))  # as `make run` has it
        application, place = named(business), f"http://127.0.0.1:{port}"
        needed = [agent.name for agent in application.agents if not agent.optional]
        settings = {
            "public_url": place,
            "failure_threshold": threshold,
            "addresses": dict.fromkeys(needed, place),
        }
        self._world = AppWorld(application, datetime.now(UTC), settings)
        self._own = f"{business.partition('.')[0]}.triggers"
        app = func.FunctionApp()
        app.register_functions(http_functions(list(self._routes())))
        app.register_functions(simulator_functions(self._simulator(), None))
        self._functions = []
        for function in sorted(
            app.get_functions(), key=lambda function: order_of_name(function.get_function_name())
        ):
            trigger = function.get_trigger().get_dict_repr()
            self._functions.append(
                (
                    compile_route("", trigger["route"]),
                    {str(method) for method in trigger["methods"]},
                    str(trigger["authLevel"]).endswith("ANONYMOUS"),
                    function.get_user_function(),
                )
            )

    def _routes(self) -> Sequence[Route]:
        engine = self._world.engine
        own = import_module(self._own) if find_spec(self._own) else None
        return [
            *(own.routes(engine.customers) if own else ()),
            *endpoint_routes(engine.customers, engine.business.endpoints),
            *callback_routes(engine.callback_service),
            *operator_routes(self._world.operations.services),
        ]

    def _simulator(self) -> Simulator:
        """The services of the world, for whoever lets them fail and looks at what they did."""
        services = self._world.services
        return Simulator(
            services=services._services,
            called=list(services._services),
            ledger=services._ledger,
            clock=self._world.loop.now,
            sleep=asyncio.sleep,
            chance=lambda: 1.0,
        )

    def answer(self, method: str, url: URL, headers: dict[str, str], body: bytes) -> Any:
        """Answer a call, after some time, and do what follows from it."""
        if url.path == SUBMIT:
            return func.HttpResponse(self._submit(json.loads(body)))
        for path, methods, is_open, function in self._functions:
            parameters = path.match(url.path)
            if method not in methods or parameters is None:
                continue
            if not is_open and headers.get("x-functions-key") != KEY:
                return func.HttpResponse(status_code=401)
            self._pass()
            request = func.HttpRequest(
                method=method,
                url=str(url),
                headers=headers,
                params=dict(url.query),
                route_params=parameters,
                body=body,
            )
            answer = self._world.loop.create_task(function(request))
            while not answer.done():
                self._pass()
            return answer.result()
        return func.HttpResponse(status_code=404)

    def _submit(self, payload: dict[str, Any]) -> str:
        """Put an order on its queue, as `make submit` does; return its id."""
        order_id = self._world.engine.customers.new_order_id()
        placed = {"orderId": order_id, "placedAt": self._world.loop.now()}
        message = Submission.model_validate({**payload, "schemaVersion": 1, **placed})
        self._world.engine.submissions.texts.append(message.to_json())
        self._pass()
        return order_id

    def _pass(self) -> None:
        """Record what was submitted, and let time pass."""
        submissions = self._world.engine.submissions
        texts, submissions.texts = submissions.texts, []
        for text in texts:
            self._world.run(self._world.engine.submission.record(text.encode()))
        self._world.advance(timedelta(seconds=SECONDS))


def main(business: str, port: int) -> None:
    """Answer calls until the process is ended."""
    served = Served(business, port)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            url = URL(f"http://127.0.0.1:{port}{self.path}", encoded=True)
            answer = served.answer(self.command, url, headers, body)
            content = answer.get_body()
            self.send_response(answer.status_code)
            for name, value in {
                **answer.headers,
                "Content-Type": answer.mimetype,
                "Content-Length": str(len(content)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - of the base

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
