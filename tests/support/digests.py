"""Digests as channels are given them."""

from dataclasses import replace

from engine.alerts.digests import Digest, DigestEntry, DigestStatus
from tests.support.builders import NOW

DIGEST_ID = "7f8f2c0e-31d5-5f0a-9f36-3d0d3c0b8a11"
FAILED = DigestEntry(
    status=DigestStatus.NEW,
    needs_action=True,
    title="An order failed",
    about="order b03-1",
    reason="the card was declined",
    advice="Resubmit or cancel it",
    count=1,
    at=NOW,
    link="https://orders.example.com/?order=b03-1&view=all",
    runbook="https://docs.example.com/operate#order-failed",
)
STALLED = DigestEntry(
    status=DigestStatus.CHANGED,
    needs_action=True,
    title="Orders wait",
    about="agent payment",
    reason="nobody takes the requests to payment",
    advice="Restart the agent",
    count=600,
    at=NOW,
)
RESOLVED = replace(
    STALLED, status=DigestStatus.RESOLVED, about="agent shipping", advice="", count=2
)


def digest(*entries: DigestEntry, **more) -> Digest:
    """A digest of these entries."""
    usual = {"id": DIGEST_ID, "at": NOW, "link": "https://orders.example.com/"}
    return Digest(entries=entries or (FAILED, STALLED, RESOLVED), **usual | more)


HOSTILE = (
    "<!channel> <@U1> <https://evil.example|x> & [x](https://evil.example) <at>all</at> "
    "<script>alert(1)</script> **b** \"q\" 'q'"
)
"""What is a mention, a link or a script where it is not escaped."""
