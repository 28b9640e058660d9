"""What a page says in plain words: texts that do not come from the catalogue, when the language is `pseudo`."""

import re
from collections.abc import Collection

SAID = """() => {
  const found = [["title", document.title]];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  const data = "pre, code, kbd, script, noscript, textarea";
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (!node.parentElement.closest(data)) found.push([node.parentElement.localName, node.data]);
    } else {
      for (const name of ["aria-label", "title", "placeholder", "data-name", "alt"])
        if (node.hasAttribute(name)) found.push([name, node.getAttribute(name)]);
    }
  }
  return found.filter(([, text]) => text.trim());
}"""
"""All texts of a page with the elements or attributes in which they stand; but not what is shown as data."""

WORD = re.compile(r"(?<![^\W\d_])[A-Za-z]{2,}(?![^\W\d_])")
"""A word without an accent: in a text of the language `pseudo` each word of two letters has one."""
TIMES = re.compile(
    r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b|\bUTC(?:[+\u2212][\d:]+)?"
)
IDS = re.compile(
    r"\b(?:orders/)?b\d\d-[0-9A-HJKMNP-TV-Z]{26}\b"  # an order
    r"|\b(?:(?:scheduler|submission|supervisor)/)?[\w.-]+-\d+-[0-9a-z]{6}\b"  # an instance
    r"|\boperator/\w+"
    r"|\b(?:host|inventory|payment|shipping)-[0-9a-f]+\b"  # a host, or what a service calls its work
    r"|\b\w+-requests, -responses"  # the queues of an agent
    r"|\bOrderProcessing\.\w+"  # the type of an alert
)


def plain_words(said: Collection[tuple[str, str]], data: Collection[str]) -> list[str]:
    """Return what a page says in plain words, with where it stands; `data` are no words for people."""
    longest_first = sorted(data, key=len, reverse=True)
    known = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    found = {
        f"{place}: {text.strip()}"
        for place, text in said
        if WORD.search(known.sub("", IDS.sub("", TIMES.sub("", text))))
    }
    return sorted(found)
