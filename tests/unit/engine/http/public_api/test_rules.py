"""What a customer's request may not be."""

import pytest

from engine.domain.errors import InputFault, InvalidError
from engine.http.public_api.rules import LARGEST_MESSAGE, check_length


def test_a_message_that_the_queue_cannot_hold_is_a_fault_of_the_body():
    """With its length, and the most that the queue takes."""
    check_length("x" * LARGEST_MESSAGE)
    with pytest.raises(InvalidError) as caught:
        check_length("x" * (LARGEST_MESSAGE + 1))
    facts = {"length": LARGEST_MESSAGE + 1, "limit": LARGEST_MESSAGE}
    assert caught.value.faults == [InputFault("body", "too-many-bytes-for-queue", facts)]
