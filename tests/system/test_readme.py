"""The README, followed to the letter."""

from pathlib import Path

from reading import follow, steps

README = Path(__file__).parent.parent.parent / "README.md"


async def test_the_readme_does_what_it_says(own_stack):
    """Every command gives the output that the README shows."""
    stack, _ = await own_stack(settings={})
    await follow(README, stack.ports.http_port)


def test_the_readme_has_steps():
    """The test above cannot pass by finding nothing to do."""
    assert len(list(steps(README))) > 15
