"""The vocabulary of orders, steps and actions, for the pages and the command line (OPR-2)."""

from core import actions, life
from core.actions import Words
from core.agenda import LISTS
from core.life import Mark
from entrypoints.models import View
from operators.views import situation_in


class Term(View):
    """The word for a state, and its mark."""

    word: str
    mark: Mark


class OrderTerm(Term):
    """The word for the situation of an order, and its mark."""

    is_over: bool
    """Whether the order is finished and needs no operator."""


class StepTerm(Term):
    """The word for the state of a step, and its mark."""

    may_be_tried_again: bool
    """Whether a step in this state that has failed before is being tried again."""


class ActionTerm(View):
    """An operator's action, and its texts."""

    name: str
    title: str
    button: str
    """The text on its button."""
    effect: str
    done: str
    danger: bool
    """Whether it cannot be reversed."""
    of_step: bool = False
    """Whether it concerns one of the failed steps."""
    lists: list[str]
    """The lists on which it works as a bulk action."""


class Vocabulary(View):
    """The vocabulary of orders."""

    etag = True
    orders: dict[str, OrderTerm]
    """By situation."""
    steps: dict[str, StepTerm]
    """By state."""
    actions: list[ActionTerm]
    lists: dict[str, Mark]
    """The lists of open orders, each with its mark."""


def vocabulary() -> Vocabulary:
    """Return the vocabulary of orders."""
    return Vocabulary(
        orders={name: OrderTerm.model_validate(each) for name, each in life.MEANINGS.items()},
        steps={name: StepTerm.model_validate(each) for name, each in life.STEPS.items()},
        actions=[*map(_term, actions.ACTIONS), *map(_term, actions.OTHERS)],
        lists={name: life.MEANINGS[situation_in(name)].mark for name in LISTS},
    )


def _term(words: Words) -> ActionTerm:
    kinds = words.lists if isinstance(words, actions.Action) else ()
    return ActionTerm(
        name=words.name,
        title=words.title,
        button=words.button,
        effect=words.effect,
        done=words.done,
        danger=words.danger,
        of_step=isinstance(words, actions.Action) and words.of_step,
        lists=[name for name, kind in LISTS.items() if kind in kinds],
    )
