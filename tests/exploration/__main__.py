"""Explore the named worlds to closure: `make explore`."""

from exploration.explorer import Explored, explore
from exploration.worlds import EXPLORED, WorldOf


def main() -> None:
    """Explore each and say what was seen; the first violation ends it with its story."""
    seen = [_explore(world) for world in EXPLORED]
    print(f"{len(seen)} worlds, {sum(each.states for each in seen)} states, {sum(each.seconds for each in seen):.0f} s")


def _explore(world: WorldOf) -> Explored:
    print(f"{world}: ", end="", flush=True)
    with world.running():
        seen = explore(world.beginning(), world.bounds())
    print(seen, flush=True)
    return seen


if __name__ == "__main__":
    main()
