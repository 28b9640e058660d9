"""Operations that are functions of the business: how they run, and what is told of them."""

import asyncio
import contextlib
import gc
import json
import logging
import re
import subprocess
import sys
import threading
import traceback
from dataclasses import replace

import pytest

from development.declared import declaration
from development.servicebus_config import ROOT
from development.settings import app_settings
from engine.azure.code import CodeService
from engine.azure.connect import connect
from engine.azure.settings import Settings, SettingsError
from engine.declarations.credentials import SETTING
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.workflow import DeclarationError
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import (
    InvalidError,
    InvalidRequestError,
    InvalidResultError,
    NotAttemptedError,
    RejectedError,
    TransientError,
)
from engine.domain.messages import responses_queue
from engine.workflow import (
    Agent,
    Call,
    DeferredResult,
    EntraToken,
    Model,
    NonRetryable,
    Nothing,
    Operation,
    Retryable,
    Workflow,
    application,
)
from functions_alone.ports import Ports
from samples.simulator.samples import sample_order
from testkit.memory import in_memory
from tests.support.agency import Agency
from tests.support.apps import bootstrap
from tests.support.builders import seconds
from tests.support.faults import without_lines


class Sum(Model):
    """What is asked."""

    amount: int


class Paid(Model):
    """What is answered."""

    reference: str | None = None


class Bank(Agent):
    """A service with a library of its own."""

    authorise = Operation(Sum, Paid)
    void = Operation(Sum)


def served(bank, **more):
    """The service of an agent whose operations are functions."""
    options = {"at_once": 2, "longest_wait": seconds(600)} | more
    return CodeService(agent=bank.name, operations=bank.declaration().code, **options)


def request(**changes):
    return Agency().request.model_copy(update={"content": {"amount": 7}} | changes)


def doing(work, **more):
    """The service of a bank that authorises by this function."""
    bank = Bank("bank")
    bank.activity(Bank.authorise)(work)
    return served(bank, **more)


async def test_a_function_is_given_its_time_and_the_settings_that_it_reads():
    """And an undo what was kept of the answer that it takes back."""
    calls = []

    async def authorise(call: Call, ask: Sum) -> Paid:
        calls.append(call)
        return call.kept(Paid)

    service = doing(authorise, settings={"BANK_KEY": "a-key"})
    assert await service.call(request(callback_url="https://app/x"), 5) == {"reference": None}
    undo = request(action="undo", content={"amount": 7, "result": {"reference": "r", "new": 1}})
    assert await service.call(undo, 5) == {"reference": "r"}
    assert {(call.seconds_left, call.settings["BANK_KEY"], call.step) for call in calls} == {
        (5, "a-key", "payment")
    }
    assert [call.callback_url for call in calls] == ["https://app/x", None]
    assert "a-key" not in repr(calls)
    assert "https://app/x" not in repr(calls)


@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
async def test_of_any_other_exception_the_kind_and_the_place_are_reported(where):
    """Its text may hold the customer's data, or a secret; it may pass."""

    async def on_loop(call: Call, ask: Sum) -> Paid:
        raise ValueError("ada@example.com")

    def in_thread(call: Call, ask: Sum) -> Paid:
        raise ValueError("ada@example.com")

    with pytest.raises(
        TransientError, match=r"raised ValueError at test_activities\.py, line \d"
    ) as raised:
        await doing(on_loop if where == "on the loop" else in_thread).call(request(), 5)
    assert "ada@example.com" not in str(raised.value)
    assert "ada@example.com" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "error", [StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
)
async def test_no_exception_of_a_thread_ends_anything_else(error):
    """Not even one that would end the process."""

    def authorise(call: Call, ask: Sum) -> Paid:
        raise error

    with pytest.raises(TransientError, match=f"raised {error.__name__}"):
        await doing(authorise).call(request(), 5)


class Dated(Model):
    """An answer of two words."""

    paid_at: str
    by: str


class UnreadableError(NonRetryable):
    """One whose reason cannot be asked for."""

    def __init__(self):
        """Have no reason."""

    @property
    def reason(self):
        raise LookupError("no reason")


