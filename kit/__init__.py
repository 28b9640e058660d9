"""The test kit for authors of a business; it is not deployed."""

from kit.exploration.explorer import FoundError
from kit.exploration.trial import Coverage, Seen
from kit.trial import Trial, TrialOrder

__all__ = ["Coverage", "FoundError", "Seen", "Trial", "TrialOrder"]
