"""The app's timers on a host that fires again at once after a run that took too long."""

from itertools import pairwise
from pathlib import Path

from functions_alone.tests.support.host_process import HostProcess
from functions_alone.tests.support.waiting import until

APP = Path(__file__).parent / "turns"


def test_a_function_that_keeps_to_its_turns_does_not_run_back_to_back(services, tmp_path):
    """It comes at once after a run that took too long, gives that up, and begins anew at a regular time."""
    settings = {"AzureWebJobsStorage": services.storage_connection_string}
    host = HostProcess(tmp_path, settings, app=APP).ready()

    def given_up_and_next():
        return [(call, after) for call, after in pairwise(host.seen("timer")) if "turn" not in call]

    try:
        call, after = until(given_up_and_next)[0]
    finally:
        host.stop()
    assert after.get("turn")
    assert int(after["at"]) > int(call["at"])
