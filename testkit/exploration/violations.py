"""The error for a broken law."""


class ViolationError(AssertionError):
    """A law does not hold."""


def demand(holds: object, what: str) -> None:
    """Raise `ViolationError` unless the condition holds."""
    if not holds:
        raise ViolationError(what)
