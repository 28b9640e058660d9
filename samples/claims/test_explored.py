"""Explores a claim: tests every course of events, with faults."""

import pytest

from samples.claims.business import CLAIMS
from testkit import Seen, WorkflowTestEnvironment


def nothing_is_paid_unapproved(claim: Seen) -> None:
    """Check what must hold for a claim in every state."""
    assert "pay" not in claim.standing or {"fraud", "approve"} <= claim.standing
    assert claim.outcome != "undone" or "assess" not in claim.standing


def test_nothing_is_paid_unapproved_whenever_an_operator_cancels() -> None:
    """The cancellation may come at any moment while nothing else goes wrong."""
    coverage = WorkflowTestEnvironment(CLAIMS).explore(
        faults=0, acts=["cancel"], invariant=nothing_is_paid_unapproved
    )
    assert coverage.whole
    assert coverage.ends["undone"] > 0


@pytest.mark.soak
def test_nothing_is_paid_unapproved_whatever_goes_wrong() -> None:
    """One crash, loss, duplicate or failure may occur at any point of each course of events."""
    coverage = WorkflowTestEnvironment(CLAIMS).explore(
        faults=1, invariant=nothing_is_paid_unapproved
    )
    assert coverage.whole
    assert coverage.ends["undone"] > 0


@pytest.mark.soak
def test_nothing_is_paid_unapproved_by_two_processes_of_every_kind() -> None:
    """Explore also the races between two schedulers, two supervisors and two of each agent."""
    coverage = WorkflowTestEnvironment(CLAIMS).explore(
        faults=1, instances=2, invariant=nothing_is_paid_unapproved, seconds=600
    )
    assert coverage.whole
