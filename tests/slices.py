"""The slices of `make soak`: each soak test is in exactly one, so that CI can run some of them at a time.

CI runs `ALWAYS` at every change, with one of the others. `NIGHTLY` runs only at night, and what it names is in no other.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

FINISHED = "finished"
"""The last line of the notes of a run, after the ids of its failed tests."""
ALWAYS = "always"
NIGHTLY = "nightly"
SLICES: Mapping[str, Sequence[str]] = {
    ALWAYS: (
        "tests/exploration",
        "tests/unit/development/test_differential.py",
        "samples/claims/test_explored.py",
        "tests/unit/samples/simulator/test_own_forms.py",
    ),
    "kills": ("tests/stack/test_matrix.py",),
    "outages": (
        "tests/app/test_deadlines.py",
        "tests/app/test_hanging_services.py",
        "tests/system/test_dependencies_away.py",
        "tests/system/test_disaster.py",
        "tests/system/test_function_timeout.py",
        "tests/system/test_host_that_ends.py",
        "tests/system/test_killed_while_waiting.py",
        "tests/system/test_locked_timers.py",
        "tests/system/test_long_outages.py",
        "tests/system/test_many_hosts.py",
        "tests/system/test_notices_after_kills.py",
        "tests/system/test_services_down.py",
        "tests/system/test_silent_agent.py",
        "tests/system/test_supervisors.py",
        "tests/system/test_upgrade.py",
        "tests/system/test_versions_and_clocks.py",
    ),
    "pages": ("tests/browser",),
    "businesses": (
        "samples/claims_with_approvals",
        "tests/deployment",
        "tests/repository/test_public_api.py",
        "tests/system/test_check.py",
        "tests/system/test_generated_client.py",
        "tests/system/test_grown_claims.py",
        "tests/system/test_howto.py",
        "tests/system/test_own_workflow.py",
        "tests/system/test_walkthroughs.py",
        "tests/system/test_workflows.py",
        "tests/unit/engine/declarations/test_activities.py",
        "tests/unit/engine/workflow/test_steps.py",
    ),
    "platform": (
        "tools/functions_alone/tests",
        "tests/stack/test_busy_machine.py",
        "tests/stack/test_runner.py",
    ),
    "sizes": (
        "tests/contract",
        "tests/system/test_alert_storm.py",
        "tests/system/test_azure_host.py",
        "tests/system/test_bulk.py",
        "tests/system/test_channels.py",
        "tests/system/test_cost.py",
        "tests/system/test_limits.py",
        "tests/system/test_operator_actions.py",
        "tests/system/test_operator_api.py",
        "tests/system/test_queries.py",
        "tests/scale/test_agents_away.py",
        "tests/scale/test_closed_gateway.py",
        "tests/scale/test_fair_scheduling.py",
        "tests/scale/test_many_processes.py",
        "tests/scale/test_poisoned_neighbours.py",
        "tests/scale/test_what_waits.py",
        "tests/unit/bench/test_policies.py",
    ),
    NIGHTLY: (
        "samples/claims/test_explored.py::test_nothing_is_paid_unapproved_by_two_processes_of_every_kind",
        "samples/claims_with_approvals/test_grown.py::test_nothing_is_paid_unasked_whatever_goes_wrong",
        "tools/functions_alone/tests/broker/test_broker_soak.py",
        "tests/deployment/test_another_business.py::test_what_reads_the_business_passes_with_many_agents",
        "tests/exploration/test_services_as_they_are.py::test_nothing_happens_twice_whatever_operators_do",
        "tests/exploration/test_environment.py::test_what_waits_may_be_erased",
        "tests/exploration/test_unattended_worlds.py::test_nothing_is_broken_in_any_state_of_a_largest_world",
        "tests/stack/test_busy_machine.py::test_a_busy_machine_fails_no_order",
        "tests/system/test_hanging_service.py",
    ),
}
"""The soak tests of each slice: folders, files, or functions such as `tests/a/test_b.py::test_c`."""

ROTATING = tuple(name for name in SLICES if name not in (ALWAYS, NIGHTLY))
"""The slices of which CI runs one."""

PROCESS_PER_FUNCTION = "platform"
"""The slice that runs the files below once more, with a process for each function: they depend most on its memory."""
AGAIN = (
    "tests/system/test_example.py",
    "tests/system/test_workflows.py",
    "tests/system/test_cost.py",
    "tests/system/test_notices.py",
    "tests/system/test_notices_after_kills.py",
    "tests/system/test_many_hosts.py",
)


def slices_of(test: str) -> list[str]:
    """Return the names of the slices that a test is in, given its node id: one, unless the table is wrong."""
    name = test.partition("[")[0]
    if any(_covers(entry, name) for entry in SLICES.get(NIGHTLY, ())):
        return [NIGHTLY]
    return [
        slice_name
        for slice_name, entries in SLICES.items()
        if any(_covers(entry, name) for entry in entries)
    ]


def faults(tests: Iterable[str]) -> Iterator[str]:
    """Yield a line for each soak test that is in no slice, or in more than one."""
    for test in tests:
        found = slices_of(test)
        if len(found) != 1:
            yield f"{test} is in {' and '.join(found) or 'no slice'}; name it once in tests/slices.py"


def chosen(digest: str) -> str:
    """Return the slice that CI runs for the hexadecimal digest of what it checks."""
    return ROTATING[int(digest, 16) % len(ROTATING)]


def _covers(entry: str, test: str) -> bool:
    return test == entry or test.startswith((f"{entry}/", f"{entry}::"))


if __name__ == "__main__":
    print(chosen(sys.argv[1]))
