"""The one command that checks a deployment from outside, on the running system."""

import pytest

from tests.support.interfaces import CommandLine


@pytest.mark.soak
async def test_a_deployment_that_works_passes_the_check(client):
    """All that it tries is named; what it broke for that is whole again."""
    code, out, err = await CommandLine(client).run("check")
    assert (code, err) == (0, "")
    done = [line.removeprefix("ok  ").partition(":")[0] for line in out.splitlines()]
    assert done == ["health", "order", "failure", "alert", "resubmit"]
    _, found = await client.request("GET", "/simulator/payment/faults")
    left = [fault for fault in found["faults"] if fault["mode"] != "none"]
    assert [fault for fault in left if fault["match"].get("orderId", "nobody's") in out] == []
