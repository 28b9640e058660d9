"""Where the parts of a stack run, and where they find the app."""

from pathlib import Path

from functions_alone.ports import Ports
from functions_alone.stack import Stack, StackConfig


def test_paths_lead_from_the_folder_in_which_the_stack_was_started(monkeypatch, tmp_path):
    """The parts run in the data folder, where a relative path would lead elsewhere."""
    monkeypatch.chdir(tmp_path)
    config = StackConfig(ports=Ports.free(), data=Path("data"), app=Path("app"), queues={})
    stack = Stack(config)
    assert (stack.config.app, stack.config.data) == (tmp_path / "app", tmp_path / "data")
