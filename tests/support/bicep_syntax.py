"""Reads Bicep: the statements of a file, with expressions as nested tuples.

`pycep-parser`, which knows the whole language better, does not tell a string from a name, and has no precedence of
operators, so that what it finds cannot be evaluated. Here is the part of the language that our templates use; anything
else is an error.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Expression = tuple[Any, ...]

TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|(?://|#)[^\n]*|/\*.*?\*/)"
    r"|(?P<newline>\n)"
    r"|(?P<text>'''.*?'''|'(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^'\\])*')"
    r"|(?P<number>\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>=>|==|!=|<=|>=|&&|\|\||\?\?|\.\?|[-+*/%<>=!?:.,@(){}\[\]])",
    re.DOTALL,
)
PIECE = re.compile(r"\$\{((?:[^{}]|\{[^{}]*\})*)\}|\\(.)|([^\\$]+|\$)", re.DOTALL)
BINARY = (
    ("??",),
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators that bind loosest first."""


@dataclass(frozen=True, kw_only=True)
class Token:
    kind: str
    text: str
    line: int
    first: bool
    """Whether it is the first on its line: a bracket there begins something new."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    kind: str
    name: str
    detail: str = ""
    """The type of a parameter or output, `type@version` of a resource, the path of a module."""
    existing: bool = False
    condition: Expression | None = None
    loop: tuple[tuple[str, ...], Expression] | None = None
    """The names of item and index, and what is looped over."""
    value: Expression | None = None
    decorators: dict[str, Expression] = field(default_factory=dict)


def tokens_of(text: str) -> Iterator[Token]:
    place, line, first = 0, 1, True
    while place < len(text):
        found = TOKEN.match(text, place)
        if not found:
            raise SyntaxError(f"line {line}: {text[place : place + 20]!r}")
        kind, part = str(found.lastgroup), found.group()
        if kind == "newline":
            first = True
        elif kind != "space":
            yield Token(kind=kind, text=part, line=line, first=first)
            first = False
        line += part.count("\n")
        place = found.end()
    yield Token(kind="end", text="", line=line, first=True)


def read(path: Path) -> Sequence[Statement]:
    """Return the statements of a file; raises SyntaxError with the line."""
    return _statements(path.read_text())


@cache
def _statements(text: str) -> Sequence[Statement]:
    return tuple(Parser(text).statements())


class Parser:
    """A recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens_of(text))
        self._place = 0

    def statements(self) -> list[Statement]:
        found = []
        while self._next.kind != "end":
            found.append(self._statement(self._decorators()))
        return found

    def expression(self) -> Expression:
        if self._is_lambda():
            return self._lambda()
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        yes = self.expression()
        self._expect(":")
        return ("if", condition, yes, self.expression())

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _advance(self) -> Token:
        self._place += 1
        return self._tokens[self._place - 1]

    def _take(self, text: str, *, same_line: bool = False) -> bool:
        if self._next.text != text or self._next.kind == "text" or (same_line and self._next.first):
            return False
        self._place += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise SyntaxError(
                f"line {self._next.line}: expected {text!r}, found {self._next.text!r}"
            )

    def _decorators(self) -> dict[str, Expression]:
        found = {}
        while self._take("@"):
            name = self._advance().text
            self._expect("(")
            arguments = self._list(")")
            found[name] = arguments[0] if arguments else ("value", None)
        return found

    def _statement(self, decorators: dict[str, Expression]) -> Statement:
        kind = self._advance().text
        if kind == "targetScope":
            self._expect("=")
            return Statement(kind=kind, name="", value=self.expression())
        readers: dict[str, Callable[[str, dict[str, Expression]], Statement]] = {
            "param": self._param, "var": self._var, "output": self._output,
            "resource": self._body, "module": self._body,
        }  # fmt: skip
        if kind not in readers:
            raise SyntaxError(f"line {self._next.line}: no statement {kind!r} is known here")
        return readers[kind](kind, decorators)

    def _param(self, kind: str, decorators: dict[str, Expression]) -> Statement:
        name, declared = self._advance().text, self._advance().text
        value = self.expression() if self._take("=") else None
        return Statement(kind=kind, name=name, detail=declared, value=value, decorators=decorators)

    def _var(self, kind: str, decorators: dict[str, Expression]) -> Statement:
        name = self._advance().text
        self._expect("=")
        return Statement(kind=kind, name=name, value=self.expression(), decorators=decorators)

    def _output(self, kind: str, decorators: dict[str, Expression]) -> Statement:
        name, declared = self._advance().text, self._advance().text
        self._expect("=")
        return Statement(
            kind=kind, name=name, detail=declared, value=self.expression(), decorators=decorators
        )

    def _body(self, kind: str, decorators: dict[str, Expression]) -> Statement:
        name, detail = self._advance().text, self._advance().text.strip("'")
        existing = self._take("existing")
        self._expect("=")
        condition, loop = self._condition(), None
        if self._next.text == "[":
            self._expect("[")
            loop, value = self._for()
        else:
            value = self.expression()
        return Statement(
            kind=kind, name=name, detail=detail, existing=existing,
            condition=condition, loop=loop, value=value, decorators=decorators,
        )  # fmt: skip

    def _condition(self) -> Expression | None:
        return self.expression() if self._take("if") else None

    def _for(self) -> tuple[tuple[tuple[str, ...], Expression], Expression]:
        self._expect("for")
        names = [self._advance().text]
        if names == ["("]:
            names = [self._advance().text]
            self._expect(",")
            names.append(self._advance().text)
            self._expect(")")
        self._expect("in")
        over = self.expression()
        self._expect(":")
        value = self.expression()
        self._expect("]")
        return (tuple(names), over), value

    def _binary(self, level: int) -> Expression:
        if level == len(BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while self._next.kind == "sign" and self._next.text in BINARY[level]:
            left = ("binary", self._advance().text, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._take("!"):
            return ("not", self._unary())
        if self._take("-"):
            return ("minus", self._unary())
        return self._postfix(self._primary())

    def _postfix(self, value: Expression) -> Expression:
        while True:
            if self._take("!", same_line=True):
                continue
            if self._take(".") or self._take(".?"):
                safe = self._tokens[self._place - 1].text == ".?"
                value = ("member", value, ("value", self._advance().text), safe)
            elif self._take("[", same_line=True):
                value = ("member", value, self.expression(), False)
                self._expect("]")
            else:
                return value

    def _primary(self) -> Expression:
        token = self._advance()
        if token.kind == "number":
            return ("value", int(token.text))
        if token.kind == "text":
            return text_of(token.text)
        if token.text == "(":
            inner = self.expression()
            self._expect(")")
            return inner
        if token.text == "[":
            return self._array()
        if token.text == "{":
            return self._object()
        if token.kind != "name":
            raise SyntaxError(f"line {token.line}: {token.text!r} begins no expression")
        return self._named(token.text)

    def _named(self, name: str) -> Expression:
        constants = {"true": True, "false": False, "null": None}
        if name in constants:
            return ("value", constants[name])
        if self._take("(", same_line=True):
            return ("call", name, self._list(")"))
        return ("name", name)

    def _array(self) -> Expression:
        if self._next.text == "for":
            return ("for", *self._for())
        return ("array", self._list("]"))

    def _list(self, end: str) -> list[Expression]:
        found = []
        while not self._take(end):
            found.append(self.expression())
            self._take(",")
        return found

    def _object(self) -> Expression:
        found = []
        while not self._take("}"):
            key = self._advance()
            self._expect(":")
            found.append(
                (
                    text_of(key.text) if key.kind == "text" else ("value", key.text),
                    self.expression(),
                )
            )
            self._take(",")
        return ("object", found)

    def _is_lambda(self) -> bool:
        return self._next.kind == "name" and self._tokens[self._place + 1].text == "=>"

    def _lambda(self) -> Expression:
        name = self._advance().text
        self._expect("=>")
        return ("lambda", name, self.expression())


def text_of(token: str) -> Expression:
    """Return a string as the pieces it is put together from."""
    if token.startswith("'''"):
        return ("value", token[3:-3].removeprefix("\n"))
    pieces: list[Expression] = []
    for inner, escaped, plain in PIECE.findall(token[1:-1]):
        if inner:
            pieces.append(Parser(inner).expression())
        else:
            pieces.append(("value", {"n": "\n", "t": "\t"}.get(escaped, escaped) or plain))
    if all(piece[0] == "value" for piece in pieces):
        return ("value", "".join(piece[1] for piece in pieces))
    return ("text", pieces)
