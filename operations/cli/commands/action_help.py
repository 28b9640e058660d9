"""The help of the commands that are actions."""

from engine.words.catalogue import text


def help_of(action: str) -> str:
    """Return what the command of the action does, in a line, and its effect."""
    return f"{text(f'action.{action}.summary')}\n\n{text(f'action.{action}.effect')}"
