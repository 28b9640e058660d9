"""The production app with the workflows that are measured."""

import runpy
from pathlib import Path

import shop.business
from bench.workflows import MEASURED

shop.business.SHOP = MEASURED
app = runpy.run_path(str(Path(__file__).parents[2] / "function_app.py"))["app"]
