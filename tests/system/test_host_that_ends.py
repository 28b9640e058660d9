"""A host that cannot go on ends, and the stack starts it again."""

import psutil
import pytest

from functions_alone.faults import LocalCode
from functions_alone.stack import HOST_IS_READY
from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, KILLED, QUICK
from tests.support.inspection import until_processed
from tests.support.stacks import running, workers_of
from tests.support.submitting import submit_new

PATIENT = QUICK | KILLED | {"FAILURE_THRESHOLD": "20"}


@pytest.mark.soak
async def test_orders_go_on_in_a_host_that_was_started_again(tmp_path):
    """All functions are there again, timers too: the locks of the host that has ended run out."""
    async with running(tmp_path, restart=True, settings=PATIENT) as (stack, client):
        [host] = stack.hosts
        orders = await submit_new(stack, 5)
        ended = host.pid
        fork_server = psutil.Process(workers_of(host)[0]).parent()
        for process in (fork_server, *fork_server.children()):
            process.kill()

        async def is_started_again():
            return host.pid != ended and HOST_IS_READY in host.output()

        await eventually(is_started_again)
        assert [
            line
            for line in host.log.read_text().splitlines()
            if f"[{LocalCode.COMPONENT_ENDED}]" in line and "SIGKILL" in line
        ]
        await stack.wait_healthy()
        orders.append(await client.place())
        await until_processed(client, orders)
        assert [await client.actions(order_id) for order_id in orders] == [DONE] * len(orders)

        async def sweeps():
            _, overview = await client.request("GET", "/api/operator/overview")
            return int(overview["lastSweep"]["instance"].rsplit("-", 2)[1]) in workers_of(host)

        await eventually(sweeps)
