"""Binds the supervisor to its timer (SUP-1)."""

# The pattern in an hour, 17 of 23: the timer of the supervisor

import azure.functions as func

from engine.runtime.functions import Functions, skip_overlapping_runs
from supervisor.service import SupervisorService


def supervisor_functions(service: SupervisorService) -> func.Blueprint:
    """Make the function that runs the sweep."""
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule="%SUPERVISOR_SCHEDULE%", use_monitor=False)
    async def supervisor_sweep(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("supervisor_sweep", service.sweep)

    return triggers
