"""An app that uses every trigger of the local host and tells, over HTTP, what it saw."""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
seen: dict[str, list] = {}
running: Counter[str] = Counter()
highest: Counter[str] = Counter()
gate = asyncio.Event()
released = asyncio.Event()
tasks: dict[str, asyncio.Task] = {}
# A host that stops takes no calls any more, but a signal.
# (the loop that imports this is the one that runs the functions)
asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, gate.set)

log = logging.getLogger("sample")
log.info("the sample app is loaded")
match os.environ.get("WHEN_LOADED", ""), Path(os.environ.get("FAIL_TO_LOAD", "-")).exists():
    case "exit", _:
        sys.exit(3)
    case _, True:
        raise RuntimeError("told to fail")


def note(kind, **what):
    seen.setdefault(kind, []).append(what)


async def work(kind, body):
    """Do what a message says: fail, wait for the gate, take some time, and so on; and count how many run at once."""
    running[kind] += 1
    highest[kind] = max(highest[kind], running[kind])
    try:
        if body.startswith("fail"):
            raise RuntimeError(f"told to {body}")
        if body.startswith("gate"):
            await gate.wait()
        if body.startswith("slow"):
            await asyncio.sleep(float(body.split()[1]))
        if body.startswith("once"):
            await hang_once(Path(body.split()[1]))
        if body.startswith("pid"):
            Path(body.split()[1]).write_text(str(os.getpid()))  # noqa: ASYNC240 - a few bytes
    finally:
        running[kind] -= 1


async def hang_once(armed):
    """Hang if the file is there, and move it: the next call goes through, in whatever process that is."""
    if armed.exists():
        armed.rename(armed.with_suffix(".begun"))
        await asyncio.Event().wait()


def as_json(value, **more):
    return func.HttpResponse(json.dumps(value, default=str), mimetype="application/json", **more)


@app.route(route="seen/{kind}", methods=["GET"])
async def seen_of(req: func.HttpRequest):
    kind = req.route_params["kind"]
    return as_json({"seen": seen.get(kind, []), "highest": highest[kind], "running": running[kind]})


@app.route(route="reset", methods=["POST"])
async def reset(req: func.HttpRequest):
    seen.clear()
    highest.clear()
    gate.set()
    gate.clear()
    return as_json({})


@app.route(route="items/{id:int}", methods=["GET", "DELETE"])
async def item(req: func.HttpRequest):
    return as_json({"route": "item", "params": dict(req.route_params), "query": dict(req.params)})


@app.route(route="items/special", methods=["GET"])
async def special(req: func.HttpRequest):
    return as_json({"route": "special", "process": os.getpid()})


@app.route(route="shadow/{what}", methods=["GET"])
async def shadow_any(req: func.HttpRequest):
    return as_json({"route": "any"})


@app.route(route="shadow/exact", methods=["GET"])
async def shadow_exact(req: func.HttpRequest):
    return as_json({"route": "exact"})


@app.route(route="headers", methods=["GET"])
async def headers_of(req: func.HttpRequest):
    response = as_json(dict(req.headers))
    for pair in json.loads(req.params["add"]):
        response.headers.add(*pair)
    return response


@app.route(route="files/{*path}", methods=["GET"])
def files(req: func.HttpRequest, context):
    return as_json(
        {
            "path": req.route_params["path"],
            "url": req.url,
            "thread": threading.current_thread().name,
            "function": context.function_name,
        }
    )


@app.route(route="echo", methods=["POST"])
async def echo(req: func.HttpRequest):
    headers = {
        "X-Seen": req.headers["x-given"],
        "X-Url": req.url,
        "X-Length": str(len(req.get_body())),
    }
    return func.HttpResponse(
        req.get_body()[:100], status_code=201, headers=headers, mimetype="text/x", charset="latin-1"
    )


@app.route(route="broken", methods=["GET"])
async def broken(req: func.HttpRequest):
    raise RuntimeError("broken on purpose")


@app.route(route="hold", methods=["GET"])
async def hold(req: func.HttpRequest):
    note("hold")
    await gate.wait()
    return as_json({"held": True})


