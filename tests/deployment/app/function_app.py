"""The production app, with every call to Azure's services written down on its way out."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "support"))
from recording import install

install(Path(os.environ["CALLS_FOLDER"]))
spec = spec_from_file_location("production_function_app", Path(__file__).parents[3] / "function_app.py")
assert spec
assert spec.loader
production = module_from_spec(spec)
spec.loader.exec_module(production)
app = production.app
