"""A decision on the new records leaves what it does not concern as today's records have it."""

from dataclasses import replace

from builders import orders, steps, supervisor, timed_out

KEPT = {"LaterColumn": "from a newer version"}


def expiring():
    """An order of which one step has timed out beside one that is undone after a refusal for good."""
    refused = replace(steps.undone("other"), refused_for_good=True, more=KEPT)
    order = orders.processing(steps=[steps.running("payment"), refused])
    order = order.with_state(more=KEPT, agenda=("!running|then|order",), reply_to="status-web")
    submitted = replace(order.order, more=KEPT)
    return replace(order, order=submitted, etag="an ETag")


def test_a_step_that_a_decision_leaves_as_it_was_keeps_its_whole_record():
    """Also what the new records have no place for."""
    order = expiring()
    after = supervisor.recover(order, timed_out(order)).after
    assert after.step("other") is order.step("other")
    assert after.step("payment") != order.step("payment")


def test_a_decision_keeps_what_a_newer_version_has_added_and_the_rows_that_are_there():
    """The store removes rows by the keys that were written, under the ETag that was read."""
    order = expiring()
    change = supervisor.recover(order, timed_out(order))
    assert change.before is order
    after = change.after
    assert (after.order, after.order.more, after.etag) == (order.order, KEPT, order.etag)
    assert (after.state.more, after.step("other").more) == (KEPT, KEPT)
    assert (after.state.agenda, after.state.reply_to) == (order.state.agenda, "status-web")
