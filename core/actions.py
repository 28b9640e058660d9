"""What an operator may do to an order as it is, and why not (OPR-3, OPR-4): shown, told with alerts, and held to.

The order's own records decide, so nobody who asks needs its workflow.
"""

from core.orders import DONE, Direction, Outcome, ProcessState, Snapshot, Step, StepState

RESUBMITTED, FREED = "resubmitted", "freed of a step that failed"


def possible(order: Snapshot) -> list[str]:
    """Return what makes sense now, by its name."""
    reasons = {
        "resubmit": [why_not_mend(order, RESUBMITTED)],
        "skip": [why_not_mend(order, FREED) or why_not_skip(order, step) for step in to_mend(order)],
        "cancel": [why_not_cancel(order)],
    }
    return [name for name, why_not in reasons.items() if "" in why_not]


def why_not_skip(order: Snapshot, step: Step) -> str:
    """Say why the order cannot go on without a step that failed: another one needs its answer; empty if none does."""
    if order.state.direction is Direction.UNDO:
        return ""
    to_come = (each for each in order.steps if each is not step and each.state not in DONE)
    needing = [each.name for each in to_come if step.name in each.uses]
    return f"{', '.join(needing)} cannot be done without what {step.name} answers" if needing else ""


def why_not_cancel(order: Snapshot) -> str:
    """Say why the order cannot be taken back; empty if it can."""
    state = order.state
    if state.process_state is ProcessState.PROCESSED:
        return "the order is Processed: what takes it back is a workflow of its own, such as `return`"
    if state.outcome is Outcome.UNDONE:
        return "the order was undone completely already"
    if state.direction is Direction.UNDO:
        hint = ": a resubmit lets the undo go on" if state.process_state is ProcessState.ERROR else ""
        return f"the order is being undone already{hint}"
    return ""


def to_mend(order: Snapshot) -> tuple[Step, ...]:
    """Return the steps that failed; of an order that goes back, those of which the undo failed."""
    failed = order.in_state(StepState.FAILED)
    back = order.state.direction is Direction.UNDO
    return tuple(step for step in failed if step.undo_failed) if back else failed


def why_not_mend(order: Snapshot, what: str) -> str:
    """Say why the order is none that an operator lets go on; empty if it is one."""
    if order.state.process_state is not ProcessState.ERROR:
        return f"the order is {order.state.process_state}: only one in Error can be {what}"
    if order.state.outcome is Outcome.UNDONE:
        return "the order was undone completely: there is nothing to go on with"
    return ""
