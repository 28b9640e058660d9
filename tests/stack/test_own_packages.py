"""An app that the host runs imports its own packages, whatever lies in `tools/`."""

from pathlib import Path

import pytest

from development.stack import MODULES
from functions_alone.tests.support.host_process import HostProcess

APP = """
import azure.functions as func
from bench.greeting import FROM as bench
from development.greeting import FROM as development
from tools.greeting import FROM as tools

app = func.FunctionApp()

@app.route(route="greeting", auth_level=func.AuthLevel.ANONYMOUS)
def greeting(req: func.HttpRequest) -> str:
    return f"{bench} {development} {tools}"
"""


@pytest.mark.parametrize("names", [("bench", "development"), ("bench", "development", "tools")])
def test_an_app_imports_its_own_packages(tmp_path, names):
    """(bugs2 63) Also where a package below `tools`, or that folder, has the name; `tools` may be a folder too."""
    for name in ("bench", "development", "tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "greeting.py").write_text("FROM = __file__")
    for name in names:
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "function_app.py").write_text(APP)
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    host = HostProcess(tmp_path, {"PYTHONPATH": MODULES}, app=tmp_path)
    try:
        answer = host.ready().call("/api/greeting")
    finally:
        host.stop()
    assert [Path(place).parents[1] for place in answer.body.decode().split()] == [tmp_path] * 3
