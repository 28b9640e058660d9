"""The file in which the runner lists its hosts.

Each host can tell of all of them, also of one that was killed.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from functions_alone.process import Process


class HostsFile:
    """The file. Write it again whenever a host has started or ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ended: dict[str, tuple[int, str]] = {}
        """For each name of a host, the process that ended last, and when."""

    def write(self, hosts: Iterable[Process]) -> None:
        """Write these hosts. If the file cannot be written, the hosts do not learn of the change."""
        states = [self._state_of(host) for host in hosts if host.pid]
        draft = self.path.with_suffix(".new")
        with suppress(OSError):
            draft.write_text(json.dumps(states))
            draft.replace(self.path)

    def _state_of(self, host: Process) -> Mapping[str, Any]:
        pid, ended_at = self._ended.get(host.name, (0, None))
        if not host.alive and pid != host.pid:
            ended_at = datetime.now(UTC).isoformat()
            self._ended[host.name] = host.pid, ended_at
        return {"name": host.name, "pid": host.pid, "runs": host.alive, "endedAt": ended_at}
