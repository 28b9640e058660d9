"""What is lost on the way from the records of today to those of `engine.domain`, and back."""

from dataclasses import fields

from core.life import StepState


def differences(old, back) -> set[str]:
    """The fields by which two records of one kind differ."""
    named = (field.name for field in fields(old) if field.compare)
    return {name for name in named if getattr(old, name) != getattr(back, name)}


def lost(old, back):
    """The fields that are lost on the way to the new records and back, but for what nobody reads.

    D2: the refusal of a step that is undone, and the condition of a step that has come to a result.
    """
    found = differences(old, back)
    if old.state in (StepState.UNDOING, StepState.UNDONE):
        found -= {"refused_for_good"}
    if old.state in (StepState.SKIPPED, StepState.COMPLETED):
        found -= {"unjudged"}
    return {f"{name} of a step in {old.state}" for name in found}
