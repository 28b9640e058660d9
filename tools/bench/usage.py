"""What the processes take of the machine."""

from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from development.stack import AppStack
from functions_alone.process import Process


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """CPU seconds since their start; `machine` is that of everybody."""

    worker: float
    azurite: float
    broker: float
    driver: float
    machine: float

    @property
    def engine(self) -> float:
        """What stands for Azure; the Event Grid stand-in is a part of the driver."""
        return self.azurite + self.broker

    def since(self, earlier: "Usage", seconds: float) -> dict[str, float]:
        """Return how many cores each took on average: `cores` of the result."""
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
    """Return what hosts and their workers (worker), Azurite and broker (engine) and we (driver) have used until now."""
    machine = psutil.cpu_times()
    return Usage(
        worker=_cpu(process.pid for host in stack.hosts for process in _processes(host)),
        azurite=_cpu([stack.azurite.pid]),
        broker=_cpu([stack.broker.pid]),
        driver=_cpu([psutil.Process().pid]),
        machine=machine.user + machine.nice + machine.system + machine.irq + machine.softirq,
    )


def host_mb(stack: AppStack) -> float:
    """Return the memory of the largest host with its workers; a page that several share counts once (Linux)."""
    return round(max(map(_bytes, stack.hosts)) / 1_000_000, 1)


def _bytes(host: Process) -> int:
    return sum(process.memory_full_info().pss for process in _processes(host))


def _processes(host: Process) -> list[psutil.Process]:
    """Return a host, and what it started."""
    own = psutil.Process(host.pid)
    return [own, *own.children(recursive=True)]


def _cpu(pids: Iterable[int]) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(time.user + time.system for time in times)
