"""The number of the data folder's layout changes with what is kept there."""

import json
import pkgutil
from hashlib import sha256
from importlib import import_module

from pydantic import TypeAdapter

import engine.storage
from development.stack import LAYOUT, ROWS
from engine.domain.history import TAGS
from engine.domain.messages import REPLIES, AgentRequest, OrderReady, Submission
from engine.storage.tables import RowMapper

MESSAGES = (Submission, OrderReady, AgentRequest, *REPLIES.values())
WORDS = {"description", "title"}
"""What a schema says for people."""


def adapters_of_rows():
    """Yield what reads each form of rows, or of the objects in a column, by module and name."""
    for found in pkgutil.iter_modules(engine.storage.__path__):
        module = import_module(f"engine.storage.{found.name}")
        for name, value in sorted(vars(module).items()):
            if isinstance(value, RowMapper | TypeAdapter):
                yield f"{found.name}.{name}", getattr(value, "_adapter", value)


def schemas():
    """Return the schemas of all rows, of the events in histories, and of all messages."""
    adapters = dict(adapters_of_rows())
    adapters |= {tag: TypeAdapter(kind) for kind, tag in TAGS.items()}
    adapters |= {kind.__name__: TypeAdapter(kind) for kind in MESSAGES}
    return {name: adapter.json_schema(by_alias=True) for name, adapter in adapters.items()}


def without_words(schema):
    if isinstance(schema, dict):
        kept = ((name, part) for name, part in schema.items() if not is_word(name, part))
        return {name: without_words(part) for name, part in kept}
    return [without_words(part) for part in schema] if isinstance(schema, list) else schema


def is_word(name, part):
    return name in WORDS and isinstance(part, str)


def fingerprint():
    text = json.dumps(without_words(schemas()), sort_keys=True)
    return f"{LAYOUT.newest}-{sha256(text.encode()).hexdigest()[:16]}"


def test_rows_change_with_the_number_of_the_layout_alone():
    """Otherwise a start on data of an older commit fails somewhere, and nobody names `make clean`.

    If this fails: raise both numbers of `LAYOUT` in `tools/development/stack.py`, then set `ROWS` to the fingerprint.
    """
    assert fingerprint() == ROWS
