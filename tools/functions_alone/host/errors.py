"""Errors of the host itself, as opposed to errors of the app."""

from dataclasses import replace
from typing import Self

from functions_alone.faults import FaultsError


class HostError(FaultsError):
    """The host cannot start, or cannot go on."""

    def within(self, place: str) -> Self:
        """Return the same faults with a more precise place."""
        located = (replace(fault, place=f"{place}, {fault.place}") for fault in self.faults)
        return type(self)(*located)


class InvocationFailed(Exception):  # noqa: N818 - named like the event in Azure's own logs
    """The function raised or ran out of time, or its process ended. The failure is in the log already."""


class LinkLostError(Exception):
    """The connection to the broker is gone."""
