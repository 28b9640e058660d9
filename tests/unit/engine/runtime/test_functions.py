"""A function always answers: what is cancelled within it is an ordinary failure of it."""

import asyncio
import inspect
import typing

import azure.functions as func
import pytest

from engine.domain.errors import UnavailableError, WorkCancelledError
from engine.runtime.functions import Functions, answering

CUT_OFF = asyncio.CancelledError()
TRIGGERS = {
    "route": {"route": "x"},
    "queue_trigger": {"arg_name": "req", "queue_name": "q", "connection": "C"},
    "service_bus_queue_trigger": {"arg_name": "req", "queue_name": "q", "connection": "C"},
    "timer_trigger": {"arg_name": "req", "schedule": "* * * * * *"},
}


def raising(error):
    async def handler(req: func.HttpRequest) -> None:
        raise error

    return handler


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize("name", TRIGGERS)
async def test_what_is_cancelled_in_a_function_is_its_failure(name):
    """It fails whatever starts it, named or not; Azure's worker would send no answer at all."""
    functions, app = Functions(), func.FunctionApp()
    trigger = getattr(functions, name)
    trigger(**TRIGGERS[name])(raising(CUT_OFF))
    functions.function_name("named")(trigger(**TRIGGERS[name])(raising(CUT_OFF)))
    app.register_functions(functions)
    for function in app.get_functions():
        with pytest.raises(WorkCancelledError, match=r"test_functions\.handler was cancelled"):
            await function.get_user_function()(
                func.HttpRequest(method="GET", url="http://x/", body=b"")
            )


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize(
    "error",
    [
        BaseExceptionGroup("1 of 2", [CUT_OFF]),
        BaseExceptionGroup("2 of 2", [ValueError(), BaseExceptionGroup("", [CUT_OFF])]),
    ],
    ids=["alone", "among others"],
)
async def test_what_is_cancelled_may_be_one_of_many(error):
    """A group that has it is no ordinary failure either."""
    with pytest.raises(WorkCancelledError) as caught:
        await answering(raising(error))(None)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [UnavailableError("away"), ExceptionGroup("1 of 2", [UnavailableError("away")]), SystemExit(3)],
    ids=repr,
)
async def test_any_other_failure_stays_what_it_is(error):
    """It is ordinary already, or not for a function to answer."""
    with pytest.raises(type(error)) as caught:
        await answering(raising(error))(None)
    assert caught.value is error


async def test_who_calls_a_function_can_cancel_it():
    """As the embedded host does when the time is over, or when it ends."""

    async def waits(req):
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await answering(waits)(None)
    task = asyncio.create_task(answering(waits)(None))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_azure_sees_the_function_itself():
    """Its worker asks for name, parameters and annotations."""
    plain = raising(None)
    seen = answering(plain)
    assert inspect.iscoroutinefunction(seen)
    assert (seen.__name__, inspect.signature(seen)) == (plain.__name__, inspect.signature(plain))
    assert typing.get_type_hints(seen) == {"req": func.HttpRequest, "return": type(None)}


async def test_what_a_function_returns_reaches_its_caller():
    """Nothing is added, nothing is lost."""

    async def handler(req, context):
        return req, context

    assert await answering(handler)("req", context="context") == ("req", "context")
