"""Every state of every small world in which an operator acts, at any moment: nothing is ever broken."""

import pytest

from tests.exploration.closure import each, explored_to_closure
from tests.exploration.worlds import OPERATED


@pytest.mark.parametrize("world", each(OPERATED))
def test_nothing_is_broken_whatever_an_operator_does(world):
    """To closure: what is cancelled is undone, or says what is not; what is resubmitted or skipped goes on."""
    explored_to_closure(world, OPERATED[world])
