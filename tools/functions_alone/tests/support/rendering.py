"""The property of every text of a fault: it has the code, the place and all facts."""

from functions_alone.faults import StackFault, text_of


def missing_from_text(code):
    """What the text of a fault with this code leaves out, of its code, place and facts."""
    facts = {name: f"<{name}>" for name in code.facts}
    text = text_of(StackFault(code, "<place>", facts))
    return [part for part in (f"[{code}]", "<place>", *facts.values()) if part not in text]
