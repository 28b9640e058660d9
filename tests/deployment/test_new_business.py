"""A business that `python -m engine.workflow new` has made passes every check, and the checks see what becomes of it."""

import pytest

from tests.support.another_business import copy_of_tree, run

NAME = "car_rental.business:CAR_RENTAL"
ON_THE_STACK = f"""
import asyncio, sys
from pathlib import Path
from tests.support.stacks import running
from tests.support.submitting import new_order_id, submit
from development.business import named

async def main(folder):
    business = named("{NAME}")
    async with running(folder, business="{NAME}", agents=business.agents) as (stack, client):
        await submit(stack, order_id := new_order_id(), payload=business.sample.payload)
        await client.until(order_id, "Processed")

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A copy of the repository with a new business in it."""
    copy = copy_of_tree(tmp_path_factory.mktemp("new") / "tree")
    assert f"BUSINESS={NAME} make run" in run(copy, "-m", "engine.workflow", "new", "car-rental")
    return copy


@pytest.mark.soak
def test_a_new_business_passes_every_check(root):
    """Lint, types, import rules, its own test, and what is written: nothing has to be added by hand."""
    run(root, "-m", "ruff", "check", ".")
    run(root, "-m", "ruff", "format", "--check", ".")
    assert "car_rental knows neither roles" in run(root, "-m", "development.checks")
    assert "passed" in run(root, "-m", "pytest", "-n", "0", "tests/unit/test_car_rental.py")
    assert run(root, "-m", "development.declared") == ""


@pytest.mark.soak
def test_types_and_imports_of_a_new_business_are_checked(root):
    """In its own modules, wherever they are new."""
    wrong = root / "car_rental/wrong.py"
    wrong.write_text(
        '"""Wrong."""\n\nimport scheduler.rules\n\nWRONG: int = str(scheduler.rules)\n'
    )
    try:
        with pytest.raises(AssertionError) as raised:
            run(root, "-m", "development.checks")
    finally:
        wrong.unlink()
    message = " ".join(str(raised.value).split())
    assert "car_rental/wrong.py:5: error: Incompatible types" in message
    assert "car_rental.wrong -> scheduler.rules" in message


@pytest.mark.soak
def test_an_order_of_a_new_business_is_processed_on_the_whole_system(root, tmp_path):
    """With the services that the app simulates for it."""
    run(root, "-c", ON_THE_STACK, str(tmp_path))
