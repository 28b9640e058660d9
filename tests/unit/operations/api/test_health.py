"""What the health check says of a dependency."""

import pytest

from engine.domain.errors import AccessDeniedError, QueueRefusedError, UnavailableError
from operations.api.health import HealthService


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (AccessDeniedError("the role is missing"), "refused"),
        (QueueRefusedError("no such queue"), "refused"),
        (UnavailableError("away"), "away"),
    ],
)
async def test_a_dependency_that_refuses_the_app_differs_from_one_that_is_away(error, word):
    """A missing right does not come back by itself; the log names it, and the answer does not."""

    async def check():
        raise error

    health = await HealthService(checks={"stateStore": check}).report()
    assert health.model_dump() == {"status": "unhealthy", "dependencies": {"stateStore": word}}
