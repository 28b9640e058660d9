"""Which business a stack runs: that of this deployment, or the one that `BUSINESS` names."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from development.faults import DevelopmentCode
from engine.declarations.business import Business
from local.faults import Fault
from local.ports import StackError

DEPLOYED = "shop.business:SHOP"
"""The business of this deployment; `python -m development.declared --deploy` chooses another."""
TRIED = "shop.business:SHOP"
"""The business on which tests and measurements run, whatever is deployed."""
ENTRY = "function_app.py"
NOT_OURS = {"node_modules", "tests", "docs", "infra"}


def named(name: str) -> tuple[Business, Path | None]:
    """Return a business, and the folder of its app if that is not the repository's; raises `StackError`.

    A business is named like `shop.business:SHOP`; its app is the `function_app.py` beside its `business.py`: one of
    another module has none, or that of another business would run. That of this deployment is the repository's.
    """
    module, _, attribute = name.partition(":")
    try:
        home = import_module(module)
        business = getattr(home, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise StackError(_unknown(name, str(error))) from error
    if not isinstance(business, Business):
        raise StackError(_unknown(name, f"{attribute} is a {type(business).__name__}"))
    folder = Path(str(home.__file__)).parent
    has_app = module.endswith(".business") and (folder / ENTRY).exists()
    return business, folder if name != DEPLOYED and has_app else None


def _unknown(name: str, reason: str) -> Fault:
    facts = {"value": name, "reason": reason, "example": DEPLOYED}
    return Fault(DevelopmentCode.BUSINESS_UNKNOWN, "BUSINESS", facts)


def to_run(name: str) -> tuple[Business, Path | None]:
    """Return a business and its app as `named` does; raises `StackError` if it has no app."""
    business, app = named(name)
    if app is None and name != DEPLOYED:
        raise StackError(Fault(DevelopmentCode.BUSINESS_WITHOUT_APP, name, {"entry": ENTRY}))
    return business, app


def packages(root: Path) -> Iterator[str]:
    """Yield the packages of all businesses: folders with a `business.py` and an entry beside it."""
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if name[0] != "." and name not in NOT_OURS)
        if {"__init__.py", "business.py", ENTRY} <= set(files):
            yield ".".join(Path(folder).relative_to(root).parts)
