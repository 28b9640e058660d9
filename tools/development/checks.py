"""Checks types and import rules of the engine and of every business: `make types`.

The rules of the engine are in `pyproject.toml`. The rules of a business follow from the names of its modules.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from development.business import packages
from development.servicebus_config import ROOT

Contract = Mapping[str, Any]
HTTP_SIDE = {"rules", "service", "triggers"}
"""The modules of a business that serve HTTP. All others are declarations."""
OF_HTTP_SIDE = (
    "engine.http",
    "engine.pages",
    "engine.runtime",
    "engine.storage",
)
"""The packages that only the HTTP modules of a business may import."""
HIDDEN = (
    *("engine.azure", "engine.decisions", "engine.features"),
    *("functions_alone", "development", "bootstrap", "testkit"),
)
"""What a business must not import, besides the roles and other businesses.

From the engine, it may import the records of an order, because its HTTP modules show them.
"""


def types(business_packages: Sequence[str], root: Path = ROOT) -> Sequence[str]:
    """Return the command that checks the types of the engine and of these businesses."""
    config = _pyproject(root)["mypy"]
    names = [
        *(("-p", name) for name in config["packages"]),
        *(("-p", name) for name in business_packages),
    ]
    names += [("-m", name) for name in config["modules"]]
    return [sys.executable, "-m", "mypy", *(word for pair in names for word in pair)]


def imports(business_packages: Sequence[str], root: Path = ROOT) -> str:
    """Return the configuration of the import linter for the engine and these businesses."""
    config = _pyproject(root)["importlinter"]
    engine = config["root_packages"]
    contracts = [*config.pop("contracts"), *_contracts(business_packages, engine, root)]
    # The linter takes packages at the top alone.
    roots = {name.partition(".")[0] for name in (*engine, *business_packages)}
    config["root_packages"] = sorted(roots)
    sections = [_section("[tool.importlinter]", config)]
    sections += [_section("[[tool.importlinter.contracts]]", contract) for contract in contracts]
    return "\n".join(sections)


def _contracts(
    business_packages: Sequence[str], engine: Sequence[str], root: Path
) -> Iterator[Contract]:
    roles = _roles(root)
    yield _forbidden("The engine knows no business", engine, business_packages)
    for package in business_packages:
        modules = _modules(package, root)
        others = [name for name in business_packages if name != package]
        yield {
            **_forbidden(
                f"{package} knows neither roles, nor adapters, nor another business",
                [f"{package}.{name}" for name in modules],
                [*(role for role in roles if role not in OF_HTTP_SIDE), *HIDDEN, *others],
            ),
            "allow_indirect_imports": True,
        }
        yield _forbidden(
            f"Only the HTTP side of {package} knows {' and '.join(OF_HTTP_SIDE)}",
            [f"{package}.{name}" for name in modules if name not in HTTP_SIDE],
            OF_HTTP_SIDE,
        )
        yield from _of_entry(package, modules)


def _of_entry(package: str, modules: Sequence[str]) -> Iterator[Contract]:
    inner = [f"{package}.{name}" for name in modules if name in ("rules", "service")]
    if not inner:
        return
    yield _forbidden(
        f"Rules and service of {package} know nothing of Azure", inner, ["azure", "aiohttp"]
    )
    yield {
        "name": f"Rules of {package} are below its service, that is below its triggers",
        "type": "layers",
        "layers": ["(triggers)", "(service)", "(rules)"],
        "containers": [package],
    }


def _forbidden(name: str, source: Sequence[str], forbidden: Sequence[str]) -> Contract:
    return {
        "name": name,
        "type": "forbidden",
        "source_modules": list(source),
        "forbidden_modules": list(forbidden),
    }


def _roles(root: Path) -> Sequence[str]:
    """Return the packages that `pyproject.toml` keeps independent of each other."""
    contracts = _pyproject(root)["importlinter"]["contracts"]
    roles: list[str] = next(
        contract["modules"] for contract in contracts if contract["type"] == "independence"
    )
    return roles


def _modules(package: str, root: Path) -> Sequence[str]:
    """Return the names of the modules and packages in a package, without its tests."""
    folder = root / package.replace(".", "/")
    names = [path.stem for path in folder.glob("*.py")]
    found = [name for name in names if name != "__init__" and not name.startswith("test_")]
    found += [path.parent.name for path in folder.glob("*/__init__.py")]
    return sorted(found)


def _pyproject(root: Path) -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    return tools


def _section(head: str, values: Mapping[str, Any]) -> str:
    """Return a section of TOML, whose texts, lists and booleans are written as in JSON."""
    return "\n".join(
        [head, *(f"{name} = {json.dumps(value)}" for name, value in values.items()), ""]
    )


def main() -> int:
    """Run both checks. Return 1 if either finds something."""
    found = list(packages(ROOT))
    with TemporaryDirectory() as folder:
        config = Path(folder) / "imports.toml"
        config.write_text(imports(found))
        linter = str(Path(sys.executable).parent / "lint-imports")
        commands = {
            "types (up to two minutes)": types(found),
            "import rules": [linter, "--no-logo", "--config", str(config)],
        }
        return max(_run(what, command) for what, command in commands.items())


def _run(what: str, command: Sequence[str]) -> int:
    """Announce and run a check. Return 1 if it finds something."""
    print(f"[check] {what}", flush=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    ran = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603
    return int(ran.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
