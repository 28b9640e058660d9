"""What operators do to an order: one module for each action.

`refusal` says why the action makes no sense for the order as it is, and `decide` makes the
transition where it does. Both need the order alone: no workflow, and no report of an agent. Where
an action concerns one step of the order, `step_of` finds it.
"""
