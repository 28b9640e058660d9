"""A workflow of a test, an order on it, and the services that answer it as the test says."""

from dataclasses import replace
from datetime import timedelta

from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.states import Failed, Skipped, UnderWay
from engine.words.history import in_words
from operations.api.explain import explain
from operations.api.requests import OperatorRequest
from tests.support.builders import (
    LONGEST_UPGRADE,
    MAX_SILENCE,
    MAX_UNBEGUN,
    NOW,
    PAYLOAD,
    PROVIDERS,
    TOLERANCE,
    Recovery,
    Rules,
    acting_rules,
    answer,
    orders,
    seconds,
)

BY_GRACE = OperatorRequest(operator="grace", note="a note")
CAPACITY = {"payment": ("payment",)}
NO_CAPACITY = {}


def step(name, *after, **more):
    """A step that one agent does, and that can be undone unless the test says otherwise."""
    return StepDefinition(
        **{
            "name": name,
            "capability": "payment",
            "operation": "do",
            "compensation": "undo",
            "request": lambda order, results: {},
            "after": after,
            "result_fields": ("amount",),
        }
        | more
    )


class Case:
    """One order on one workflow, with the time that goes by between two things that happen."""

    def __init__(self, *definitions):
        self.workflow = WorkflowDefinition(name="w", version=1, steps=definitions)
        self.scheduler = self.scheduler_on(self.workflow)
        self.supervisor = Recovery(
            instance="v1", clock_tolerance=TOLERANCE, max_unbegun_attempts=MAX_UNBEGUN
        )
        self.now, self.order, self.changes = NOW, orders.on(self.workflow), []

    @staticmethod
    def scheduler_on(workflow):
        return Rules(
            instance="s1",
            workflows=Workflows(workflow),
            payload=PAYLOAD,
            providers=PROVIDERS,
            clock_tolerance=TOLERANCE,
            version_overlap=LONGEST_UPGRADE,
            max_silence=MAX_SILENCE,
        )

    def took(self, change):
        self.changes.append(change)
        self.order = change.after
        return self

    def claim(self, at=None, capacity=CAPACITY):
        self.now = at or self.now + seconds(1)
        return self.took(self.scheduler.claim(self.order, self.now, capacity))

    def reply(self, name, outcome, capacity=CAPACITY, **more):
        self.now += seconds(1)
        of = self.order.step(name)
        action = "undo" if of.pattern_state == "Undoing" else "do"
        received = answer(name, outcome, attempt=of.counts.attempts, action=action, **more)
        return self.took(self.scheduler.receive(self.order, received, self.now, capacity))

    def done(self, name, capacity=CAPACITY, **result):
        return self.reply(name, "completed", capacity, result=result)

    def refused(self, name, reason="no", **more):
        return self.reply(name, "failed", detail=reason, **more)

    def expire(self):
        """The time of the running steps is up, and the supervisor looks."""
        due = min(step.complete_by for step in self.order.in_state(UnderWay))
        self.now = due + TOLERANCE + timedelta(microseconds=1)
        return self.took(self.supervisor.recover(self.order, self.now))

    def give_up(self):
        """The running step expires until its threshold is reached."""
        self.expire()
        while self.order.process_state == "Pending" and not self.failed_or_skipped():
            self.claim(max(self.now, self.order.derived.not_before or self.now)).expire()
        return self

    def failed_or_skipped(self):
        return self.changes[-1].after.has_any(Failed, Skipped)

    @property
    def states(self):
        return {order_step.name: str(order_step.pattern_state) for order_step in self.order.steps}

    @property
    def ended(self):
        order = self.order
        return str(order.process_state), order.outcome and str(order.outcome)

    @property
    def last_entry(self):
        """The last entry of the history."""
        entry = self.changes[-1].entry
        return entry.event, in_words(entry.events)

    def explained(self):
        rules = replace(
            acting_rules,
            claim=self.scheduler.claim,
            recover=self.supervisor.recover,
            offers={"payment": ("payment",)},
        )
        return explain(self.order, [], rules, self.now).summary
