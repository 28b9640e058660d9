"""How the app's functions are bound to what starts them, and how long they may take."""

import json
from datetime import timedelta

from pydantic import TypeAdapter

from development.servicebus_config import ROOT, queues
from engine.declarations.workflow import LONGEST_TIMEOUT
from engine.runtime.functions import AGENT_SECONDS
from engine.time_limit import LONGEST_WRITE_SECONDS


def test_every_message_comes_as_bytes(functions):
    """As text it would be changed, spoil its batch, and replace its own metadata (host.md 2 and 3, webjobs.md 6)."""
    queues = {
        name: trigger["dataType"]
        for name, trigger in functions.items()
        if trigger["type"] in ("queueTrigger", "serviceBusTrigger")
    }
    assert {"submission_record", "scheduler_order_ready", "alerts_record"} <= queues.keys()
    assert set(queues.values()) == {"BINARY"}


def test_every_function_ends_itself_long_before_azure_ends_its_process(built):
    """Ten seconds at least, a write that is under way included; all but agents within two minutes (load.md 3)."""
    host = json.loads((ROOT / "host.json").read_text())
    allowed = TypeAdapter(timedelta).validate_python(host["functionTimeout"]).total_seconds()
    limits = {
        name: function.time_limit_seconds + LONGEST_WRITE_SECONDS
        for name, function in built.items()
    }
    agents = {name for name in limits if name.startswith("agent_")}
    assert agents
    for name, seconds in limits.items():
        assert seconds <= (allowed - 10 if name in agents else 120), name
    assert LONGEST_TIMEOUT.total_seconds() <= AGENT_SECONDS


def test_a_batch_is_settled_within_its_lock(built, functions):
    """Azure does not renew the locks of a batch."""
    locks = {
        queue["name"]: TypeAdapter(timedelta).validate_python(queue["lockDuration"])
        for queue in queues()["serviceBusQueues"]
    }
    batches = {
        name: function
        for name, function in functions.items()
        if function.get("cardinality") == "MANY"
    }
    assert batches
    for name, trigger in batches.items():
        seconds = built[name].time_limit_seconds + LONGEST_WRITE_SECONDS
        assert seconds < locks[trigger["queueName"]].total_seconds(), name