@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda: NonRetryable(None), RejectedError),
        (lambda: Retryable(5), TransientError),
        (lambda: DeferredResult("later"), TransientError),
        (lambda: Retryable(reason=7), TransientError),
        (UnreadableError, TransientError),
    ],
)
async def test_whatever_a_function_raises_is_answered_and_its_place_is_free_again(
    work, error, where
):
    """No meaning of an exception can fail, so no agent is full of functions that have ended (engine 6)."""

    async def on_loop(call: Call, ask: Sum) -> Paid:
        raise work()

    def in_thread(call: Call, ask: Sum) -> Paid:
        raise work()

    service = doing(on_loop if where == "on the loop" else in_thread, at_once=1)
    for _ in range(3):
        with pytest.raises(error):
            await service.call(request(), 5)


@pytest.mark.parametrize("kind", [Retryable, DeferredResult])
def test_a_function_may_say_when_to_call_again(kind):
    """Or leave it to the agent; what is no time is refused, and shown to its author."""
    assert kind(seconds(5)).after == seconds(5)
    assert kind().after is None
    with pytest.raises(TypeError, match="'later'"):
        kind("later")


def test_a_kept_answer_that_fits_no_model_any_more_is_reported_with_every_fault():
    """It was kept by another version; an answer has the names of the wire."""
    call = Call(order_id="o", step="s", key="k", seconds_left=1.0, result={"paidAt": 5})
    with pytest.raises(InvalidError) as raised:
        call.kept(Dated)
    assert [(fault.place, fault.code) for fault in raised.value.faults] == [
        ("paidAt", "string_type"),
        ("by", "missing"),
    ]


async def test_a_function_that_cancels_itself_does_not_cancel_the_agent():
    """It is a failure that may pass."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        raise asyncio.CancelledError

    with pytest.raises(TransientError, match="was cancelled"):
        await doing(authorise).call(request(), 5)


async def test_an_async_function_is_cancelled_when_its_time_is_up(caplog):
    """And named in the log."""
    cancelled = asyncio.Event()

    async def authorise(call: Call, ask: Sum) -> Paid:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Paid()

    with pytest.raises(TransientError, match="no answer"):
        await doing(authorise).call(request(), 0.01)
    await asyncio.wait_for(cancelled.wait(), 5)
    (record,) = [logged for logged in caplog.records if logged.msg == "code.ran_out_of_time"]
    assert record.function.endswith("authorise")


@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
async def test_what_fails_after_its_time_is_nobody_s_fault(caplog, where):
    """Nobody waits for it any more, so nobody has to be told."""
    may_fail = threading.Event()

    async def on_loop(call: Call, ask: Sum) -> Paid:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.to_thread(may_fail.wait)
        raise ValueError

    def in_thread(call: Call, ask: Sum) -> Paid:
        may_fail.wait()
        raise ValueError

    service = doing(on_loop if where == "on the loop" else in_thread)
    with pytest.raises(TransientError):
        await service.call(request(), 0.01)
    running = set(service._running)
    may_fail.set()
    if running:
        await asyncio.wait(running, timeout=5)
    del running
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


async def test_an_async_function_is_cancelled_with_its_caller():
    """When the host ends the agent's function."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def authorise(call: Call, ask: Sum) -> Paid:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Paid()

    caller = asyncio.create_task(doing(authorise).call(request(), 60))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(cancelled.wait(), 5)


@pytest.mark.proves("AGT-2")
@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
async def test_what_still_runs_though_its_time_is_up_keeps_its_place(where):
    """So no number of them piles up; who finds no room was not tried, and comes again."""
    may_end = threading.Event()
    begun = []

    async def on_loop(call: Call, ask: Sum) -> Paid:
        begun.append(call)
        with contextlib.suppress(asyncio.CancelledError):  # it goes on all the same
            await asyncio.to_thread(may_end.wait)
        await asyncio.to_thread(may_end.wait)
        return Paid()

    def in_thread(call: Call, ask: Sum) -> Paid:
        assert threading.current_thread().daemon  # or the process could not end
        begun.append(call)
        may_end.wait()
        return Paid()

    service = doing(on_loop if where == "on the loop" else in_thread)
    try:
        for _ in range(2):
            with pytest.raises(TransientError):
                await service.call(request(), 0.05)
        with pytest.raises(NotAttemptedError, match="no capacity") as raised:
            await service.call(request(), 5)
        assert raised.value.reason is NotAttemptedReason.BUSY
        assert len(begun) == 2
    finally:
        may_end.set()
    await asyncio.wait(set(service._running), timeout=5)
    assert await service.call(request(), 5) == {"reference": None}


