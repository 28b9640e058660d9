"""The testing package for authors of applications; it is not deployed."""

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
