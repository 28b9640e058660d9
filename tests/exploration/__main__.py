"""Explore the named worlds to closure: `make explore`, or those whose description has a text in it."""

import sys

from testkit.exploration.explorer import ExplorationResult, explore
from tests.exploration.worlds import EXPLORED, WorldOf


def main(wanted: str) -> None:
    """Explore each and say what was seen; the first violation ends it with its trace."""
    worlds = [world for world in EXPLORED if wanted in str(world)]
    if not worlds:
        sys.exit(f"no world is described with: {wanted}")
    seen = [_explore(world) for world in worlds]
    print(
        f"{len(seen)} worlds, {sum(explored.states for explored in seen)} states, {sum(explored.seconds for explored in seen):.0f} s"
    )


def _explore(world: WorldOf) -> ExplorationResult:
    print(f"{world}: ", end="", flush=True)
    with world.running():
        seen = explore(world.beginning(), world.bounds())
    print(seen, flush=True)
    return seen


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
