"""Every state of every small world in which an operator acts, at any moment: nothing is ever broken."""

import pytest

from tests.exploration.closure import explored_to_closure, worlds_as_parameters
from tests.exploration.worlds import OPERATED


@pytest.mark.parametrize("world", worlds_as_parameters(OPERATED))
def test_nothing_is_broken_whatever_an_operator_does(world):
    """To closure: what is cancelled is undone, or says what is not; what is resubmitted or skipped goes on."""
    explored_to_closure(world, OPERATED[world])
