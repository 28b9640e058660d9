"""Azure finds each function that answers HTTP calls."""

import re

PARAMETER = re.compile(r"\{(\*?)\w+\}")
EMPTY = "{home:maxlength(0)?}"
"""The route of the page at the root: a parameter that may only be empty, since an empty route is not taken."""


def pattern(route):
    """What a route matches: a parameter takes one part of a path, the last one with an asterisk all of them."""
    names = PARAMETER.sub(lambda found: ".+" if found[1] else "[^/]+", route)
    return re.compile(names)


def test_no_route_hides_another_ones(functions):
    """Azure takes the first route that fits, in the order of the functions' names, not the most specific (host.md 1)."""
    routes = {
        name: {**trigger, "route": trigger["route"].replace(EMPTY, "")}
        for name, trigger in sorted(functions.items())
        if trigger["type"] == "httpTrigger"
    }
    assert "simulator_faults" in routes
    for name, trigger in routes.items():
        path = PARAMETER.sub("any", trigger["route"])
        for method in trigger["methods"]:
            found = next(
                other
                for other, candidate in routes.items()
                if method in candidate["methods"] and pattern(candidate["route"]).fullmatch(path)
            )
            assert found == name, (method, trigger["route"])
