"""The import contracts know every module that they are about."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FEATURES = ROOT / "engine/features"


def layers_of_the_engine():
    """The names in the layers, without the package in which they are."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = (
        contract["layers"]
        for contract in contracts["contracts"]
        if contract.get("containers") == ["engine"]
    )
    return {name for layer in layers for name in re.split(r" [|:] ", layer)}


def test_every_module_of_a_feature_has_a_layer():
    """Its verbs are below the decisions on an order, and its own decisions are above."""
    modules = {
        path.relative_to(FEATURES.parent).with_suffix("").as_posix().replace("/", ".")
        for path in FEATURES.rglob("[a-z]*.py")
    }
    assert modules == {name for name in layers_of_the_engine() if name.startswith("features.")}
