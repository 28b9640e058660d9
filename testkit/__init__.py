"""The test kit for authors of a business; it is not deployed."""

from testkit.exploration.explorer import FoundError
from testkit.exploration.trial import Coverage, Seen
from testkit.trial import Trial, TrialOrder

__all__ = ["Coverage", "FoundError", "Seen", "Trial", "TrialOrder"]
