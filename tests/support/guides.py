"""The pages that a reader follows step by step: their blocks, and what a reader makes of each."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALLEST = ROOT / "samples/minimal/README.md"
PAGES = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/howto").glob("*.md")), SMALLEST]
AZURE = "<!-- needs Azure -->"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w/]+\.(?:py|json))`")
START = re.compile(r"((?:[A-Z_]+=\S+ )*)make run")
SHOP = "shop.business:SHOP"
IMPORT = "import"


@dataclass(frozen=True)
class GuideBlock:
    """A block of code of a page."""

    language: str
    text: str
    file: str | None
    """The file into which it goes: the last one that its introduction names, before a colon.

    If the introduction names none, that of the block before.
    """
    needs_azure: bool

    @property
    def start(self) -> dict[str, str] | None:
        """The variables with which the block starts the system; None if it starts none."""
        found = START.fullmatch(self.text.strip()) if self.language == "sh" else None
        given = found and dict(variable.split("=", 1) for variable in found[1].split())
        return None if given is None else {"BUSINESS": SHOP} | given

    @property
    def fault(self) -> str | None:
        """Why no test can run or check the block; None if one can."""
        if self.needs_azure:
            return None if self.language == "sh" else "only commands are checked for Azure"
        match self.language:
            case "python" | "json":
                return None if self.file else "no file is named before it"
            case "sh":
                return None if self.start else f"it neither starts a system nor has {AZURE}"
            case "console":
                return None
        return "nothing runs a block of this kind"


def blocks(page: Path) -> Iterator[GuideBlock]:
    """Yield the blocks of a page."""
    text, file = page.read_text(), None
    for match in BLOCK.finditer(text):
        before = text[: match.start()].rstrip()
        introduction = before.removesuffix(AZURE).rstrip().rpartition("\n\n")[2]
        is_introduced = introduction.endswith(":")
        file = next(reversed(FILE.findall(introduction)), file) if is_introduced else file
        yield GuideBlock(
            language=match[1],
            text=match[2],
            file=file if is_introduced else None,
            needs_azure=before.endswith(AZURE),
        )


def settings_in(block: GuideBlock) -> Iterator[str]:
    """Yield the settings that a declaration in the block may name: addresses of agents, and secrets."""
    if block.language == "python":
        for node in ast.walk(ast.parse(block.text)):
            match node:
                case ast.Constant(value=str(name)) if re.fullmatch(r"[A-Z][A-Z_]+", name):
                    yield name
                case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                    yield f"{name.upper().replace('-', '_')}_URL"


def needs_stack(block: GuideBlock) -> bool:
    """Whether the block starts the system, or runs `make`, which may install for minutes."""
    is_make = block.language == "console" and re.search(r"^\$ make ", block.text, re.MULTILINE)
    return bool(block.start or is_make)


def written(text: str, part: str) -> str:
    """Return the text of a module after a reader has put a part into it.

    What has a docstring is a whole module. Otherwise imports stand with the imports, and a statement
    takes the place of the one of its name. A new one stands before the statement that follows it in
    the part; the last one stands before the application, or at the end of a module that has none.
    """
    tree = ast.parse(part)
    if ast.get_docstring(tree):
        return part
    following = None
    for start, end, name in reversed(list(_statements(part))):
        code = part.splitlines(keepends=True)[start:end]
        lines = text.splitlines(keepends=True)
        places = {known: (first, last) for first, last, known in _statements(text)}
        if name == IMPORT:
            place = places[IMPORT][0] if IMPORT in places else 0
            text = "".join([*lines[:place], *code, *lines[place:]])
            continue
        if name in places:
            first, last = places[name]
            lines[first:last] = code
        else:
            place = places[following][0] if following else _end(text)
            lines[place:place] = ["\n\n", *code, "\n\n"]
        text, following = "".join(lines), name
    return text


def _statements(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines of each statement, from the first to behind the last, and its name."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Expr):
            continue  # a docstring
        first = min(
            [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))]
        )
        yield first - 1, node.end_lineno, _name(node)


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.Import() | ast.ImportFrom():
            return IMPORT
        case _:
            return ast.unparse(node)


def _end(text: str) -> int:
    """Return the line of the application, or behind the last line."""
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id="application"))):
                return node.lineno - 1
    return len(text.splitlines())


def with_own_programs(root: Path) -> None:
    """Give a copy of the repository an environment of its own, with its own command `operators`."""
    place, programs = root / ".venv", root / ".venv/bin"
    place.unlink()
    programs.mkdir(parents=True)
    for path in Path(sys.prefix).iterdir():
        if path.name != "bin":
            (place / path.name).symlink_to(path)
    for path in (Path(sys.prefix) / "bin").iterdir():
        if path.name != "operators":
            (programs / path.name).symlink_to(path)
    command = programs / "operators"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{root}:{root}/tools" exec "{programs}/python" -m operations "$@"\n'
    )
    command.chmod(0o755)
