"""Outputs to queues: what a function sets or returns is sent when it has returned."""

import base64

import azure.functions as func
import pytest
from azure.functions.meta import Datum
from azure.servicebus import ServiceBusClient
from azure.storage.queue import QueueClient

from functions_alone.host.errors import InvocationFailed
from functions_alone.host.index import RETURNED, Output, index_functions
from functions_alone.host.invoke import FunctionCall
from functions_alone.host.outputs import Out, produced, send
from functions_alone.host.settings import AppSettings

STORAGE = Output(name="to_queue", type="queue", queue="outputs", connection="")
BUS = Output(name="to_bus", type="serviceBus", queue="q", connection="")
RETURN = Output(name=RETURNED, type="queue", queue="outputs", connection="")


def test_outputs_are_found_beside_a_trigger():
    """With names and connections from the settings."""
    app = func.FunctionApp()
    app.function_name("f")(
        app.route("a")(
            app.queue_output("to_queue", "%NAME%", "C")(
                app.service_bus_queue_output("to_bus", "B", "bus")(lambda x, to_queue, to_bus: None)
            )
        )
    )
    settings = AppSettings(values={"C": "c", "B": "b", "NAME": "named"})
    [function] = index_functions(app.get_functions(), settings, None)
    assert {(output.name, output.queue, output.connection) for output in function.outputs} == {
        ("to_queue", "named", "c"),
        ("to_bus", "bus", "b"),
    }


def test_what_was_not_set_is_not_sent():
    """A function need not send each time."""
    outs = {"to_queue": Out(), "to_bus": Out()}
    outs["to_bus"].set("text")
    values = produced([STORAGE, BUS], outs, None)
    assert {name: datum.value for name, datum in values.items()} == {"to_bus": "text"}


@pytest.mark.parametrize(
    ("value", "messages"),
    [("é", ["é"]), (b"bytes", ["bytes"]), (["a", "b"], ["a", "b"])],
    ids=["text", "bytes", "several"],
)
@pytest.mark.parametrize("in_base64", [True, False])
async def test_messages_reach_a_storage_queue(services, value, messages, in_base64):
    """The queue is made when it is first needed; the encoding is that of host.json."""
    connection = services.storage_connection_string
    output = Output(name=RETURNED, type="queue", queue="outputs", connection=connection)
    await send([output], produced([output], {}, value), in_base64=in_base64)
    with QueueClient.from_connection_string(connection, "outputs") as queue:
        found = [message.content for message in queue.receive_messages()]
        queue.delete_queue()
    decoded = [base64.b64decode(body).decode() if in_base64 else body for body in found]
    assert decoded == messages


async def test_messages_reach_a_service_bus_queue(services, own_bus_queue):
    """Text and bytes arrive as they are."""
    connection = services.service_bus_connection_string
    output = Output(name="x", type="serviceBus", queue=own_bus_queue.name, connection=connection)
    await send([output], {"x": Datum("text", "string")}, in_base64=True)
    with (
        ServiceBusClient.from_connection_string(connection) as client,
        client.get_queue_receiver(own_bus_queue.name) as receiver,
    ):
        [message] = receiver.receive_messages(max_wait_time=60)
        assert str(message) == "text"
        receiver.complete_message(message)


async def test_a_function_whose_output_cannot_be_sent_has_failed(caplog):
    """Its message comes again; the reason is logged once."""

    class Worker:
        async def call(self, *_):
            return None, {RETURNED: Datum("x", "string")}

    function = type("F", (), {"name": "f", "outputs": [RETURN]})
    with pytest.raises(InvocationFailed):
        await FunctionCall(function=function, worker=Worker())(Datum("x", "string"), None)
    assert [record.getMessage() for record in caplog.records] == [
        "function f: its outputs cannot be sent"
    ]
