"""Translates click's own texts by the catalogue.

click gets its texts from `gettext`, and offers no other way to replace them.
"""

from click import core, decorators, exceptions, formatting

from engine.words.catalogue import texts

KEYS = {
    "Usage:": "usage",
    "Options": "options",
    "Commands": "commands",
    "Show this message and exit.": "help",
    "env var: {var}": "variable",
    "default: {default}": "default",
    "(dynamic)": "dynamic",
    "Missing argument": "missing-argument",
    "Missing option": "missing-option",
    "Missing parameter": "missing-parameter",
    "Missing command.": "missing-command",
    "Error: {message}": "error",
    "Invalid value: {message}": "invalid",
    "Invalid value for {param_hint}: {message}": "invalid-for",
    "Try '{command} {option}' for help.": "try",
    "No such command {name!r}.": "no-command",
    "No such option {name!r}.": "no-option",
}
"""The ends of the keys for click's texts. click fills in the values itself."""


def translated(words: str) -> str:
    """Return a text of click in the language of this process. An unknown text stays as it is."""
    key = f"cli.library.{KEYS.get(words, '')}"
    return texts().get(key, words)


def translate() -> None:
    """Make click use the catalogue."""
    for module in (core, decorators, exceptions, formatting):
        setattr(module, "_", translated)  # noqa: B010 - mypy knows no such name of them
