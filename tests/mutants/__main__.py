"""Tests the tests: seeds faults into the code one by one, and fails unless each is noticed.

Part `table`: faults of meaning, each with the tests that notice it. All other parts: what mutmut makes of the
rules, all of engine.domain or one module of it such as engine.domain.orders; what survives is listed in survivors.toml, with the reason.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.mutants import generated, seeded
from tests.mutants.mutant import Where

TABLE = "table"
USUAL = (Where.UNIT, Where.CONTRACT)


def main(arguments: Sequence[str]) -> int:
    """Run the parts that are asked for; return the exit code."""
    options = _parse(arguments)
    modules = generated.chosen(options.parts) if options.parts else generated.MODULES
    labels = (
        [part for part in options.parts if not generated.chosen([part])]
        if options.parts
        else [TABLE]
    )
    codes = [generated.run(modules)] if modules else []
    codes += [seeded.run("" if label == TABLE else label, options.where) for label in labels]
    return max(codes)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "parts",
        nargs="*",
        help="packages or modules (engine.domain, engine.domain.orders), table, or some of the table, such as SUP-5",
    )
    parser.add_argument(
        "--where",
        action="append",
        type=Where,
        choices=list(Where),
        help=f"of the table only what such tests notice, may be given again; {' and '.join(USUAL)} unless given",
    )
    options = parser.parse_args(arguments)
    options.where = options.where or USUAL
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
