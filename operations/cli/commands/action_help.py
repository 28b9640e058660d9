"""The help texts of commands that are actions."""

from engine.words.catalogue import text


def help_of(action: str) -> str:
    """Return the summary of the action's command, and the action's effect."""
    return f"{text(f'action.{action}.summary')}\n\n{text(f'action.{action}.effect')}"