async def test_who_holds_the_loop_is_logged_by_name(caplog):
    """Each stretch of more than a second, and no wait however long."""
    now = [0.0]

    async def authorise(call: Call, ask: Sum) -> Paid:
        now[0] += 1.0  # just not too long
        waits = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(after_a_minute, waits)
        await waits
        now[0] += 2.5
        return Paid()

    def after_a_minute(waits):
        now[0] += 60
        waits.set_result(None)

    with caplog.at_level(logging.WARNING):
        await doing(authorise, monotonic=lambda: now[0]).call(request(), 5)
    (record,) = [logged for logged in caplog.records if logged.msg == "code.held_the_loop"]
    assert (record.agent, record.seconds) == ("bank", 2.5)
    assert record.function.endswith("authorise")


async def test_an_error_while_a_function_waits_reaches_it():
    """As it would without a watch."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(OSError("gone"))
        try:
            await failed
        except OSError as error:
            return Paid(reference=str(error))
        return Paid()

    assert await doing(authorise).call(request(), 5) == {"reference": "gone"}


@pytest.mark.proves("AGT-6")
async def test_a_request_that_its_model_does_not_allow_is_for_an_operator():
    """The function is not called; the reason has no value."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        raise AssertionError

    with pytest.raises(InvalidRequestError, match="amount") as raised:
        await doing(authorise).call(request(content={"amount": "ada"}), 5)
    assert "ada" not in str(raised.value)


@pytest.mark.proves("UND-2")
async def test_who_returns_something_else_than_declared_is_in_doubt():
    """It was done, perhaps; a second call would answer the same."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        return Sum(amount=1)

    with pytest.raises(InvalidResultError, match="does not match its declaration"):
        await doing(authorise).call(request(), 5)


@pytest.mark.parametrize("after", [None, seconds(0), seconds(-1)])
async def test_no_time_to_wait_is_a_failure_that_may_pass(after):
    """As an answer without `Retry-After`."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        raise Retryable(after)

    with pytest.raises(TransientError, match="try again"):
        await doing(authorise).call(request(), 5)


async def test_an_operation_without_a_function_goes_over_http():
    """Where the agent has an address; else an operator is told."""

    async def authorise(call: Call, ask: Sum) -> Paid:
        return Paid(reference="by code")

    service = doing(authorise, other=in_memory().services["payment"])
    assert await service.call(request(), 5) == {"reference": "by code"}
    assert await service.call(request(operation="void"), 5) == {"reference": "r-1"}
    with pytest.raises(InvalidRequestError, match="no operation void"):
        await replace(service, other=None).call(request(operation="void"), 5)


# In a business


def sums(bank):
    flow = Workflow("sum", Sum)

    @flow.step(bank.authorise, undo=bank.void)
    def pay(sum_: Sum) -> Sum:
        """Pay it."""
        return sum_

    return flow


def coded(*operations, **more):
    """A bank with functions for these."""
    bank = Bank("bank", **more)
    if "authorise" in operations:

        @bank.activity(Bank.authorise)
        async def authorise(call: Call, ask: Sum) -> Paid:
            return Paid(reference=f"{ask.amount} by {call.settings.get('BANK_KEY')}")

    if "void" in operations:

        @bank.activity(bank.void)
        def void(call: Call, ask: Sum) -> Nothing:
            return Nothing()

    return bank


BOTH = ("authorise", "void")


def read(monkeypatch, made, **values):
    for name, value in (app_settings(Ports(), "k", "k", made.agents) | values).items():
        monkeypatch.setenv(name, value)
    return Settings.read(made.agents)


async def test_an_agent_all_of_whose_operations_are_functions_needs_no_address(monkeypatch):
    """It has its queues, its calls and its settings all the same."""
    bank = coded(*BOTH, reads=("BANK_KEY",))
    made = application(sums(bank), agents=[bank], sample=Sum(amount=1))
    (declared,) = made.agents
    assert [
        (declared_setting.name, declared_setting.required, declared_setting.secret)
        for declared_setting in declared.settings
    ] == [("BANK_KEY", True, True)]
    assert declaration([declared])["settings"] == [
        {"name": "BANK_KEY", "kind": "value", "required": True, "secret": True}
    ]
    with pytest.raises(SettingsError) as raised:
        read(monkeypatch, made)
    (setting,) = declared.settings
    assert setting.meaning
    no_key = Fault(
        FaultCode.AGENT_SETTING_MISSING, "BANK_KEY", expected=setting.meaning, agent="bank"
    )
    assert raised.value.faults == [no_key]
    with pytest.raises(SettingsError) as raised:
        Settings.read([replace(declared, optional=True)])
    assert raised.value.faults == [no_key]
    settings = read(monkeypatch, made, BANK_KEY="a-key", CALLS_IN_FLIGHT='{"bank": 3}')
    parts = connect(settings)
    app = bootstrap(settings, made, parts)
    assert [agent.name for agent in app.engine.agents] == ["bank"]
    assert responses_queue("bank") in app.engine.bus_queues
    service = parts.services["bank"]
    assert await service.call(request(), 5) == {"reference": "7 by a-key"}
    assert service.at_once == 3
    assert "a-key" not in repr(service)
    await parts.close()


