"""Seeds every fault of the table into a copy of the tree, and says which test noticed it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from time import monotonic

from tests.mutants.copies import ROOT, Copy, Result
from tests.mutants.mutant import Mutant, Where
from tests.mutants.table import MUTANTS

AT_A_TIME = 2


def run(named: str, where: Collection[Where]) -> int:
    """Seed the faults whose label contains this; return 1 if one survives, or the table or a test is wrong."""
    chosen = [
        mutant
        for mutant in MUTANTS
        if mutant.where in where and named.lower() in mutant.label.lower()
    ]
    if faults := [fault for mutant in MUTANTS for fault in mutant.faults(ROOT)]:
        print("\n".join(faults))
        return 1
    began = monotonic()
    with ExitStack() as stack:
        copies = [stack.enter_context(Copy()) for _ in range(AT_A_TIME)]
        if failed := _without_any_fault(copies[0], chosen):
            print(f"fails without any fault: {failed}")
            return 1
        survived = 0
        for mutant, result in _side_by_side(copies, chosen):
            survived += not result.killed
            print(f"{result.verdict:9} {mutant.label:90} {result.by}", flush=True)
    print(
        f"{len(chosen) - survived} of {len(chosen)} faults noticed, in {monotonic() - began:.0f} s"
    )
    return 1 if survived or not chosen else 0


def _without_any_fault(copy: Copy, chosen: Iterable[Mutant]) -> str:
    """Return what the tests say when nothing is wrong; empty if they pass."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    result = copy.run(tests) if tests else None
    return "" if result is None or result.passed else f"{result.verdict} {result.by}"


def _side_by_side(
    copies: Sequence[Copy], mutants: Sequence[Mutant]
) -> Iterator[tuple[Mutant, Result]]:
    """Run the mutants, each in a copy that is free; the results come in the order of the table."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def run(mutant: Mutant) -> Result:
        copy = free.get()
        try:
            with copy.seeded(mutant):
                return copy.run(mutant.tests)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from zip(mutants, pool.map(run, mutants), strict=True)
