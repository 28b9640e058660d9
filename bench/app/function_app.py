"""What the benchmark's hosts import instead of the production `function_app.py`: the same app, with spies inside.

The host finds this file by its working folder, and the one it stands for is loaded by its path, so neither the app nor
the host has to know of the benchmark.
"""

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from bench.spies import install

PRODUCTION = Path(__file__).parents[2] / "function_app.py"

install(Path(os.environ["BENCH_FOLDER"]))
spec = spec_from_file_location("production_function_app", PRODUCTION)
if spec is None or spec.loader is None:
    raise ImportError(f"cannot load {PRODUCTION}")
production = module_from_spec(spec)
spec.loader.exec_module(production)
app = production.app