def test_an_agent_with_both_kinds_of_operations_needs_its_address(monkeypatch):
    """Its simulated service plays what is no function; what it reads is needed there too."""
    bank = coded("authorise", reads=("BANK_KEY",))
    made = application(sums(bank), agents=[bank], sample=Sum(amount=1))
    with pytest.raises(SettingsError) as raised:
        read(monkeypatch, made, BANK_URL="")
    assert {(fault.place, fault.code) for fault in raised.value.faults} == {
        ("BANK_URL", FaultCode.ADDRESS_MISSING),
        ("BANK_KEY", FaultCode.AGENT_SETTING_MISSING),
    }
    simulated = {"BANK_URL": "http://127.0.0.1:7071/simulator/bank"}
    settings = read(monkeypatch, made, **simulated, BANK_KEY="a-key")
    service = connect(settings).services["bank"]
    assert service.other.base_url == simulated["BANK_URL"]
    assert list(service.operations) == ["authorise"]


def test_no_sample_order_is_placed_where_a_function_would_run(monkeypatch):
    """Nobody plays it: it may do something real."""
    for operations in (("authorise",), ()):
        bank = coded(*operations)
        made = application(sums(bank), agents=[bank], sample=Sum(amount=1))
        order = sample_order(made, made.agents, ["bank"])
        assert (order is None) == bool(operations)


def of_another_service():
    bank = coded(*BOTH)

    @bank.activity(Other.lend)
    def lend(call: Call, ask: Sum) -> Nothing:
        return Nothing()

    return bank


class Other(Agent):
    """Another service."""

    lend = Operation(Sum)


def with_functions(*functions):
    bank = coded("void")
    for function in functions:
        bank.activity(Bank.authorise)(function)
    return bank


def takes_nothing() -> Paid:
    return Paid()


def takes_more(call: Call, ask: Sum, more: int) -> Paid:
    return Paid()


def takes_another(call: Call, ask: Paid) -> Paid:
    return ask


def takes_no_call(call: str, ask: Sum) -> Paid:
    return Paid()


def returns_another(call: Call, ask: Sum) -> Sum:
    return ask


def untyped(call, ask):
    return Paid()


def unreadable(call: Call, ask: "Somme") -> Paid:  # noqa: F821
    return Paid()


def generates(call: Call, ask: Sum) -> Paid:
    yield Paid()


class Callable:
    def __call__(self, call: Call, ask: Sum) -> Paid:
        return Paid()


CALLABLE = Callable()


def right(call: Call, ask: Sum) -> Paid:
    return Paid()


def of_authorise(code, **facts):
    return Fault(code, "test_activities.py:N: operation authorise", **facts)


def parameter_type(parameter, given, declared):
    return of_authorise(
        FaultCode.ACTIVITY_PARAMETER_TYPE, parameter=parameter, given=given, declared=declared
    )


