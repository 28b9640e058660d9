"""What reaches Application Insights of a log line."""

import json
import logging

import pytest

from engine.runtime.logs import show_fields


class Worker(logging.Handler):
    """A handler without a format, like that of Azure's worker: it keeps the formatted message."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def emit(self, record):
        self.sent.append(self.format(record))


@pytest.fixture
def worker():
    root, worker = logging.getLogger(), Worker()
    root.addHandler(worker)
    show_fields()
    yield worker
    root.removeHandler(worker)


def test_the_fields_of_a_line_are_sent_with_it(worker):
    """As JSON behind the message, which queries can take apart."""
    logging.getLogger("engine.x").warning(
        "order.changed", extra={"order_id": "b00-1", "steps": {"a": "Running"}}
    )
    name, _, fields = worker.sent[-1].partition(" ")
    assert name == "order.changed"
    assert json.loads(fields) == {"order_id": "b00-1", "steps": {"a": "Running"}}


def test_a_line_without_fields_and_a_traceback_are_sent_as_they_are(worker):
    """Nothing is appended to what other libraries say."""
    logging.getLogger("x").warning("plain %s", "text")
    assert worker.sent[-1] == "plain text"
    logging.getLogger("x").error("failed", exc_info=ValueError("why"), extra={"a": 1})
    assert worker.sent[-1] == 'failed {"a": 1}\nValueError: why'


def test_requests_of_the_sdks_are_not_logged_one_by_one(worker):
    """Their line for every request would cost more than the requests."""
    logging.getLogger("azure.core.pipeline.policies.http_logging_policy").info("Request URL")
    assert [line for line in worker.sent if "Request URL" in line] == []
    assert not logging.getLogger("azure.core.pipeline").isEnabledFor(logging.INFO)


def test_a_handler_with_a_format_keeps_it():
    """The embedded host's own lines stay as they are."""
    root, handler, own = logging.getLogger(), Worker(), logging.Formatter("own %(message)s")
    handler.setFormatter(own)
    root.addHandler(handler)
    show_fields()
    root.removeHandler(handler)
    assert handler.formatter is own
