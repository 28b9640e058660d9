"""The words of the library that reads the command line, from the catalogue.

The library asks `gettext` for its words, and offers no other way to give it some.
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
"""The ends of the keys of its words; it fills in the values itself."""


def translated(words: str) -> str:
    """Return words of the library in the language of this process; others stay as they are."""
    key = f"cli.library.{KEYS.get(words, '')}"
    return texts().get(key, words)


def translate() -> None:
    """Let the library ask the catalogue."""
    for module in (core, decorators, exceptions, formatting):
        setattr(module, "_", translated)  # noqa: B010 - mypy knows no such name of them
