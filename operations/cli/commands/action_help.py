"""The help of the commands that are actions."""

from engine.decisions.operator_actions import LINK, PAUSE_AGENT, REMIND, RESUME_AGENT, Words

SUMMARIES = {
    "resubmit": "Start the failed steps of an order again.",
    "skip": "Continue an order without a failed step.",
    "retry-with-new-key": "Start a failed step again under a new key.",
    "settle": "Say whether a step in doubt was done.",
    "cancel": "Undo an order.",
    "hold": "Hold an order, so that none of its steps start.",
    "release": "Release an order that is on hold.",
    "expedite": "Raise the priority of an order, and end its cooldown.",
    PAUSE_AGENT.name: "Send no requests to an agent until a time.",
    RESUME_AGENT.name: "Send requests to an agent again.",
    REMIND.name: "Send the request for an answer again.",
    LINK.name: "Print a new link for an answer.",
}
"""By action what its command does, in a few words; an action without an entry shows its title."""


def help_of(action: Words) -> str:
    """Return what the command of the action does, in a line, and its effect."""
    return f"{SUMMARIES.get(action.name, f'{action.title}.')}\n\n{action.effect}"
