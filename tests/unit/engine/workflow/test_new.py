"""A new business is made by one command, and runs at once."""

import json
from importlib import import_module
from itertools import count

import pytest
from click.testing import CliRunner

from development.settings import app_settings
from engine.azure.clock import utc_now
from engine.azure.settings import Settings
from engine.declarations.business import Application
from engine.declarations.faults import Fault, FaultCode
from engine.domain.messages import AgentRequest, OrderReady, decode, decode_reply
from engine.domain.statuses import ProcessState
from engine.workflow import __main__, new
from engine.workflow.new import NewBusinessError, create
from functions_alone.ports import Ports
from testkit.memory import in_memory
from tests.support.apps import bootstrap
from tests.support.submitting import new_order_id

NAMES = (f"lease-{number}" for number in count())
"""One for each test: what is imported once stays."""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder in which a business can be made, and from which it is imported."""
    (tmp_path / "tests/unit").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def loaded(names) -> Application:
    return getattr(import_module(f"{names.package}.business"), names.constant)


def test_nothing_of_the_example_is_left_in_it(root):
    """It is called by its own name everywhere, and has all that a business needs."""
    names = create("car-rental", root)
    assert names.business == "car_rental.business:CAR_RENTAL"
    files = ["__init__.py", "business.py"]
    assert sorted(path.name for path in (root / "car_rental").iterdir()) == files
    for path in (*root.glob("car_rental/*.py"), root / names.test):
        assert "START" not in path.read_text()
        assert "samples" not in path.read_text()


def test_it_is_a_business_with_one_workflow_of_its_name(root):
    """With a sample, and faultless."""
    names = create(next(NAMES), root)
    business = loaded(names)
    business.check(business.agents)
    assert [workflow.name for workflow in business.workflows.all] == [names.workflow]
    business.payload.check(json.loads(new.sample()))


async def test_an_order_runs_through_it(root, monkeypatch):
    """Placed on the queue, carried out by its agents, done: in memory."""
    business = loaded(create(next(NAMES), root))
    for name, value in app_settings(Ports(), "key", "key", business.agents).items():
        monkeypatch.setenv(name, value)
    parts = in_memory()
    app = bootstrap(Settings.read(business.agents), business, parts)
    order_id = new_order_id()
    placed = {"schemaVersion": 1, "orderId": order_id, "placedAt": utc_now().isoformat()}
    await app.engine.submission.record(json.dumps(json.loads(new.sample()) | placed).encode())
    await deliver(app, parts, business)
    order = await app.engine.store.load(order_id)
    assert order.process_state is ProcessState.PROCESSED
    assert {name: len(service.calls) for name, service in parts.services.items()} == {
        agent.name: 1 for agent in business.agents
    }


async def deliver(app, parts, business):
    """Hand each message to whom it is for, until there is none."""
    agents = {
        f"{own_agent.name}-requests": app.engine.agent(own_agent) for own_agent in business.agents
    }
    while parts.bus.sent:
        message = parts.bus.sent.pop(0)
        if message.queue in agents:
            await agents[message.queue].handle(decode(AgentRequest, message.body))
        elif message.queue.endswith("-responses"):
            agent = message.queue.removesuffix("-responses")
            await app.engine.scheduler.receive(decode_reply(message.body), agent)
        else:
            await app.engine.scheduler.on_order_ready(decode(OrderReady, message.body))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *(
            (name, Fault(FaultCode.BUSINESS_NAME_INVALID, repr(name), limit=30))
            for name in ("", "Car", "car--rental", "../car", "x" * 31)
        ),
        ("class", Fault(FaultCode.PYTHON_KEYWORD, "class")),
        ("json", Fault(FaultCode.MODULE_EXISTS, "json")),
        ("taken", Fault(FaultCode.FILE_EXISTS, "taken")),
        ("tested", Fault(FaultCode.FILE_EXISTS, "tests/unit/test_tested.py")),
    ],
)
def test_a_name_that_cannot_be_is_refused(root, name, fault):
    """Nothing is written."""
    (root / "taken").mkdir()
    (root / "tests/unit/test_tested.py").touch()
    before = sorted(root.rglob("*"))
    with pytest.raises(NewBusinessError) as raised:
        create(name, root)
    assert raised.value.faults == [fault]
    assert sorted(root.rglob("*")) == before


def test_the_command_says_what_comes_next(root, monkeypatch):
    """Each with the name of the new business; a fault is said without a traceback."""
    monkeypatch.setattr(__main__, "create", lambda name: create(name, root))
    command = CliRunner().invoke
    ran = command(__main__.main, ["new", "bike-rental"])
    assert ran.exit_code == 0, ran.output
    for line in (
        "BUSINESS=bike_rental.business:BIKE_RENTAL make run",
        f"make submit ORDER='{new.sample()}'",
        "make test ARGS=tests/unit/test_bike_rental.py",
        'make declared ARGS="--deploy bike_rental.business:BIKE_RENTAL"',
    ):
        assert line in ran.output
    again = command(__main__.main, ["new", "bike-rental"])
    assert again.exit_code == 2
    assert f"[{FaultCode.FILE_EXISTS}]" in again.stderr
