"""`python -m development.differential --base COMMIT`: compare the decisions of this tree with those of a commit."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from development.differential.comparison import Comparison, compare
from development.differential.differences import DIFFERENCES, RENAMED, Difference
from development.differential.trees import checked_out, started
from development.servicebus_config import ROOT
from functions_alone.ports import StackError

SHOWN = 20
"""How many kinds of differences are shown."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a comparison."""

    states: int
    """The number of states of each world in which every move is tried."""
    walks: int
    """The number of random courses of each world."""
    length: int = 40
    """The number of moves of a random course."""
    explored: int = 0
    """The number of states of each world of the exploration, nearest first. Zero for none."""
    worlds: str = ""
    """Only worlds of the exploration whose description contains this text."""


QUICK = Size(states=24, walks=8)
FULL = Size(states=150, walks=30, explored=3000)


class SideError(Exception):
    """A process of a side has failed. Its output says why."""


def run(
    base: Path,
    new: Path,
    size: Size,
    tell: Callable[[str], None] = lambda _: None,
    differences: Sequence[Difference] = DIFFERENCES,
) -> Comparison:
    """Make courses by the decisions of the tree `base`, and compare them with those of the tree `new`.

    Raises `SideError` if a process of either side fails.
    """
    with TemporaryDirectory(prefix="courses-") as folder:
        courses = make_courses(base, Path(folder), size, tell)
        return compare_trees(courses, base, new, tell, differences)


def make_courses(base: Path, folder: Path, size: Size, tell: Callable[[str], None]) -> Path:
    """Write all courses to a file in the folder, in processes of the base. Return the file."""
    made, reached = folder / "made.jsonl", folder / "reached.jsonl"
    options = (f"--states={size.states}", f"--walks={size.walks}", f"--length={size.length}")
    _finished(base, "development.differential.courses", str(made), *options, tell=tell)
    if size.explored:
        explored = (f"--states={size.explored}", f"--world={size.worlds}")
        _finished(base, "exploration.courses", str(reached), *explored, tell=tell)
        with made.open("ab") as every:
            every.write(reached.read_bytes())
    return made


def compare_trees(
    courses: Path,
    base: Path,
    new: Path,
    tell: Callable[[str], None] = lambda _: None,
    differences: Sequence[Difference] = DIFFERENCES,
) -> Comparison:
    """Let both sides decide on the courses at the same time, and compare their decisions."""
    comparison = Comparison()
    with ExitStack() as stack:
        lines = stack.enter_context(courses.open(encoding="utf-8"))
        sides = [
            stack.enter_context(started(tree, "development.differential.side", str(courses)))
            for tree in (base, new)
        ]
        try:
            of_base, of_new = (_printed(side.stdout) for side in sides)
            for comparison in compare(lines, of_base, of_new, differences, RENAMED):
                tell(f"{comparison.moves} moves compared, {comparison.found} differences")
        except ValueError as error:
            raise SideError(str(error)) from error
        finally:
            for side in sides:
                side.terminate()
    return comparison


def _printed(lines: Iterator[str] | None) -> Iterator[str]:
    yield from lines or ()


def _finished(tree: Path, module: str, *arguments: str, tell: Callable[[str], None]) -> None:
    with started(tree, module, *arguments) as process:
        for line in _printed(process.stdout):
            tell(line.rstrip())
    if process.returncode:
        raise SideError(f"{module} of {tree} has ended with {process.returncode}")


@click.command()
@click.option("--base", required=True, metavar="COMMIT", help="The commit to compare with.")
@click.option(
    "--full", is_flag=True, help="Compare all snapshots of the exploration too (minutes)."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
def main(base: str, *, full: bool, quiet: bool) -> None:
    """Compare the decisions of this tree with those of a commit.

    Each side runs in a process of its own. A difference is allowed if tools/development/differential/differences.py
    lists it. The exit code is 1 if there is another one; the report shows the shortest course to each kind.
    """
    tell: Callable[[str], None] = (lambda _: None) if quiet else _to_terminal
    try:
        with checked_out(base) as tree:
            comparison = run(tree, ROOT, FULL if full else QUICK, tell)
    except (StackError, SideError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    report(comparison)
    sys.exit(1 if comparison.found else 0)


def _to_terminal(line: str) -> None:
    click.echo(line, err=True)


def report(comparison: Comparison) -> None:
    for kind, count in comparison.kinds.most_common(SHOWN):
        click.echo(f"\n{count} times: {kind}")
        for found in comparison.examples[kind]:
            click.echo("\n".join(found.lines()))
    decided = ", ".join(f"{count} {what}" for what, count in comparison.decided.most_common())
    click.echo(f"\n{comparison.compared} of {comparison.moves} moves compared: {decided}")
    for entry in DIFFERENCES:
        met = comparison.listed[entry.name]
        click.echo(f"listed: {entry.name}, {f'{met} times' if met else 'not met'}")
    kinds = f"{comparison.found} differences of {len(comparison.kinds)} kinds"
    click.echo(kinds if comparison.found else "no difference besides those listed")


if __name__ == "__main__":
    main()