@app.route(route="does/{what}", methods=["GET"])
async def does(req: func.HttpRequest):
    """Do what an HTTP function should not, or the work of a message."""
    match req.route_params["what"]:
        case "cancel":
            raise asyncio.CancelledError
        case "exit":
            sys.exit(3)
        case "block":
            time.sleep(1000)  # noqa: ASYNC251 - what an async function should not do
        case "spin":
            Path(req.params["begun"]).touch()  # noqa: ASYNC240 - as above
            while True:
                pass
        case "none":
            return None
        case "work":
            await work("work", req.params["body"])
    return as_json({"process": os.getpid()})


@app.route(route="blocks", methods=["GET"])
def blocks(req: func.HttpRequest):
    time.sleep(1000)


@app.route(route="logs", methods=["GET"])
async def logs(req: func.HttpRequest):
    """Leave a task behind that says something now, and something once the invocation is over."""
    released.clear()
    log.debug("said in detail")
    tasks["logs"] = asyncio.create_task(say_more())
    await asyncio.sleep(0)
    return as_json({})


async def say_more():
    log.info("said in time")
    await released.wait()
    log.info("said too late")


@app.route(route="logs/release", methods=["GET"])
async def release(req: func.HttpRequest):
    released.set()
    await tasks["logs"]
    return as_json({})


@app.route(route="secret", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
async def secret(req: func.HttpRequest):
    return as_json({"secret": True})


@app.route(route="admin-only", methods=["GET"], auth_level=func.AuthLevel.ADMIN)
async def admin_only(req: func.HttpRequest):
    return as_json({"secret": True})


@app.queue_trigger(
    arg_name="message",
    queue_name="%WORK_QUEUE%",
    connection="Storage",
    data_type=func.DataType.BINARY,
)
async def from_queue(message: func.QueueMessage):
    body = message.get_body().decode()
    note("queue", body=body, tries=message.dequeue_count, inserted=message.insertion_time)
    await work("queue", body)


@app.service_bus_queue_trigger(
    arg_name="message",
    queue_name="%SINGLES%",
    connection="Bus",
    data_type=func.DataType.BINARY,
)
async def from_bus(message: func.ServiceBusMessage):
    body = message.get_body().decode()
    note(
        "single",
        body=body,
        id=message.message_id,
        correlation=message.correlation_id,
        reply_to=message.reply_to,
        properties=message.application_properties,
        tries=message.delivery_count,
        expires=message.expires_at_utc,
    )
    await work("single", body)


@app.service_bus_queue_trigger(
    arg_name="messages",
    queue_name="%BATCHES%",
    connection="Bus",
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
async def from_bus_many(messages: list[func.ServiceBusMessage]):
    bodies = [message.get_body().decode() for message in messages]
    note(
        "batch",
        bodies=bodies,
        ids=[m.message_id for m in messages],
        correlations=[m.correlation_id for m in messages],
        expire=[m.expires_at_utc for m in messages],
        tries=[m.delivery_count for m in messages],
        properties=[m.application_properties for m in messages],
    )
    for body in bodies:
        await work("batch", body)


@app.queue_trigger(arg_name="message", queue_name="%TEXTS%", connection="Storage")
async def text_from_queue(message: func.QueueMessage):
    note("text-from-queue", body=message.get_body().decode(), id=message.id)


@app.service_bus_queue_trigger(arg_name="message", queue_name="%TEXTS%", connection="Bus")
async def text_from_bus(message: func.ServiceBusMessage):
    note("text-from-bus", body=message.get_body().decode(), id=message.message_id)


@app.service_bus_queue_trigger(
    arg_name="messages",
    queue_name="%TEXTS_TOGETHER%",
    connection="Bus",
    cardinality=func.Cardinality.MANY,
)
async def texts_from_bus(messages: list[func.ServiceBusMessage]):
    note("texts-from-bus", bodies=[message.get_body().decode() for message in messages])


@app.timer_trigger(arg_name="timer", schedule="%TICK%", run_on_startup=True, use_monitor=False)
async def tick(timer: func.TimerRequest):
    note("timer", at=time.time(), past_due=timer.past_due, status=timer.schedule_status)
    await work("timer", os.environ.get("TICK_DOES", "slow 0.3"))
