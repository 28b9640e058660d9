"""What a process remembers of an order is what it would load."""

from itertools import pairwise

import pytest

from engine.storage.orders import OrderStore
from samples.claims_with_approvals.business import GROWN, Approval, Euro, Photographs
from samples.claims_with_approvals.test_grown import COSTLY, ROOF
from testkit import WorkflowTestEnvironment

APPROVED = Approval(limit=Euro(amount="50000.00", currency="EUR"))


@pytest.fixture
def written(monkeypatch):
    """Every order as its write returned it, and as it was loaded then."""
    pairs, commit = [], OrderStore.commit

    async def compared(self, transition):
        order = await commit(self, transition)
        pairs.append((order, await self.load(order.order_id)))
        return order

    monkeypatch.setattr(OrderStore, "commit", compared)
    return pairs


@pytest.mark.parametrize("claim", [ROOF, COSTLY], ids=["paid", "approved"])
@pytest.mark.parametrize("service", [None, "assessor", "bank", "post"])
def test_what_was_written_is_what_is_loaded(written, claim, service):
    """To the last field: numbers, times, answers and pauses, also of steps that failed or were undone."""
    environment = WorkflowTestEnvironment(GROWN)
    if service:
        environment.down(service)
    order = environment.submit(claim)
    environment.advance(days=1)
    environment.answer(order, "photographs", Photographs(urls=["https://pictures.example/a.jpg"]))
    environment.advance(hours=2)
    if "Processing" in order.state and service is None and claim is COSTLY:
        environment.answer(order, "approval", APPROVED)
    environment.advance(days=3)
    assert len(written) > 2
    for remembered, loaded in written:
        assert remembered == loaded
    assert {later.version - sooner.version for (sooner, _), (later, _) in pairwise(written)} == {1}
