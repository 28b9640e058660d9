"""What an invariant says when it does not hold."""


class ViolationError(AssertionError):
    """Something that must never be."""


def demand(holds: object, what: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise ViolationError(what)
