"""Which business a stack runs: that of this deployment, or the one that `BUSINESS` names."""

from importlib import import_module
from pathlib import Path

from core.business import Business
from local.ports import StackError

DEPLOYED = "shop.business:SHOP"
"""All that the embedded stack knows of the shop, but for the call with which `make run` greets."""


def named(name: str) -> tuple[Business, Path | None]:
    """Return a business, and the folder of its app if that is not the repository's; raises `StackError`.

    A business is named like `shop.business:SHOP`; its app is the `function_app.py` beside its module, if there is one.
    """
    module, _, attribute = name.partition(":")
    try:
        home = import_module(module)
        business = getattr(home, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise StackError(f"BUSINESS={name}: {error}; expected a name such as {DEPLOYED}") from error
    if not isinstance(business, Business):
        raise StackError(
            f"BUSINESS={name}: this is no business; expected a name such as {DEPLOYED}"
        )
    folder = Path(str(home.__file__)).parent
    return business, folder if (folder / "function_app.py").exists() else None


AGENTS = named(DEPLOYED)[0].agents
"""Those of this deployment."""
