"""Makes the folder of a new business: a copy of `samples/starter` under another name."""

import json
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from engine.declarations.faults import Fault, FaultCode, StartUpError

ROOT = Path(__file__).parents[2]
FROM, TEST = "samples/starter", "tests/unit/samples/test_starter.py"
NAME, LONGEST = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"), 30
IMPORT = re.compile(r"^from [\w.]+ import .*\n", re.MULTILINE)


class NewBusinessError(StartUpError):
    """A business of this name cannot be made. `faults` lists all reasons."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of a new business: its workflow, package and constant."""

    workflow: str

    @property
    def package(self) -> str:
        """The folder and package, such as `car_rental`."""
        return self.workflow.replace("-", "_")

    @property
    def constant(self) -> str:
        """The name of the constant that holds the business, such as `CAR_RENTAL`."""
        return self.package.upper()

    @property
    def business(self) -> str:
        """The name for commands, such as `car_rental.business:CAR_RENTAL`."""
        return f"{self.package}.business:{self.constant}"

    @property
    def test(self) -> str:
        """The path of its first test."""
        return f"tests/unit/test_{self.package}.py"


def create(name: str, root: Path = ROOT) -> Names:
    """Write the files of a new business under `root`.

    Raises `NewBusinessError` with all faults of the name. Then no file was written.
    """
    names = Names(workflow=name)
    if faults := list(_faults(names, root)):
        raise NewBusinessError(faults)
    (root / names.package).mkdir()
    for place, text in _texts(names).items():
        (root / place).write_text(text)
    return names


def sample() -> str:
    """Return a sample payload as JSON."""
    customer = {"name": "Ada", "email": "ada@example.com"}
    return json.dumps({"customer": customer, "item": "a bicycle"})


def _faults(names: Names, root: Path) -> Iterator[Fault]:
    if not NAME.fullmatch(names.workflow) or len(names.workflow) > LONGEST:
        yield Fault(FaultCode.BUSINESS_NAME_INVALID, repr(names.workflow), limit=LONGEST)
        return
    if keyword.iskeyword(names.package) or keyword.issoftkeyword(names.package):
        yield Fault(FaultCode.PYTHON_KEYWORD, names.package)
    for place in (names.package, names.test):
        if (root / place).exists():
            yield Fault(FaultCode.FILE_EXISTS, place)
    if not (root / names.package).exists() and find_spec(names.package):
        yield Fault(FaultCode.MODULE_EXISTS, names.package)


def _texts(names: Names) -> Mapping[str, str]:
    files = sorted((ROOT / FROM).glob("*.py"))
    texts = {f"{names.package}/{path.name}": _renamed(path.read_text(), names) for path in files}
    texts[f"{names.package}/__init__.py"] = f'"""The business of {names.workflow}."""\n'
    return {**texts, names.test: _renamed((ROOT / TEST).read_text(), names)}


def _renamed(text: str, names: Names) -> str:
    """Replace the example's names by the new ones, and sort the imports again."""
    text = text.replace(FROM.replace("/", "."), names.package)
    text = text.replace('Workflow("start"', f'Workflow("{names.workflow}"')
    text = re.sub(r"\bSTART\b", names.constant, text)
    imports = IMPORT.findall(text)
    in_order = iter(sorted(imports, key=lambda line: line.split()[1]))
    return IMPORT.sub(lambda _: next(in_order), text)
