"""What the templates say of their parameters: types, defaults, and the variables that azd reads."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator, Mapping

from programs import ROOT

PARAMETER = re.compile(r"^param (\w+) (\w+)(?: = (.*))?$", re.MULTILINE)
VARIABLE = re.compile(r"\$\{(\w+)")


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


def _template() -> str:
    return (ROOT / "infra/main.bicep").read_text(encoding="utf-8")
