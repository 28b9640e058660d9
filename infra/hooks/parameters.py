"""The types, defaults and variables of the parameters, and the values of the options."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Mapping

from faults import Fault, HookError
from programs import ROOT

PARAMETER = re.compile(r"^param (\w+) (\w+)(?: = (.*))?$", re.MULTILINE)
VARIABLE = re.compile(r"\$\{(\w+)")
APP_OPTIONS = "infra/options/app.json"


def variables_of(kind: str) -> Iterator[str]:
    """Yield the variables of all parameters of a type of Bicep's, such as bool."""
    given: Mapping[str, Any] = json.loads(
        (ROOT / "infra/main.parameters.json").read_text(encoding="utf-8")
    )["parameters"]
    for name, its_kind, _ in PARAMETER.findall(_template()):
        if its_kind == kind and name in given:
            yield from VARIABLE.findall(str(given[name]["value"]))


def default_of(parameter: str) -> str:
    """Return the default of a parameter that is a text."""
    for name, _, value in PARAMETER.findall(_template()):
        if name == parameter:
            return str(value).strip("'")
    raise LookupError(parameter)


def app_option(name: str) -> Any:
    """Return the value of an option of the app; raise `HookError` if there is none."""
    try:
        return json.loads((ROOT / APP_OPTIONS).read_text(encoding="utf-8"))[name]
    except (OSError, ValueError, LookupError, TypeError) as error:
        facts = {"reason": error, "command": "git checkout " + APP_OPTIONS}
        raise HookError(Fault("file-unreadable", APP_OPTIONS, facts)) from error


def _template() -> str:
    return (ROOT / "infra/main.bicep").read_text(encoding="utf-8")
