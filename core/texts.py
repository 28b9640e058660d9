"""Texts that others wrote, made fit to be shown: services, errors, senders may say anything."""


def plain(text: str, most: int) -> str:
    """Return the text on one line, without what does not print, and cut to so many characters."""
    return "".join(character if character.isprintable() else " " for character in text).strip()[:most]
