"""Binds the supervisor to its timer (SUP-1)."""

import azure.functions as func

from edge.functions import Functions
from edge.outages import next_time
from supervisor.service import SupervisorService


def blueprint(service: SupervisorService) -> func.Blueprint:
    """Return the function that sweeps."""
    triggers = Functions()

    @triggers.timer_trigger(arg_name="timer", schedule="%SUPERVISOR_SCHEDULE%", use_monitor=False)
    async def supervisor_sweep(timer: func.TimerRequest) -> None:
        async with next_time("supervisor_sweep"):
            await service.sweep()

    return triggers
