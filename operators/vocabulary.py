"""What the pages and the command line need to know of an order's language, in one answer that they keep (OPR-2)."""

from core import actions, life
from core.actions import Words
from core.agenda import LISTS
from core.life import Mark
from entrypoints.models import View


class Term(View):
    """What a state is called, and how it looks."""

    word: str
    mark: Mark


class OrderTerm(Term):
    """What the situation of an order is called, and how it looks."""

    is_over: bool
    """Whether nothing will happen to it any more."""


class StepTerm(Term):
    """What the state of a step is called, and how it looks."""

    may_be_tried_again: bool
    """Whether a step that has failed before is being tried again while it is so."""


class ActionTerm(View):
    """What an operator can do, and how that reads."""

    name: str
    title: str
    button: str
    """On the button by which it is done."""
    effect: str
    done: str
    danger: bool
    """Whether it takes something away that nobody can bring back."""
    of_step: bool = False
    """Whether it concerns one of the steps that failed."""
    lists: list[str]
    """The lists of which all orders can be meant at once."""


class Vocabulary(View):
    """The language of orders."""

    etag = True
    orders: dict[str, OrderTerm]
    """By situation."""
    steps: dict[str, StepTerm]
    """By state."""
    actions: list[ActionTerm]
    lists: list[str]
    """The lists of open orders."""


def vocabulary() -> Vocabulary:
    """Return the language of orders."""
    return Vocabulary(
        orders={name: OrderTerm.model_validate(each) for name, each in life.MEANINGS.items()},
        steps={name: StepTerm.model_validate(each) for name, each in life.STEPS.items()},
        actions=[*map(_term, actions.ACTIONS), *map(_term, actions.OTHERS)],
        lists=list(LISTS),
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
