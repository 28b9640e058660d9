"""Chooses the business of a stack: the deployed one, or the one that `BUSINESS` names."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import azure.functions as func

from development.faults import DevelopmentCode
from development.servicebus_config import ROOT
from engine.declarations.business import Application
from engine.declarations.faults import StartUpError
from functions_alone.faults import StackFault
from functions_alone.ports import StackError

DEPLOYED = "shop.business:SHOP"
"""The business of this deployment. `make declared ARGS="--deploy …"` chooses another one."""
TRIED = "shop.business:SHOP"
"""The business for tests and measurements, whatever is deployed."""
ENTRY = "function_app.py"
ANOTHER_APP = Path(__file__).parent / "app"
"""The folder of the app for any other business."""
PLAIN = "bootstrap.plain"
"""The module that replaces `triggers` in a business without its own routes and page."""
OF_BUSINESS = re.compile(
    r"^(?:from \S+ import (?:\w+ as BUSINESS|page, routes)\n){2}", re.MULTILINE
)
"""The lines of the entry that name its business."""
NOT_OURS = {"node_modules", "tests", "docs", "infra", "engine", "tools"}


def named(name: str) -> Application:
    """Return the business with a name such as `shop.business:SHOP`. Raises `StackError`."""
    module, _, attribute = name.partition(":")
    try:
        business = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise StackError(_unknown(name, str(error))) from error
    except StartUpError as error:
        facts = {"reason": str(error)}
        raise StackError(StackFault(DevelopmentCode.BUSINESS_REFUSED, name, facts)) from error
    if not isinstance(business, Application):
        raise StackError(_unknown(name, f"{attribute} is a {type(business).__name__}"))
    return business


def _unknown(name: str, reason: str) -> StackFault:
    facts = {"value": name, "reason": reason, "example": DEPLOYED}
    return StackFault(DevelopmentCode.BUSINESS_UNKNOWN, "BUSINESS", facts)


def app_of(name: str) -> Path:
    """Return the folder of the app for a business. For the deployed one it is the repository."""
    return ROOT if name == DEPLOYED else ANOTHER_APP


def entry_for(name: str, text: str) -> str:
    """Return the text of the entry with another business.

    Its routes and page come from the module `triggers` of its package, if there is one. Raises `StackError` for a
    text that names no business, because its own business would run.
    """
    module, _, attribute = name.partition(":")
    package = module.rpartition(".")[0]
    own = f"{package}.triggers" if _exists(f"{package}.triggers") else PLAIN
    lines = sorted(  # as ruff sorts imports
        [f"from {module} import {attribute} as BUSINESS\n", f"from {own} import page, routes\n"]
    )
    entry, count = OF_BUSINESS.subn("".join(lines), text)
    if count != 1:
        facts = {"lines": " ".join("".join(lines).splitlines())}
        raise StackError(StackFault(DevelopmentCode.ENTRY_WITHOUT_BUSINESS, ENTRY, facts))
    return entry


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its package
        return False


def load_app(name: str) -> func.FunctionApp:
    """Load the app of a business, as the repository's entry makes it. Raises `StackError`."""
    entry = ROOT / ENTRY
    module = ModuleType("function_app_of_another_business")
    exec(compile(entry_for(name, entry.read_text()), entry, "exec"), module.__dict__)  # noqa: S102
    app: func.FunctionApp = module.app
    return app


def packages(root: Path) -> Iterator[str]:
    """Yield the packages of all businesses, which are the folders with a `business.py`."""
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if name[0] != "." and name not in NOT_OURS)
        if {"__init__.py", "business.py"} <= set(files):
            yield ".".join(Path(folder).relative_to(root).parts)
