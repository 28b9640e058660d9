"""A clock that strikes each second."""

import os

import azure.functions as func

app = func.FunctionApp()
struck = 0


@app.timer_trigger("timer", "%SCHEDULE%", use_monitor=False)
async def strike(timer: func.TimerRequest) -> None:
    """Strike once more."""
    global struck  # noqa: PLW0603 - an app as short as can be
    struck += 1


@app.route("clock", auth_level=func.AuthLevel.FUNCTION)
async def tell(req: func.HttpRequest) -> func.HttpResponse:
    """Say how often it has struck; for whoever has the key."""
    return func.HttpResponse(f"{os.environ['NAME']} {struck}")
