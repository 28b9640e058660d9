"""The variables of the parameters with their defaults, and the values of the options."""

from __future__ import annotations

import json
import re
from typing import Any, Dict

from faults import HookError, HookFault
from programs import ROOT

VARIABLE = re.compile(r"\$\{(\w+)=?([^}]*)\}")
PARAMETERS = "infra/main.parameters.json"
APP_OPTIONS = "infra/options/app.json"


def variables() -> Dict[str, str]:
    """Return the default of each variable that azd passes to the template."""
    return dict(VARIABLE.findall((ROOT / PARAMETERS).read_text(encoding="utf-8")))


def app_option(name: str) -> Any:
    """Return the value of an option of the app. Raises `HookError` if there is none."""
    try:
        return json.loads((ROOT / APP_OPTIONS).read_text(encoding="utf-8"))[name]
    except (OSError, ValueError, LookupError, TypeError) as error:
        facts = {"reason": error, "command": "git checkout " + APP_OPTIONS}
        raise HookError(HookFault("file-unreadable", APP_OPTIONS, facts)) from error
