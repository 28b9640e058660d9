"""The words of faults at the start of the app, for authors and for people who deploy it.

The text of a fault is `start-up.CODE` in the catalogue, with its facts as values. An import of this
module makes `StartUpError` use these words.
"""

from datetime import timedelta

from engine.declarations.faults import Fact, Fault, StartUpError
from engine.words.catalogue import text
from engine.words.errors import name_of


def text_of(fault: Fault) -> str:
    """Return the place, the words with the remedy, and the code for a search in docs."""
    facts = {name: _fact(value) for name, value in fault.facts.items()}
    words = text(f"start-up.{fault.code}", **facts)
    if fault.nearest:
        words = text("start-up.did-you-mean", words=words, name=fault.nearest)
    words = f"{words} [{fault.code}]"
    return f"{fault.place}: {words}" if fault.place else words


def _fact(value: Fact) -> str:
    if value is None:
        return text("start-up.undeclared")
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, timedelta) and value < timedelta():
        return f"-{-value}"  # Python shows -5 s as a day less
    return str(value)


def describe(error: StartUpError) -> str:
    """Return the error with a line for each fault."""
    heading = text(f"start-up.heading.{name_of(type(error))}", faults=len(error.faults))
    return "\n".join([heading, *(f"- {text_of(fault)}" for fault in error.faults)])


StartUpError.describe = describe
