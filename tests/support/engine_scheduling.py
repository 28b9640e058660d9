"""A scheduler on the records of `engine.domain`: an app with two agents of one bank, another bank, and a carrier."""

from datetime import timedelta

from bench.workflows import MEASURED
from engine.decisions.proceed import Scheduler
from engine.declarations.business import AgentDefinition
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from tests.support.engine_records import HOUR

TOLERANCE = timedelta(seconds=1)
CAPACITY = {"bank": ("bank", "bank-2", "other-bank"), "carrier": ("carrier",)}
PROVIDERS = {"bank": "psp", "bank-2": "psp", "other-bank": "other", "carrier": "carrier"}


def nothing(_order, _results):
    return {}


def definition(name="pay", **changes):
    """A step at the bank that has an undo."""
    own = {
        "capability": "bank",
        "operation": "charge",
        "compensation": "refund",
        "request": nothing,
    }
    return StepDefinition(name=name, **own | changes)


def agent(name, capability="bank", **declared):
    return AgentDefinition(name=name, offers=capability, address=name, **declared)


def scheduler(*definitions, **changes):
    """The scheduler of an app whose one workflow has these steps."""
    agents = [agent(name, "carrier" if name == "carrier" else "bank") for name in PROVIDERS]
    workflow = WorkflowDefinition(name="claim", version=1, steps=definitions or (definition(),))
    own = {
        "instance": "scheduler-1",
        "workflows": Workflows(workflow),
        "payload": MEASURED.payload,
        "providers": PROVIDERS,
        "agents": {offering.name: offering for offering in agents},
        "clock_tolerance": TOLERANCE,
        "version_overlap": HOUR,
        "max_silence": HOUR,
    }
    return Scheduler(**own | changes)


def only_step(next_version):
    """The one step of the order after a transition."""
    (found,) = next_version.after.steps
    return found


def kinds(next_version):
    """The classes of the events of a transition."""
    return [type(event) for event in next_version.events]
