"""Explore the named worlds to closure: `make explore`."""

from exploration.explorer import explore
from exploration.worlds import EXPLORED


def main() -> None:
    """Explore each and say what was seen; the first violation ends it with its story."""
    for world in EXPLORED:
        print(f"{world}: ", end="", flush=True)
        with world.running():
            print(explore(world.beginning(), world.bounds()), flush=True)


if __name__ == "__main__":
    main()
