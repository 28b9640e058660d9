"""The app on the embedded stack, with its queues, tables and settings."""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from development.business import DEPLOYED, TRIED, app_of, named
from development.provision import provision
from development.servicebus_config import ROOT, config
from development.settings import app_settings
from engine.declarations.business import AgentDefinition
from engine.domain.messages import bus_queues
from functions_alone import stack as platform
from functions_alone.data_folder import Layout
from functions_alone.host.host_json import HOST_JSON
from functions_alone.ports import Ports

MODULES = os.pathsep.join((str(ROOT), str(ROOT / "tools")))
"""Where a host finds modules, after the app's own folder. An author's package comes before one of the tools."""
ALERTS = "operator-alerts"
"""The queue to which Event Grid delivers."""
LAYOUT = Layout(oldest=13, newest=13, remedy="empty the folder with `make clean`")
"""The layout of the data folder. Raise both numbers when rows or messages change, because no data is converted."""
ROWS = "13-1b5879b43ecff13b"
"""The fingerprint of the rows and messages of this layout, computed by `tests/repository/test_layout.py`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AppStackConfig:
    """The configuration of a stack by a person or a test. Everything else follows from it."""

    ports: Ports
    data: Path
    hosts: int = 1
    operator_key: str = "local-operator"
    functions: str = ""
    """Comma-separated names of the functions that the hosts run. Empty for all."""
    more_queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Service Bus queues besides those of infra/queues.json, by name, with the emulator's property names."""
    business: str = DEPLOYED
    """The name of the business that the hosts run."""
    app: Path | None = None
    """The folder of another `function_app.py` than that of the business."""
    agents: Sequence[AgentDefinition]
    """The agents of the business. Their queues are made, and the app simulates their services."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Values that replace the embedded defaults of the app's settings."""
    in_memory: bool = False
    """Whether Azurite forgets everything when it stops."""
    restart: bool = True
    """Whether a child process that dies is started again."""

    @classmethod
    def for_tests(cls, data: Path, **changes: object) -> "AppStackConfig":
        """Return a stack for tests, with free ports and without restarts of dead hosts."""
        usual = {"ports": Ports.free(), "data": data, "restart": False, "in_memory": True}
        tried = {"business": TRIED, "agents": named(TRIED).agents}
        return cls(**(usual | tried | changes))  # type: ignore[arg-type]

    def queues(self) -> Mapping[str, Any]:
        """Return the configuration of the broker: the queues of the app, the agents, and more."""
        names = bus_queues([agent.name for agent in self.agents], answers=True)
        return config({name: {} for name in names} | dict(self.more_queues))


class AppStack(platform.Stack):
    """A stack that runs the app."""

    def __init__(
        self,
        config: AppStackConfig,
        say: platform.Say = platform.say_nothing,
        show: platform.Say | None = None,
    ) -> None:
        self.operator_key, self.agents = config.operator_key, config.agents
        key = secrets.token_urlsafe(24)
        usual = app_settings(config.ports, config.operator_key, key, config.agents)
        usual["BUSINESS"] = config.business
        self._names, self._settings = list(usual), {**usual, **config.settings}
        super().__init__(_whole(config, self._settings), say, show)

    def app_environment(self) -> dict[str, str]:
        return {name: self._settings[name] for name in self._names}


def _whole(config: AppStackConfig, settings: Mapping[str, str]) -> platform.StackConfig:
    return platform.StackConfig(
        ports=config.ports,
        data=config.data,
        app=config.app or app_of(config.business),
        hosts=config.hosts,
        functions=config.functions,
        settings={**settings, "PYTHONPATH": MODULES, HOST_JSON: str(ROOT / "host.json")},
        queues=config.queues(),
        make=provision,
        topic=platform.Topic(key=settings["EVENT_GRID_KEY"], queue=ALERTS),
        channels=True,
        layout=LAYOUT,
        health="/api/health",
        in_memory=config.in_memory,
        restart=config.restart,
    )
