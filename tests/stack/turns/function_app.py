"""A timer that keeps to its turns, as those of the app do, and whose runs take longer than its interval."""

import asyncio
import json
import time

import azure.functions as func

from engine.runtime.functions import skip_overlapping_runs

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
seen: list[dict] = []


@app.route(route="seen/timer", methods=["GET"])
async def seen_of(req: func.HttpRequest):
    return func.HttpResponse(json.dumps({"seen": seen}), mimetype="application/json")


@app.timer_trigger(arg_name="timer", schedule="* * * * * *", use_monitor=False)
async def tick(timer: func.TimerRequest):
    run = {"at": time.time()}
    seen.append(run)

    async def work():
        run["turn"] = True
        await asyncio.sleep(1.3)

    await skip_overlapping_runs("tick", work)
