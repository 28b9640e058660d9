"""`GET /api/health` tells which dependency is away, and sees for itself that it is back."""

import pytest
from client import eventually


@pytest.mark.timeout(90)
@pytest.mark.proves("FLT-7", "FLT-8")
async def test_health_tells_what_is_away_until_it_is_back(own_stack):
    """503 that names the broker, then Azurite, while each is away; 200 afterwards."""
    stack, client = await own_stack(in_memory=False)

    async def reported(status, *away):
        async def is_so():
            seen, answer = await client.request("GET", "/api/health", key=False)
            return seen == status and {name for name, word in answer["dependencies"].items() if word == "away"} == {
                *away
            }

        await eventually(is_so, 30)

    await reported(200)
    await stack.stop_broker()
    await reported(503, "serviceBus")
    await stack.start_broker()
    await reported(200)
    await stack.stop_azurite()
    await reported(503, "stateStore", "submissionQueue")
    await stack.start_azurite()
    await reported(200)
