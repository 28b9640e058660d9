"""The errors of decisions, each of which says why by a cause."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.domain.causes import Cause
from engine.domain.errors import AppError, RefusedError
from engine.words.causes import words_of


class CausedError(AppError):
    """Nothing is decided; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.code)
        self.cause = cause


class ActionRefusedError(CausedError):
    """The action makes no sense for the step."""


@contextmanager
def refused_in_words() -> Iterator[None]:
    """Raise the error of a decision as a `RefusedError`, which has its cause in words."""
    try:
        yield
    except CausedError as refused:
        raise RefusedError(words_of(refused.cause)) from None
