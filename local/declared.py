"""Whether what a business declares is everywhere where a deployment needs it: `python -m local.declared`.

It is asked of the business that is deployed, or of the one that `BUSINESS` names.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from core.business import Agent
from core.messages import requests_queue, responses_queue
from local.business import DEPLOYED, named
from local.servicebus_config import ROOT, queues

QUEUES, TEMPLATE, BICEP = (
    "infra/queues.json",
    "local.settings.template.json",
    "infra/modules/app.bicep",
)
PARAMETERS = "infra/main.parameters.json"
HOOKS = ("infra/hooks/preprovision.sh", "infra/hooks/preprovision.ps1")
"""What azd asks before it deploys."""
ADDRESS = re.compile(r"\b[A-Z]+(?:_[A-Z]+)*_URL\b")


def faults(agents: Sequence[Agent]) -> Iterator[str]:
    """Yield a line for each thing that is missing, or that belongs to no declared agent, with its file."""
    yield from _queue_faults(agents)
    texts = {place: (ROOT / place).read_text() for place in (TEMPLATE, BICEP, PARAMETERS, *HOOKS)}
    known = {agent.address for agent in agents}
    for place, text in texts.items():
        for name in sorted(set(ADDRESS.findall(text)) - known):
            yield f"{place}: {name} is the address of no agent that the business declares"
    for agent in agents:
        if agent.address:
            yield from _setting_faults(agent, texts)


def _queue_faults(agents: Sequence[Agent]) -> Iterator[str]:
    wanted = {
        queue
        for agent in agents
        for queue in (requests_queue(agent.name), responses_queue(agent.name))
    }
    there = {each["name"] for each in queues()["serviceBusQueues"]}
    of_agents = {
        name
        for name in there
        if name.endswith(("-requests", "-responses")) and name != "scheduler-requests"
    }
    yield from (
        f"{QUEUES}: there is no Service Bus queue {name}" for name in sorted(wanted - there)
    )
    for name in sorted(of_agents - wanted):
        yield f"{QUEUES}: {name} belongs to no agent that the business declares"


def _setting_faults(agent: Agent, texts: Mapping[str, str]) -> Iterator[str]:
    if agent.address not in json.loads(texts[TEMPLATE])["Values"] and not agent.optional:
        yield f"{TEMPLATE}: {agent.address}, the address of the agent {agent.name}, is missing"
    if not re.search(rf"^ *{agent.address}:", texts[BICEP], re.MULTILINE):
        yield f"{BICEP}: the setting {agent.address} of the agent {agent.name} is missing"
    if f"${{{agent.address}=}}" not in texts[PARAMETERS]:
        yield f"{PARAMETERS}: no parameter takes ${{{agent.address}=}}"
    for hook in HOOKS:
        if agent.address not in texts[hook] and not agent.optional:
            yield f"{hook}: nobody asks for {agent.address}, without which the app does not start"


if __name__ == "__main__":
    business, _ = named(os.environ.get("BUSINESS", DEPLOYED))
    sys.exit("\n".join(faults(business.agents)) or 0)