FAULTY = {
    "takes nothing": (
        lambda: with_functions(takes_nothing),
        of_authorise(FaultCode.ACTIVITY_PARAMETERS, model="Sum"),
    ),
    "takes more": (
        lambda: with_functions(takes_more),
        of_authorise(FaultCode.ACTIVITY_PARAMETERS, model="Sum"),
    ),
    "takes another model": (
        lambda: with_functions(takes_another),
        parameter_type("ask", "Sum", "Paid"),
    ),
    "takes no call": (lambda: with_functions(takes_no_call), parameter_type("call", "Call", "str")),
    "returns another model": (
        lambda: with_functions(returns_another),
        of_authorise(FaultCode.RETURN_TYPE, expected="Paid", returned="Sum"),
    ),
    "a call without a type": (
        lambda: with_functions(untyped),
        parameter_type("call", "Call", None),
    ),
    "a model without a type": (lambda: with_functions(untyped), parameter_type("ask", "Sum", None)),
    "returns without a type": (
        lambda: with_functions(untyped),
        of_authorise(FaultCode.RETURN_TYPE, expected="Paid", returned=None),
    ),
    "an unknown type": (
        lambda: with_functions(unreadable),
        of_authorise(FaultCode.TYPES_UNREADABLE, message="name 'Somme' is not defined"),
    ),
    "a generator": (
        lambda: with_functions(generates),
        of_authorise(FaultCode.ACTIVITY_NOT_A_FUNCTION),
    ),
    "an object": (
        lambda: with_functions(CALLABLE),
        Fault(FaultCode.ACTIVITY_NOT_A_FUNCTION, f"{CALLABLE!r}: operation authorise"),
    ),
    "two functions": (
        lambda: with_functions(right, right),
        Fault(
            FaultCode.DUPLICATE_ACTIVITY, "test_activities.py:N: agent bank", operation="authorise"
        ),
    ),
    "an operation of another service": (
        of_another_service,
        Fault(
            FaultCode.ACTIVITY_UNKNOWN_OPERATION,
            "test_activities.py:N: agent bank",
            operation="lend",
        ),
    ),
    "auth without calls": (
        lambda: coded(*BOTH, auth=EntraToken("BANK_SCOPE")),
        Fault(FaultCode.AUTH_WITHOUT_CALLS, "agent bank"),
    ),
    "a setting with a space": (
        lambda: coded(*BOTH, reads=("BANK KEY",)),
        Fault(
            FaultCode.PATTERN_MISMATCH,
            "agent bank",
            field="setting",
            value="BANK KEY",
            pattern=SETTING.pattern,
        ),
    ),
}


@pytest.mark.parametrize("label", FAULTY)
def test_a_function_that_cannot_be_called_is_reported_at_the_start(label):
    """With its file and line."""
    make, fault = FAULTY[label]
    bank = make()
    with pytest.raises(DeclarationError) as raised:
        application(sums(bank), agents=[bank])
    assert fault in without_lines(raised.value.faults)


def test_an_operation_with_neither_function_nor_address_is_reported_at_the_start():
    """An agent without an address cannot call it."""
    bank = coded("authorise")
    made = application(sums(bank), agents=[bank])
    broken = replace(made, agents=[replace(made.agents[0], address="")])
    with pytest.raises(DeclarationError) as raised:
        broken.check(broken.agents)
    assert raised.value.faults == [
        Fault(FaultCode.OPERATION_NOT_REACHABLE, "agent bank", operation="void")
    ]


async def test_a_step_is_carried_out_by_a_function():
    """Through the agent, to the reply."""
    agency = Agency()
    bank = coded(*BOTH)
    agent = replace(agency.agent, remote=served(bank))
    await agent.handle(agency.request.model_copy(update={"content": {"amount": 7}}))
    ((_, reply),) = agency.replies()
    assert (reply.outcome, reply.result) == ("completed", {"reference": "7 by None"})
    assert json.loads(reply.to_json())["step"] == "payment"


TYPED = """
from engine.workflow import Agent, Call, Model, Operation


class Ask(Model):
    amount: int


class Answer(Model):
    reference: str


class Bank(Agent):
    pay = Operation(Ask, Answer)
    tell = Operation(Ask)


bank = Bank("bank")


@bank.activity(Bank.pay)
async def on_the_loop(call: Call, ask: Ask) -> Answer:
    return Answer(reference=call.key)


@bank.activity(bank.pay)
def in_a_thread(call: Call, ask: Ask) -> Answer:
    return Answer(reference=call.key)


async def both(call: Call) -> str:
    first = await on_the_loop(call, Ask(amount=1))
    return first.reference + in_a_thread(call, Ask(amount=1)).reference


@bank.activity(Bank.pay)  # wrong
async def another_answer(call: Call, ask: Ask) -> Ask:
    return ask


@bank.activity(Bank.pay)  # wrong
def another_request(call: Call, ask: Answer) -> Answer:
    return ask


@bank.activity(Bank.tell)  # wrong
def an_answer_of_which_nothing_is_kept(call: Call, ask: Ask) -> Answer:
    return Answer(reference=call.key)


@bank.activity(Bank.pay)  # wrong
def no_call(ask: Ask) -> Answer:
    return Answer(reference="")
"""


@pytest.mark.soak
def test_a_type_checker_finds_a_function_of_another_type(tmp_path):
    """In each of the wrong ones, and nowhere else; what is right keeps its type."""
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    ran = subprocess.run(
        [*command, str(tmp_path / "typed.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"typed\.py:(\d+): error", ran.stdout)
    lines = TYPED.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]
    assert [int(line) for line in found] == wrong, ran.stdout
