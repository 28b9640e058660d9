"""From a path to the function that serves it, by the rules of ASP.NET routes that Azure uses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

from local.host.errors import HostError

# A part of a template: {name}, {*rest}, {name:int}, {name?}.
_PARAMETER = re.compile(r"\{(\*{0,2})(\w+)((?::[^{}:?]+)*)(\??)\}")
_CONSTRAINTS = {
    "int": r"-?\d+",
    "long": r"-?\d+",
    "decimal": r"-?\d+(?:\.\d+)?",
    "double": r"-?\d+(?:\.\d+)?",
    "float": r"-?\d+(?:\.\d+)?",
    "bool": r"true|false",
    "alpha": r"[A-Za-z]+",
    "guid": r"[0-9A-Fa-f]{8}(?:-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}",
    "maxlength(0)": r"",
}
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Route:
    """A compiled template; `rank` sorts literal parts before parameters before catch-alls."""

    pattern: re.Pattern[str]
    rank: tuple[int, ...]

    def match(self, path: str) -> Mapping[str, str] | None:
        """Return the parameters, percent-decoded, or None."""
        found = self.pattern.fullmatch(path.strip("/"))
        if found is None:
            return None
        return {name: unquote(value) for name, value in found.groupdict().items() if value is not None}


def compile_route(prefix: str, template: str) -> Route:
    """Compile `prefix/template`; raises `HostError` for what this host cannot match."""
    parts = [part for part in f"{prefix}/{template}".split("/") if part]
    if parts and parts[0].lower() in ("admin", "runtime"):
        raise HostError(f"route {template}: paths under /admin and /runtime are the host's own")
    pattern = ""
    for part in parts:
        optional = part.endswith("?}")
        separator = "/" if pattern else ""
        expression = f"{separator}{_pattern_of(part, template)}"
        pattern += f"(?:{expression})?" if optional or "{*" in part else expression
    return Route(pattern=re.compile(pattern, re.IGNORECASE), rank=tuple(_rank_of(part) for part in parts))


def _pattern_of(part: str, template: str) -> str:
    pattern, end = "", 0
    for found in _PARAMETER.finditer(part):
        pattern += _literal(part[end : found.start()], template)
        pattern += _parameter(found, template)
        end = found.end()
    return pattern + _literal(part[end:], template)


def _literal(text: str, template: str) -> str:
    if "{" in text or "}" in text:
        raise HostError(f"route {template}: cannot read {text}")
    return re.escape(text)


def _parameter(found: re.Match[str], template: str) -> str:
    stars, name, constraints, _ = found.groups()
    if stars:
        return f"(?P<{name}>.*)"
    expression = "[^/]+"
    for constraint in constraints.split(":")[1:]:
        if constraint not in _CONSTRAINTS:
            raise HostError(f"route {template}: this host has no constraint {constraint}")
        expression = _CONSTRAINTS[constraint]
    return f"(?P<{name}>{expression})"


def _rank_of(part: str) -> int:
    if "{*" in part:
        return 3
    if "{" not in part:
        return 0
    return 1 if ":" in part or not part.startswith("{") else 2
