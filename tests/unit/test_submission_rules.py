"""What submission makes of a message that comes again."""

from dataclasses import replace

import pytest
from builders import new_order

from submission.rules import same_submission


def with_order(**changes):
    order = new_order()
    return replace(order, order=replace(order.order, **changes))


@pytest.mark.proves("SUB-3")
def test_a_message_that_comes_again_after_its_customer_was_erased_says_nothing_new():
    """It is no other order, which would be refused, and kept with the very data that was erased."""
    new = new_order()
    erased = replace(new, order=new.order.without_customer())
    assert same_submission(erased, new)
    assert not same_submission(erased, with_order(items=()))
    assert not same_submission(new, with_order(customer_name="Grace"))
