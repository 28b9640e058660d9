"""The conditions of a compiled template, on which its resources and values depend."""

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
MODULE = "Microsoft.Resources/deployments"
WORD = re.compile(r"'(?:[^']|'')*'|[A-Za-z_][\w.]*|.", re.DOTALL)
"""A text, a name or a sign of an expression."""
OF_AN_ITEM = re.compile(r"\b(?:copyIndex|lambdaVariables)\(")


def conditions(template: Json) -> Iterator[tuple[str, Json, str]]:
    """Yield each condition of a compiled template: its name, its template or module, and the expression.

    These are the conditions of resources and of each `if` in an expression, except those of single items of a loop.
    """
    for place, inner in _modules(template, "main"):
        seen = set()
        for expression in _conditions_in(inner, top=True):
            if expression not in seen and not OF_AN_ITEM.search(expression):
                yield f"{place}: {expression}", inner, expression
            seen.add(expression)


def resources_of(template: Json) -> list[tuple[str, Json]]:
    """Return the resources of a compiled template or module by name.

    The name is empty if the compiler leaves it out.
    """
    found = template["resources"]
    return (
        list(found.items()) if isinstance(found, dict) else [("", resource) for resource in found]
    )


def _modules(template: Json, place: str) -> Iterator[tuple[str, Json]]:
    yield place, template
    for _, resource in resources_of(template):
        if resource["type"] == MODULE:
            yield from _modules(resource["properties"]["template"], resource["name"])


def _conditions_in(value: Any, *, top: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(condition := value.get("condition"), str):
            yield condition[1:-1]
        for name, inner in value.items():
            # A module has conditions of its own.
            if top or name != "template":
                yield from _conditions_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _conditions_in(inner)
    elif isinstance(value, str) and re.match(r"\[(?!\[)", value):
        yield from _ifs(value[1:-1])


def _ifs(expression: str) -> Iterator[str]:
    """Yield the first argument of each call of `if`."""
    words = WORD.findall(expression)
    for place, word in enumerate(words):
        if word == "if" and words[place + 1 : place + 2] == ["("]:
            depth, argument = 0, ""
            for part in words[place + 2 :]:
                depth += (part in "([{") - (part in ")]}")
                if part == "," and not depth:
                    break
                argument += part
            yield argument
