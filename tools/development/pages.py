"""Sections of the documents that a command writes."""


def with_section(page: str, command: str, name: str, text: str) -> str:
    """Return the page with this text in the section with this name.

    The section lies between two comments, which name the command that writes it. Raises `ValueError` if the page has
    no such section.
    """
    begin, end = f"<!-- begin: {command}, {name} -->\n", f"<!-- end: {name} -->\n"
    start, stop = page.index(begin) + len(begin), page.index(end)
    return page[:start] + f"\n{text}\n\n" + page[stop:]
