"""The test kit for authors of a business; it is not deployed."""

from kit.trial import Trial, TrialOrder

__all__ = ["Trial", "TrialOrder"]
