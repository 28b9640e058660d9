"""What the processes use of the machine."""

from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from development.stack import AppStack
from functions_alone.process import Process


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The CPU seconds since their start. `machine` includes all processes."""

    worker: float
    azurite: float
    broker: float
    driver: float
    machine: float

    @property
    def engine(self) -> float:
        """The stand-ins for Azure. The Event Grid stand-in is a part of the driver."""
        return self.azurite + self.broker

    def since(self, earlier: "Usage", seconds: float) -> dict[str, float]:
        """Return how many cores each used on average: `cores` of the result."""
        cores = {
            "worker": (self.worker - earlier.worker) / seconds,
            "engine": (self.engine - earlier.engine) / seconds,
            "driver": (self.driver - earlier.driver) / seconds,
        }
        machine = (self.machine - earlier.machine) / seconds
        return {
            name: round(value, 2)
            for name, value in (
                cores | {"others_on_machine": machine - sum(cores.values())}
            ).items()
        }


def usage(stack: AppStack) -> Usage:
    """Return the usage so far: hosts and workers (worker), Azurite and broker (engine), this process (driver)."""
    machine = psutil.cpu_times()
    return Usage(
        worker=_cpu(process.pid for host in stack.hosts for process in _processes(host)),
        azurite=_cpu([stack.azurite.pid]),
        broker=_cpu([stack.broker.pid]),
        driver=_cpu([psutil.Process().pid]),
        machine=machine.user + machine.nice + machine.system + machine.irq + machine.softirq,
    )


def host_mb(stack: AppStack) -> float:
    """Return the memory of the largest host with its workers. A shared page counts once (Linux)."""
    return round(max(map(_bytes, stack.hosts)) / 1_000_000, 1)


def _bytes(host: Process) -> int:
    return sum(process.memory_full_info().pss for process in _processes(host))


def _processes(host: Process) -> list[psutil.Process]:
    own = psutil.Process(host.pid)
    return [own, *own.children(recursive=True)]


def _cpu(pids: Iterable[int]) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(time.user + time.system for time in times)
