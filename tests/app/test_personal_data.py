"""A mark of personal data holds wherever the value comes from: a payload, a service's answer, an event."""

import json
from datetime import date, timedelta
from typing import Annotated

import pytest
from pydantic import Field

from engine.workflow import (
    Agent,
    Model,
    Name,
    Operation,
    Owner,
    Personal,
    Text,
    Workflow,
    application,
)
from operations.api.requests import FindRequest, OperatorRequest
from testkit import WorkflowTestEnvironment

REQUEST = {"operator": "grace", "note": "request 4711"}
IBAN, BORN, STREET = "DE02-1203-0000-0000-2020-51", date(1815, 12, 10), "O'Connell Street"
ACCOUNT = {"iban": IBAN, "born": BORN.isoformat(), "street": STREET, "email": "ada@example.com"}
PEOPLE = (IBAN, BORN.isoformat(), "1815, 12, 10", STREET, "Connell", "Ada Lovelace")


class Content(Model):
    """A payload."""

    customer: Personal[Name]


class Ask(Model):
    """A request."""

    text: str = ""


class Account(Model):
    """An answer about a person."""

    iban: Annotated[Personal[Text], Field(examples=[IBAN])]
    born: Annotated[Personal[date], Field(examples=[BORN])]
    street: Annotated[Personal[Text], Field(examples=[STREET])]
    email: Annotated[Owner[Text], Field(examples=["ada@example.com"])]
    bank: Annotated[Text, Field(examples=["a bank"])] = "a bank"


class Bank(Agent):
    """A service."""

    pay = Operation(Ask)


class Registry(Agent):
    """A service that knows people."""

    look = Operation(Ask, Account)


def paying(make, *, by_service=False):
    """A test environment in which a step uses an answer about a person."""
    people = Workflow("people", Content)
    registry, bank = Registry("registry"), Bank("bank")
    asks = (
        people.step(registry.look)
        if by_service
        else people.wait_for(Account, within=timedelta(days=1))
    )

    @asks
    def account(content: Content) -> Ask:
        return Ask(text="whose?")

    @people.step(bank.pay)
    def pay(content: Content, account: Account) -> Ask:
        return make(account)

    sample = Content(customer="Ada Lovelace")
    return WorkflowTestEnvironment(
        application(people, agents=[registry, bank], sample=sample), buckets=1, failure_threshold=1
    )


def answered(env, answer=ACCOUNT):
    order = env.submit(Content(customer="Ada Lovelace"))
    env.answer(order, "account", answer)
    env.advance(minutes=5)
    return order


def all_of(env, order):
    """Everything that operators see of the order, and what was sent to them."""
    view = env.inspect(order.id).model_dump_json()
    alerts = [alert.data for alert in env.alerts()]
    return " ".join([view, *order.history, json.dumps(alerts), str(order.reason)])


BROKEN = {
    "its text": lambda account: {}[account.iban],
    "a text that is escaped": lambda account: {}[f'{account.street} "'],
    "a date": lambda account: {}[account.born],
    "several": lambda account: {}[account.iban, account.born],
}


@pytest.mark.proves("ANS-5")
@pytest.mark.parametrize("how", BROKEN)
def test_an_error_of_a_workflow_repeats_no_personal_value_of_an_answer(how):
    """Not in the reason, the history, the page or an alert (engine 12)."""
    env = paying(BROKEN[how])
    order = answered(env)
    assert order.state == "Error"
    assert env.alerts()
    assert [person for person in PEOPLE if person in all_of(env, order)] == []


@pytest.mark.proves("ANS-5")
def test_an_error_still_names_the_code_that_it_is_about():
    """A key that is no personal value is what helps to find the fault (engine 12)."""
    env = paying(lambda _: {}["tariff"])
    assert "tariff" in answered(env).reason


@pytest.mark.proves("ANS-5")
def test_the_reason_of_a_service_repeats_no_personal_value_of_the_order():
    """Neither one of the payload nor one of an answer: it stands in history and alerts (engine 12)."""
    env = paying(lambda account: Ask(text=account.iban))
    env.refuse("bank", reason=f"account {IBAN} of Ada Lovelace is closed")
    order = answered(env)
    assert order.state == "Error"
    assert "is closed" in order.reason
    assert [person for person in PEOPLE if person in all_of(env, order)] == []


def of_a_service(env):
    order = env.submit(Content(customer="Ada Lovelace"))
    env.advance(minutes=1)
    return order


@pytest.mark.proves("ANS-5")
def test_personal_data_in_the_answer_of_a_service_is_hidden_and_erased():
    """As that of an external event (engine 16)."""
    env = paying(lambda account: Ask(text=account.bank), by_service=True)
    order = of_a_service(env)
    assert order.state == "Processed"
    kept = env._world.run(env._world.engine.store.load(order.id)).steps[0].result
    people = {name: value for name, value in kept.items() if name != "bank"}
    assert set(people) == {"iban", "born", "street", "email"}
    assert [value for value in people.values() if value in all_of(env, order)] == []
    retention = env._world.operations.services.retention
    env._world.run(retention.erase(order.id, OperatorRequest(**REQUEST)))
    erased = env._world.run(env._world.engine.store.load(order.id)).steps[0].result
    assert erased == dict.fromkeys(people, "erased") | {
        name: kept[name] for name in kept if name not in people
    }


@pytest.mark.proves("ANS-5")
@pytest.mark.parametrize("by_service", [False, True], ids=["an event", "a service"])
def test_an_owner_in_an_answer_finds_the_order(by_service):
    """Whoever answers; another person's address does not, and personal data alone does not (engine 16)."""
    env = paying(lambda account: Ask(text=account.bank), by_service=by_service)
    order = of_a_service(env) if by_service else answered(env)
    kept = env._world.run(env._world.engine.store.load(order.id)).steps[0].result

    def found(email):
        request = FindRequest(**REQUEST, email=email)
        return env._world.run(env._world.operations.services.retention.find(request)).orders

    assert found(kept["email"].upper()) == [order.id]
    assert found("nobody@example.com") == []
    assert found(kept["street"]) == []
