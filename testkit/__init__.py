"""The test tools for authors of applications. They are not deployed."""

from testkit.environment import OrderUnderTest, WorkflowTestEnvironment
from testkit.exploration.explorer import FoundError
from testkit.exploration.for_authors import Coverage, NothingEndedError, Seen

__all__ = [
    "Coverage",
    "FoundError",
    "NothingEndedError",
    "OrderUnderTest",
    "Seen",
    "WorkflowTestEnvironment",
]
