"""Azure finds each function that answers HTTP calls."""

import json
import re
from importlib import import_module
from itertools import combinations, zip_longest

import pytest

from development.business import packages
from development.servicebus_config import ROOT
from development.settings import app_settings
from engine.declarations.business import Application
from functions_alone.host.routes import compile_route, order_of_name
from functions_alone.ports import Ports
from tests.support.deploying import everything, index

FACTS = json.loads((ROOT / "tests/data/azure_host/http.json").read_text())
HOME = "{home:maxlength(0)?}"
"""The route of the page at the root: a parameter that may only be empty, since an empty route is not taken."""


def routes_of(triggers):
    """The HTTP functions by name, in the order in which Azure tries them, each with methods and template."""
    return {
        name: (set(trigger["methods"]), trigger["route"])
        for name, trigger in sorted(triggers.items(), key=lambda named: order_of_name(named[0]))
        if trigger["type"] == "httpTrigger"
    }


def general(template):
    """A path that the route takes, with a word of its own for each parameter."""
    return "/" + re.sub(r"\{\*?\w+\}", "any", template.replace(HOME, ""))


def common(*templates):
    """A path that both routes take, or None: where one has a word and the other a parameter, the word."""
    pairs = zip_longest(
        *(template.replace(HOME, "").split("/") for template in templates), fillvalue="{}"
    )
    parts = [next((part for part in pair if "{" not in part), "any") for pair in pairs]
    path = "/" + "/".join(parts)
    return path if all(takes(template, path) for template in templates) else None


def takes(template, path):
    return compile_route("", template).match(path) is not None


def hidden(triggers):
    """The pairs of routes of which the first takes calls that are the other's."""
    return [
        (first, other)
        for (first, (methods, before)), (other, (others, after)) in combinations(
            routes_of(triggers).items(), 2
        )
        if methods & others
        and common(before, after)
        and (takes(before, general(after)) or not takes(after, general(before)))
    ]


@pytest.mark.parametrize("package", [*packages(ROOT)])
def test_no_route_hides_another_ones(package):
    """Azure takes the first route that fits, in the order of the functions' names, not the most specific (host.md 1).

    Two routes may take the same call only if the first takes nothing that is not the other's too. Every business,
    with every agent and its simulated services.
    """
    home = import_module(f"{package}.business")
    name, business = next(
        (name, found) for name, found in vars(home).items() if isinstance(found, Application)
    )
    settings = app_settings(Ports(), "key", "key", business.agents)
    named = f"{home.__name__}:{name}"
    triggers = index(settings | everything(Ports(), business.agents), named)
    assert {"simulator_faults", "simulator_service_call"} <= set(triggers)
    assert hidden(triggers) == []


@pytest.mark.parametrize(
    ("templates", "found"),
    [
        (("s/{x}/{*y}", "s/{x}/faults"), True),
        (("s/{x}/faults", "s/{x}/{*y}"), False),
        (("o/{x}/new", "o/all/{y}"), True),
        (("o/{x}", "o/{y}"), True),
        (("o/{x}", "p/{y}"), False),
        (("o/{x}", "o/{y}/z"), False),
    ],
)
def test_a_route_that_hides_another_is_found(templates, found):
    """Also where neither of two routes is the more general one."""
    triggers = {
        name: {"type": "httpTrigger", "methods": ["GET"], "route": template}
        for name, template in zip("ab", templates, strict=True)
    }
    assert (hidden(triggers) != []) is found


@pytest.mark.parametrize("names", FACTS["names in order"], ids=str)
def test_names_are_sorted_as_azure_sorts_them(names):
    """By upper case, so that an underscore comes behind digits and letters (`FunctionMetadataManager.cs`, 4.1037)."""
    first, other = map(order_of_name, names)
    assert first < other
