"""Writes the tables of parameters and options into docs/operations/parameters.md, from the descriptions in the compiled template.

`make parameters` compares them, `--write` writes them. It needs Bicep.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from development import bicep, compiler
from development.faults import DevelopmentCode
from development.pages import with_section
from development.servicebus_config import ROOT
from functions_alone.faults import StackFault, text_of
from functions_alone.ports import StackError

Compiled = Mapping[str, Any]
"""The compiled template, as Resource Manager takes it."""
COMMAND = "make parameters ARGS=--write"
PAGE = ROOT / "docs/operations/parameters.md"
PASSED = re.compile(r"\$\{(\w+)=?(.*)\}")
"""The variable and its default in a value of azd's parameters file."""
OPTIONS = {"app": "AppOptions", "data": "DataOptions", "monitoring": "MonitoringOptions"}
"""The files in infra/options, with their types."""
PROMPTED_BY_AZD = {"AZURE_ENV_NAME", "AZURE_LOCATION"}


def parameters(template: Compiled, root: Path = ROOT) -> Iterator[tuple[str, str, str]]:
    """Yield the variable of each parameter that azd passes on, its default, and its description."""
    passed = json.loads((root / "infra/main.parameters.json").read_text())["parameters"]
    for name, parameter in template["parameters"].items():
        if parameter["type"] == "secureObject":
            continue  # the settings of the agents, each of which is a variable of its own
        variable, default = PASSED.fullmatch(passed[name]["value"]).groups()  # type: ignore[union-attr]
        if variable not in PROMPTED_BY_AZD:
            none = "" if "defaultValue" in parameter else "azd asks"
            yield variable, f"`{default}`" if default else none, described(parameter)


def options(template: Compiled, file: str, root: Path = ROOT) -> Iterator[tuple[str, str, str]]:
    """Yield each option of a file in infra/options, its value there, and its description."""
    values = json.loads((root / f"infra/options/{file}.json").read_text())
    for name, option in template["definitions"][OPTIONS[file]]["properties"].items():
        yield name, f"`{json.dumps(values[name])}`", described(option)


def described(declaration: Mapping[str, Any]) -> str:
    """Return the description of a parameter or an option, with its possible values."""
    text = str(declaration["metadata"]["description"])
    if "allowedValues" in declaration:
        return f"{text} One of {', '.join(f'`{value}`' for value in sorted(declaration['allowedValues']))}."
    if "maxValue" in declaration:
        return f"{text} From {declaration['minValue']} to {declaration['maxValue']}."
    return text


def written(page: str, template: Compiled, root: Path = ROOT) -> str:
    """Return the page with these tables. Raises `ValueError` if it has no place for one."""
    tables = {"parameters": ("variable | default", parameters(template, root))}
    tables |= {
        file: (f"`infra/options/{file}.json` | value", options(template, file, root))
        for file in OPTIONS
    }
    for name, (heading, rows) in tables.items():
        lines = [f"| {heading} | meaning |", "|---|---|---|"]
        lines += [f"| `{option}` | {default} | {text} |" for option, default, text in rows]
        page = with_section(page, COMMAND, name, "\n".join(lines))
    return page


def compiled() -> Compiled:
    """Return the compiled template. Raises `StackError` if nothing can compile it."""
    with compiler.running(bicep.required()) as running:
        return running.compile(bicep.MAIN)


@click.command(help=__doc__)
@click.option(
    "--write",
    "to_be_written",
    is_flag=True,
    help="Put the tables into docs/operations/parameters.md.",
)
def main(*, to_be_written: bool) -> None:
    try:
        page = PAGE.read_text()
        wanted = written(page, compiled())
    except StackError as error:
        sys.exit(str(error))
    if to_be_written:
        PAGE.write_text(wanted)
    elif page != wanted:
        facts = {"business": "the template", "command": COMMAND}
        sys.exit(
            text_of(StackFault(DevelopmentCode.FILE_OUTDATED, str(PAGE.relative_to(ROOT)), facts))
        )


if __name__ == "__main__":
    main()
