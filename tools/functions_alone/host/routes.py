"""Finds the function for a path, by the rules of ASP.NET routes that Azure uses."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError

# A part of a template: {name}, {*rest}, {name:int}, {name?}.
_PARAMETER = re.compile(r"\{(\*{0,2})(\w+)((?::[^{}:?]+)*)(\??)\}")
# The UTF-8 of one character, percent-encoded.
_ENCODED = re.compile(
    "%[0-7]H|%[CD]H%[89AB]H|%EH(?:%[89AB]H){2}|%FH(?:%[89AB]H){3}".replace("H", "[0-9A-F]"),
    re.IGNORECASE,
)


def percent_decoded(text: str, *, but: str = "") -> str:
    """Decode the UTF-8 in a text.

    Other bytes, and characters in `but`, stay encoded.
    """

    def decoded(found: re.Match[str]) -> str:
        try:
            character = unquote(found[0], errors="strict")
        except UnicodeDecodeError:
            return found[0]
        return found[0] if character in but else character

    return _ENCODED.sub(decoded, text) if "%" in text else text


def without_dots(path: str) -> str:
    """Resolve the parts `.` and `..` of a decoded path, as Azure does before it looks for a route."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for part in path.split("/")[1:]:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if path.endswith(("/.", "/..")):
        kept.append("")
    return "/" + "/".join(kept)


_UNCODED = "/:@!$&'()*+,;=%"
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")


def encoded_anew(path: str) -> str:
    """Encode a decoded path. Parts of it that look encoded stay as they are."""
    return _BARE_PERCENT.sub("%25", quote(path, safe=_UNCODED))


def order_of_name(function: str) -> str:
    """Return the key by which Azure sorts functions.

    If several routes match, the first function in this order answers.
    """
    # .NET's OrdinalIgnoreCase compares upper case, so an underscore comes behind every digit and letter.
    return function.upper()


def _is_integer(bits: int, text: str) -> bool:
    return bool(re.fullmatch(r"\s*[+-]?[0-9]+\s*", text)) and -(2 ** (bits - 1)) <= int(
        text
    ) < 2 ** (bits - 1)


def _is_like(pattern: str) -> Callable[[str], bool]:
    return lambda text: bool(re.fullmatch(pattern, text, re.IGNORECASE))


Constraint = Callable[[str], bool]
_CONSTRAINTS: Mapping[str, Constraint] = {
    "int": lambda text: _is_integer(32, text),
    "long": lambda text: _is_integer(64, text),
    "bool": _is_like("true|false"),
    "alpha": _is_like("[a-z]+"),
    "maxlength(0)": lambda text: not text,
    "guid": _is_like("[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}"),
}


@dataclass(frozen=True, kw_only=True)
class RouteTemplate:
    """A compiled template."""

    pattern: re.Pattern[str]
    constraints: Mapping[str, tuple[Constraint, ...]]

    def match(self, path: str) -> Mapping[str, str] | None:
        """Return the parameters in a decoded path, or None. Empty or omitted parameters are left out."""
        found = self.pattern.fullmatch(path)
        if found is None:
            return None
        parameters = {name: value for name, value in found.groupdict().items() if value}
        fits = all(
            holds(value) for name, value in parameters.items() for holds in self.constraints[name]
        )
        return parameters if fits else None


def compile_route(prefix: str, template: str) -> RouteTemplate:
    """Compile `prefix/template`. Raises `HostError` for a template that this host cannot match."""
    parts = [part for part in f"{prefix}/{template}".split("/") if part]
    if parts and parts[0].lower() in ("admin", "runtime"):
        raise HostError(StackFault(LocalCode.ROUTE_RESERVED, f"route {template}"))
    pattern = ""
    for part in parts:
        expression = f"/{_pattern_of(part, template)}"
        pattern += f"(?:{expression})?" if part.endswith("?}") or "{*" in part else expression
    return RouteTemplate(
        pattern=re.compile(f"{pattern}/?", re.IGNORECASE | re.DOTALL),
        constraints=_constraints_of(template),
    )


def _pattern_of(part: str, template: str) -> str:
    pattern, end = "", 0
    for found in _PARAMETER.finditer(part):
        stars, name, *_ = found.groups()
        pattern += (
            _literal(part[end : found.start()], template)
            + f"(?P<{name}>{'.*' if stars else '[^/]+'})"
        )
        end = found.end()
    return pattern + _literal(part[end:], template)


def _literal(text: str, template: str) -> str:
    if "{" in text or "}" in text:
        raise HostError(StackFault(LocalCode.ROUTE_UNREADABLE, f"route {template}", {"part": text}))
    return re.escape(text)


def _constraints_of(template: str) -> Mapping[str, tuple[Constraint, ...]]:
    named = {name: listed.split(":")[1:] for _, name, listed, _ in _PARAMETER.findall(template)}
    if unknown := [
        constraint
        for listed in named.values()
        for constraint in listed
        if constraint not in _CONSTRAINTS
    ]:
        raise HostError(
            *(
                StackFault(
                    LocalCode.ROUTE_CONSTRAINT_UNKNOWN,
                    f"route {template}",
                    {"constraint": constraint},
                )
                for constraint in unknown
            )
        )
    return {name: _listed(listed) for name, listed in named.items()}


def _listed(names: Iterable[str]) -> tuple[Constraint, ...]:
    return tuple(_CONSTRAINTS[name] for name in names)
