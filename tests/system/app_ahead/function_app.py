"""The app with the workflows that are measured, on a machine whose clock is a second ahead."""

from datetime import datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from engine.azure import clock

AHEAD = timedelta(seconds=1)

true_time = clock.utc_now


def fast() -> datetime:
    """Return what such a machine holds for the time."""
    return true_time() + AHEAD


clock.utc_now = fast
spec = spec_from_file_location(
    "measured_function_app", Path(__file__).parents[3] / "tools/bench/app/function_app.py"
)
assert spec
assert spec.loader
measured = module_from_spec(spec)
spec.loader.exec_module(measured)
app = measured.app
