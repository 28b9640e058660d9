"""Faults to seed into the shipped code, each of which the exploration has to find."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from copy import copy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from agents import rules as agent_rules
from agents.health import HealthReporter
from agents.service import AgentService
from engine.alerts import events as alerts
from engine.decisions import claim as claim_decisions
from engine.decisions import drafts, lists, proceed, repair, requests, restore, step_kinds, undo
from engine.decisions import operator_actions as actions
from engine.decisions import recover as recover_decisions
from engine.decisions import reply as reply_decisions
from engine.decisions.actions import release, resubmit, settle
from engine.decisions.drafts import Draft
from engine.decisions.proceed import Proceed
from engine.decisions.reply import Delivery
from engine.decisions.step_kinds import AttemptReport
from engine.decisions.transitions import Transition, transition_of
from engine.declarations.workflow import Workflows
from engine.domain import backoff, derive, states, verbs, work_index
from engine.domain.causes import Cause, Code
from engine.domain.effects import Doubt, NotDone, doubted, next_generation
from engine.domain.errors import (
    AnswersLaterError,
    ConflictError,
    NewerWorkflowError,
    RejectedError,
    TransientError,
)
from engine.domain.events import Claimed, ExternalEventRecorded, StepCompleted
from engine.domain.messages import BusMessage, ReplyMessage
from engine.domain.orders import InError, OrderAggregate, Pending, Processed
from engine.domain.statuses import Outcome, ProcessState
from engine.domain.steps import Step, StepIn
from engine.domain.table import TABLE, rows
from engine.domain.work_index import WorkItemKind
from engine.features import conditions, key_generations, late_effects
from engine.features.external_events import decide
from engine.features.external_events import steps as external_steps
from engine.storage import agent_health, outbox
from engine.storage.agent_health import closed_until
from engine.storage.tables import Delete
from engine.storage.unit_of_work import UnitOfWork
from operations.alerts.relay import Relay
from operations.api.service import OperatorService, command_of
from scheduler.admission import admission, claim_queue
from scheduler.admission.admission import Admission
from scheduler.rules import SchedulerRules
from scheduler.service import SchedulerService
from submission import rules as submission_rules
from supervisor import rules as supervisor_rules
from supervisor import service as supervisor_service
from supervisor.service import SupervisorService
from supervisor.silence import SilenceRecorder
from testkit.exploration.ports import Publisher
from tests.exploration.worlds import (
    ACCEPTED,
    ALERTED_LATE,
    ANSWER_CANCELLED,
    ANSWER_HELD,
    ANSWERED,
    ANSWERED_BETWEEN,
    ARRIVES,
    CALLED_BACK,
    CANCELLED,
    CIRCUIT,
    CLOCKS_DIFFER,
    ELSEWHERE,
    FOR_A_TIME,
    FOR_A_TIME_ANSWERED,
    FORGOTTEN,
    FORGOTTEN_LATER,
    GIVEN_UP,
    GONE,
    HANGS,
    HELD,
    HELD_BACK,
    HURRIED_AGAIN,
    JUDGED_ONCE,
    KILLED,
    LATER,
    LATER_BESIDE,
    NEVER_POLLS,
    NOT_BEGUN,
    NOT_BUILT,
    NOTIFIED,
    ONE_INSTANCE_BREAKS,
    ONE_SLOT,
    PIVOT,
    PIVOT_BESIDE,
    PLAIN_ENDED,
    POLLED_AGAIN,
    PROVIDER_ADDED,
    RECALLED_APART,
    REFUSED_FOR_GOOD,
    REROUTED,
    RESTED,
    RESTORED_CANCELLED,
    RESTORED_ELSEWHERE,
    RESTORED_LATER,
    RESTS_BESIDE,
    RETIRED_WHILE_IT_RUNS,
    SETTLES,
    SETTLES_DONE,
    SETTLES_TWICE,
    SILENT,
    SILENT_OPTIONAL,
    SKIPPED,
    STARTS_BESIDE,
    STARTS_LATE,
    TAKEN_BACK,
    TAKEN_OUT,
    TOLERANCE,
    TRIED_AGAIN,
    TURNED_AWAY,
    TWO_AT_ONCE,
    TWO_STEPS,
    UNANSWERED,
    UNCLAIMABLE,
    UNDISTURBED,
    UNDO_FAILS,
    UNDONE_LATE,
    UPGRADED,
    URGENT_FIRST,
    WAITS_ALONE,
    WITHDRAWN,
    WITHOUT,
    WorldOf,
)

NOT_VALID = Cause(Code.REPLY_FOR_UNKNOWN_STEP, {"step": "payment"})

SeededFault = Callable[[], AbstractContextManager[Any]]

original_ready = OrderAggregate.ready.func
original_blocked = OrderAggregate.blocked
original_starts_at = OrderAggregate.starts_at
original_proceed = Proceed.__call__
original_requests = Proceed._requests
original_recovered = supervisor_rules.recover
original_end_anew = drafts.end
original_to_bus = ReplyMessage.to_bus
original_recover = supervisor_rules.SupervisorRules.recover
original_overdue = work_index.overdue
original_why_invalid = reply_decisions._why_invalid
original_refresh = Admission.refresh
original_notices_of = outbox.notices_of
original_relay_page = Relay._relay_page
original_candidate = SchedulerService._candidate
original_receive = SchedulerRules.receive
original_call = AgentService._call
original_index_rows = lists.index_rows
original_idempotency_key = requests.idempotency_key
original_lane = claim_queue._lane
original_fault_of = supervisor_rules.fault_of
original_started = Proceed._started
original_claim = SchedulerRules.claim
original_complete_by = derive._complete_by


def claims_what_is_taken() -> AbstractContextManager[Any]:
    def claimed(order, now, capacity, scheduler):
        workflow = scheduler.workflows.find(order.workflow, order.workflow_version)
        again = (replace(step, state=states.Waiting()) for step in order.in_state(states.Running))
        draft = Draft(before=order, order=order.with_steps(*again), now=now, events=(Claimed(),))
        return Proceed(scheduler=scheduler, workflow=workflow, capacity=capacity)(draft)

    def claim(self, order, now, capacity, *_):
        found = None if order.has_ended else claimed(order, now, capacity, self._scheduler())
        return found and transition_of(found, self._actor)

    return patch.object(SchedulerRules, "claim", claim)


def writes_without_looking_at_etags() -> AbstractContextManager[Any]:
    def apply(rows, write):
        if isinstance(write, Delete):
            rows.pop(write.key, None)
        else:
            rows[write.key] = (rows.get(write.key, (0, None))[0] + 1, write.row)

    return patch("testkit.memory._apply", apply)


def takes_replies_after_their_time() -> AbstractContextManager[Any]:
    def why_invalid(step, delivery, now, tolerance):
        runs = isinstance(step.state, states.Running)
        is_current = runs and delivery.reply.attempt == step.counts.attempts
        return None if is_current else NOT_VALID

    return patch.object(reply_decisions, "_why_invalid", why_invalid)


def without_tables() -> AbstractContextManager[Any]:
    """Steps and orders change in each state: their tables are no second guard."""
    every = {kind for _, before, after in rows() for kind in (before, after)}
    in_every = dict.fromkeys(every, frozenset(every))

    def with_state(order, event, state):
        return replace(order, state=state)

    def end(order, outcome, cause):
        return replace(order, state=InError(outcome), cause=cause)

    return _Both(
        *(patch.dict(targets, in_every) for targets in TABLE.values()),
        patch.object(OrderAggregate, "_with_state", with_state),
        patch.object(OrderAggregate, "end", end),
    )


def takes_replies_to_steps_that_do_not_run() -> AbstractContextManager[Any]:
    def why_invalid(step, delivery, now, tolerance):
        return NOT_VALID if step.is_expired(now, tolerance) else None

    return _Both(patch.object(reply_decisions, "_why_invalid", why_invalid), without_tables())


def sends_before_it_writes() -> AbstractContextManager[Any]:
    async def commit(self, decision):
        if isinstance(decision, Transition):
            await self._send(decision)
            return await self._write(decision.identified(self._new_id()))
        return True

    return patch.object(UnitOfWork, "commit", commit)


def decides_from_memory_that_there_is_nothing_to_do() -> AbstractContextManager[Any]:
    def changed(self, order, decide):
        return order, decide(order, self.clock())

    return patch.object(UnitOfWork, "_changed", changed)


def believes_a_conflict_to_be_its_own_write() -> AbstractContextManager[Any]:
    async def commit(self, change):
        with suppress(ConflictError):
            await self.store.commit(change)
        return True

    return patch.object(UnitOfWork, "_write", commit)


def a_recovered_order(
    change: Callable[[OrderAggregate, OrderAggregate], OrderAggregate],
) -> AbstractContextManager[Any]:
    """What the supervisor makes of an order, changed once more, by the order before and after."""

    def recover(order, *args):
        found = original_recovered(order, *args)
        return found and replace(found, after=change(order, found.after))

    return patch.object(supervisor_rules, "recover", recover)


def counts_a_failure_twice() -> AbstractContextManager[Any]:
    return a_recovered_order(lambda before, after: replace(after, failures=2))


def sends_for_ever() -> AbstractContextManager[Any]:
    def recover(order, now, reports, tolerance, max_unbegun):
        return original_recovered(order, now, reports, tolerance, max_unbegun * 10)

    return patch.object(supervisor_rules, "recover", recover)


def undoes_what_no_agent_began() -> AbstractContextManager[Any]:
    def give_up_unbegun(step, now, cause):
        return verbs.fail(step, cause, unanswered=True)

    return patch.object(verbs, "give_up_unbegun", give_up_unbegun)


def charges_a_reply_that_waits() -> AbstractContextManager[Any]:
    return patch.object(AttemptReport, "is_counted", lambda self, attempt: self.has_begun)


def forgets_when_the_retry_is_due() -> AbstractContextManager[Any]:
    return an_expired_step(lambda before, after: verbs.without_retry_by(after))


def recovers_before_the_time_is_up() -> AbstractContextManager[Any]:
    def is_expired(self, now, tolerance):
        return isinstance(self.state, states.Running)

    return _Both(
        patch.object(StepIn, "is_expired", is_expired),
        patch.object(
            work_index, "overdue", lambda now, kind=WorkItemKind.RUNNING: work_index.all_of(kind)
        ),
    )


def starts_what_is_held() -> AbstractContextManager[Any]:
    def released(order):
        return replace(order, hold=None)

    return _Both(
        patch.object(
            OrderAggregate, "ready", property(lambda self: original_ready(released(self)))
        ),
        patch.object(OrderAggregate, "blocked", lambda self: original_blocked(released(self))),
    )


def ends_an_undo_that_is_held() -> AbstractContextManager[Any]:
    def still_to_undo(order):
        return bool(order.ready) or order.has_any(states.UnderWay)

    return patch.object(OrderAggregate, "still_to_undo", still_to_undo)


def owes_nothing_to_what_is_held() -> AbstractContextManager[Any]:
    def index_rows(order, items):
        return {
            key: row
            for key, row in original_index_rows(order, items).items()
            if not key.startswith(WorkItemKind.HELD)
        }

    return patch.object(lists, "index_rows", index_rows)


def _does_otherwise(name: str, apply: Any, **more: Any) -> AbstractContextManager[Any]:
    """An action that does something else; `apply` gets what it does today, too."""
    action = actions.BY_NAME[name]
    otherwise = copy(action)
    for method, does in {"apply": partial(apply, action.apply), **more}.items():
        setattr(otherwise, method, does)
    return patch.dict(actions.BY_NAME, {name: otherwise})


def _with_steps(found, now, *steps):
    """A decision that leaves these steps."""
    after = found.after.with_steps(*steps)
    return replace(found, after=derive.changed(found.before, after, now))


def _resets_otherwise(reset: Any) -> AbstractContextManager[Any]:
    """A resubmit that lets failed steps begin in another way."""
    return _Both(patch.object(resubmit, "reset", reset), patch.object(repair, "reset", reset))


def gives_up_without_an_alert() -> AbstractContextManager[Any]:
    return patch.object(alerts, "of", lambda *_: ())


def leaves_the_order_locked() -> AbstractContextManager[Any]:
    def locked(before, after):
        return replace(after, derived=replace(after.derived, locked_by=before.derived.locked_by))

    return a_recovered_order(locked)


def gives_up_and_lets_the_step_run() -> AbstractContextManager[Any]:
    def end(draft, *args):
        found = original_end_anew(draft, *args)
        after = found.after.with_steps(*draft.before.steps)
        return replace(found, after=derive.changed(draft.before, after, draft.now))

    return an_end(end)


def an_end(end: Callable[..., Any]) -> AbstractContextManager[Any]:
    """How an order ends, wherever that is decided."""
    places = (drafts, proceed, claim_decisions)
    return _Both(*(patch.object(place, "end", end) for place in places))


def a_request(change: Callable[[BusMessage, int], BusMessage]) -> AbstractContextManager[Any]:
    """Each request that goes out, by the request and the attempt of the first step that starts."""

    def requests(self, draft, order, started):
        messages, broken = original_requests(self, draft, order, started)
        changed = [change(message, started[0].counts.attempts) for message in messages]
        return changed, broken

    return patch.object(Proceed, "_requests", requests)


def another_key_per_attempt() -> AbstractContextManager[Any]:
    def with_own_key(message, attempt):
        return replace(message, body=message.body.replace(':payment"', f':payment-{attempt}"'))

    return a_request(with_own_key)


def replies_after_its_time() -> AbstractContextManager[Any]:
    async def handle(self, request):
        with suppress(TransientError):
            reply = await self._carry_out(request, again=False)
            await self.bus.send([reply.to_bus(self.name, self.clock())])

    return patch.object(AgentService, "handle", handle)


def calls_after_its_time() -> AbstractContextManager[Any]:
    async def handle(self, request):
        with suppress(TransientError, RejectedError):
            await self.remote.call(request, 1.0)

    return patch.object(AgentService, "handle", handle)


def counts_attempts_afresh() -> AbstractContextManager[Any]:
    def reset(step):
        fresh = verbs.reset(step)
        return replace(fresh, counts=replace(fresh.counts, attempts=0))

    return _resets_otherwise(reset)


def begins_a_round_in_doubt() -> AbstractContextManager[Any]:
    def reset(step):
        fresh = verbs.reset(step)
        is_forward = not isinstance(fresh.state, states.UndoPending)
        keyed = is_forward and step.key
        return replace(fresh, effect=NotDone(key=next_generation(step.key))) if keyed else fresh

    return _resets_otherwise(reset)


def undoes_the_first_round() -> AbstractContextManager[Any]:
    def idempotency_key(order_id, step):
        undo = isinstance(step.state, states.Undoing)
        return original_idempotency_key(order_id, with_key(step, generation=0) if undo else step)

    return patch.object(requests, "idempotency_key", idempotency_key)


def with_key(step: Step, **changes: Any) -> Step:
    """The step with another key, if it has one."""
    if step.key is None:
        return step
    return replace(step, effect=replace(step.effect, key=replace(step.key, **changes)))


def sends_what_is_forgotten() -> AbstractContextManager[Any]:
    return patch.object(key_generations, "is_forgotten", lambda step, now: False)


def never_polls() -> AbstractContextManager[Any]:
    async def poll(self):
        return 0

    return patch.object(SchedulerService, "poll", poll)


def believes_for_ever_what_it_did() -> AbstractContextManager[Any]:
    def refresh(self, *found):
        own = dict(self.open_requests._runs_at)
        original_refresh(self, *found)
        for order_id, agents in own.items():
            self.open_requests.set_agents(order_id, agents)

    return patch.object(Admission, "refresh", refresh)


def never_sweeps() -> AbstractContextManager[Any]:
    async def sweep(self):
        return 0

    return patch.object(SupervisorService, "sweep", sweep)


def confirms_before_it_sends() -> AbstractContextManager[Any]:
    async def relay_page(self, bucket, way, waiting):
        await self.store.confirm(bucket, [row.key for row, _ in waiting])
        return await original_relay_page(self, bucket, way, waiting)

    return patch.object(Relay, "_relay_page", relay_page)


def starts_steps_in_any_order() -> AbstractContextManager[Any]:
    """The work index knows better: an order waits for the agents of steps whose turn it is."""

    def ready(order):
        forward = not order.is_undo and not order.has_any(states.Failed)
        return order.in_state(states.Startable) if forward else original_ready(order)

    def started(self, order, now):
        with patch.object(OrderAggregate, "ready", property(ready)):
            return [*original_started(self, order, now)]

    return patch.object(Proceed, "_started", started)


def undoes_steps_in_any_order() -> AbstractContextManager[Any]:
    def ready(order):
        back = order.is_undo and not order.has_any(states.Running)
        return order.in_state(states.UndoPending) if back else original_ready(order)

    return patch.object(OrderAggregate, "ready", property(ready))


def starts_steps_after_a_failure() -> AbstractContextManager[Any]:
    def go_on(self, draft):
        waiting = draft.order.in_state(states.Startable)
        if draft.order.has_any(states.Failed) and not draft.order.is_undo and waiting:
            with patch.object(OrderAggregate, "ready", waiting):
                return self._start(draft)
        return original_proceed(self, draft)

    return patch.object(Proceed, "__call__", go_on)


def leaves_what_was_not_answered() -> AbstractContextManager[Any]:
    return an_undo(lambda step, undo: undo if isinstance(step.state, states.Completed) else step)


def an_undo(change: Callable[[Step, Step], Step]) -> AbstractContextManager[Any]:
    """What becomes of a step whose undo is requested, by the step before and after."""
    undo_of = verbs._undo_of
    return patch.object(verbs, "_undo_of", lambda step, **more: change(step, undo_of(step, **more)))


def calls_undone_what_is_not() -> AbstractContextManager[Any]:
    return patch.object(verbs, "UndoFailed", states.NothingToUndo)


def takes_running_steps_for_ended() -> AbstractContextManager[Any]:
    def cancel(decide, order, command, now):
        ended = (
            replace(step, state=states.Waiting(), effect=doubted(step.effect, unanswered=True))
            for step in order.in_state(states.Running)
        )
        return replace(decide(order.with_steps(*ended), command, now), before=order)

    return _does_otherwise("cancel", cancel)


def takes_the_order_from_its_scheduler() -> AbstractContextManager[Any]:
    def cancel(decide, order, command, now):
        found = decide(order, command, now)
        after = derive.changed(order, replace(found.after, state=Pending()), now)
        return replace(found, after=after)

    return _does_otherwise("cancel", cancel)


def cancels_without_turning_back() -> AbstractContextManager[Any]:
    def cancel(decide, order, command, now):
        return _with_steps(decide(order, command, now), now, *order.steps)

    return _does_otherwise("cancel", cancel)


def cancels_what_is_over() -> AbstractContextManager[Any]:
    def cancel(decide, order, command, now):
        pretended = isinstance(order.state, Processed)
        known = replace(order, state=Pending()) if pretended else order
        return replace(decide(known, command, now), before=order)

    return _does_otherwise("cancel", cancel, why_not=lambda order, now: None)


def skips_into_processed() -> AbstractContextManager[Any]:
    def skip(decide, order, command, now):
        found = decide(order, command, now)
        skipped = found.after.in_state(states.Skipped)
        done = (replace(step, state=states.Completed()) for step in skipped)
        return _with_steps(found, now, *done)

    return _does_otherwise("skip", skip)


def takes_what_was_not_tried_for_done() -> AbstractContextManager[Any]:
    not_attempted = reply_decisions._not_attempted

    def done(*args):
        waiting, event = not_attempted(*args)
        return replace(waiting, state=states.Completed()), event

    return patch.object(reply_decisions, "_not_attempted", done)


def another_key_at_another_agent() -> AbstractContextManager[Any]:
    def with_own_key(message, attempt):
        if not message.queue.startswith("payment-backup"):
            return message
        return replace(message, body=message.body.replace(':payment"', ':payment-backup"'))

    return a_request(with_own_key)


def rests_without_giving_the_order_back() -> AbstractContextManager[Any]:
    def kept(before, after):
        rests = any(step.counts.cooldowns for step in after.steps)
        return replace(after, state=before.state) if rests else after

    return a_recovered_order(kept)


def answers_without_a_time_to_live() -> AbstractContextManager[Any]:
    return patch.object(
        ReplyMessage, "to_bus", lambda *args: replace(original_to_bus(*args), time_to_live=None)
    )


def keeps_no_margin() -> AbstractContextManager[Any]:
    return patch.object(agent_rules, "stop_at", lambda request, margin: request.complete_by)


def allows_for_no_other_clock() -> AbstractContextManager[Any]:
    def recover(self, order, now, health):
        return original_recover(replace(self, clock_tolerance=timedelta()), order, now, health)

    def overdue(now, kind):
        return original_overdue(now + TOLERANCE, kind)

    return _Both(
        patch.object(supervisor_rules.SupervisorRules, "recover", recover),
        patch.object(work_index, "overdue", overdue),
    )


def sweeps_without_being_elected() -> AbstractContextManager[Any]:
    async def sweep(self):
        await self.leadership.acquire()
        pairs = product(
            self.unit_of_work.store.buckets, (WorkItemKind.RUNNING, WorkItemKind.WAITING)
        )
        silence = SilenceRecorder(
            agent_health=self.agent_health,
            instance=self.rules.instance,
            clock=self.unit_of_work.clock,
        )
        return sum([await self._sweep_bucket(bucket, kind, silence) for bucket, kind in pairs])

    return _Both(patch.object(SupervisorService, "sweep", sweep), goes_on_without_the_lease())


def waits_for_a_silent_agent_for_ever() -> AbstractContextManager[Any]:
    return patch.object(Proceed, "_unserved", lambda self, draft: [])


def probes_a_silent_agent_with_every_order() -> AbstractContextManager[Any]:
    return _Both(
        patch.object(admission, "requests_from", closed_until),
        patch.object(admission, "silence_of", lambda *_: None),
    )


def probes_a_silent_agent_without_a_pause() -> AbstractContextManager[Any]:
    return patch.object(admission, "requests_from", closed_until)


def undoes_what_a_silent_agent_leaves() -> AbstractContextManager[Any]:
    def give_up_unbegun(step, now, cause):
        return verbs.fail(step, cause)

    return patch.object(verbs, "give_up_unbegun", give_up_unbegun)


def goes_on_without_the_lease() -> AbstractContextManager[Any]:
    async def sweep_bucket(self, bucket, kind, silent):
        start, end = work_index.overdue(
            self.unit_of_work.clock() - self.rules.clock_tolerance, kind
        )
        while page := await self.unit_of_work.store.work_items(bucket, start, end, 1):
            await self._recover_all([page[0].order_id], silent)
            start = page[0].key + " "
        return 1

    return patch.object(SupervisorService, "_sweep_bucket", sweep_bucket)


def does_again_what_was_done() -> AbstractContextManager[Any]:
    def again(before, after):
        done = after.in_state(states.Completed)
        return after.with_steps(*(replace(step, state=states.Waiting()) for step in done))

    return a_recovered_order(again)


def only_sends_what_the_operator_wants() -> AbstractContextManager[Any]:
    async def act(self, action, order_id, request):
        order = await self.store.load(order_id)
        command = command_of(action, request)
        await self.unit_of_work._send(action.act(order, command, self.clock()))

    return patch.object(OperatorService, "act", act)


def forgets_that_the_undo_goes_on() -> AbstractContextManager[Any]:
    def reset(step):
        fresh = verbs.reset(step)
        is_undo = isinstance(fresh.state, states.UndoPending)
        return replace(fresh, state=states.Waiting()) if is_undo else fresh

    return _resets_otherwise(reset)


def takes_the_newer_for_retired() -> AbstractContextManager[Any]:
    return patch.object(
        Workflows, "was_retired", lambda self, name, version: self.find(name, version) is None
    )


def refuses_replies_to_newer_orders() -> AbstractContextManager[Any]:
    def receive(self, *args):
        try:
            return original_receive(self, *args)
        except NewerWorkflowError:
            order, reply, now, _, agent = args
            refused = reply_decisions._refused(Delivery(reply, agent), NOT_VALID)
            return self._note(order, refused, now)

    return patch.object(SchedulerRules, "receive", receive)


def waits_for_what_was_retired() -> AbstractContextManager[Any]:
    return patch.object(Workflows, "was_retired", lambda self, name, version: False)


def gives_up_what_a_newer_provider_may_have_done() -> AbstractContextManager[Any]:
    return patch.object(Proceed, "_may_be_newer", lambda self, draft: False)


def takes_replies_of_former_attempts() -> AbstractContextManager[Any]:
    def why_invalid(step, delivery, *args):
        reply = delivery.reply.model_copy(update={"attempt": step.counts.attempts})
        return original_why_invalid(step, replace(delivery, reply=reply), *args)

    return patch.object(reply_decisions, "_why_invalid", why_invalid)


def waits_out_every_rest() -> AbstractContextManager[Any]:
    def next_start(self, now):
        latest = max(step.not_before or now for step in self.steps)
        return latest if latest > now else None

    return patch.object(OrderAggregate, "next_start", next_start)


def dates_the_first_steps_alone() -> AbstractContextManager[Any]:
    def starts_at(self, step):
        return step.not_before if step.rules.after else original_starts_at(self, step)

    return patch.object(OrderAggregate, "starts_at", starts_at)


def starts_orders_whatever_their_date() -> AbstractContextManager[Any]:
    def started(self, order, now):
        dateless = replace(order, submitted=replace(order.submitted, not_before=None))
        return original_started(self, dateless, now)

    return _Both(
        patch.object(Proceed, "_started", started),
        patch.object(OrderAggregate, "not_claimable", lambda order, now: order.blocked()),
        patch.object(work_index, "may_be_claimed", lambda row, now: True),
        patch.object(work_index, "pauses", lambda row, now: False),
    )


def repeats_without_a_pause() -> AbstractContextManager[Any]:
    return patch.object(backoff, "next_start", lambda *args: None)


def pauses_ever_as_long() -> AbstractContextManager[Any]:
    return patch.object(backoff, "interval_after", lambda uncounted: backoff.SHORTEST)


def forgets_the_pause_that_an_agent_names() -> AbstractContextManager[Any]:
    next_start = backoff.next_start
    return patch.object(
        backoff,
        "next_start",
        lambda started_at, now, uncounted, retry_after: next_start(started_at, now, uncounted),
    )


def takes_a_pause_for_a_chosen_time() -> AbstractContextManager[Any]:
    return patch.object(work_index, "is_pause", lambda order, steps, until: False)


def undoes_before_the_attempt_is_over() -> AbstractContextManager[Any]:
    return patch.object(
        late_effects,
        "effects_final_at",
        lambda step, now, tolerance: now + step.rules.late_effect_window,
    )


def undoes_what_completed_at_once() -> AbstractContextManager[Any]:
    def at_once(step, undo):
        is_done = isinstance(step.state, states.Completed)
        return replace(undo, state=states.UndoPending()) if is_done else undo

    return an_undo(at_once)


def ends_what_was_retired_while_it_runs() -> AbstractContextManager[Any]:
    def end_at_once(draft):
        cause = Cause(Code.WORKFLOW_RETIRED, {"workflow": "retired", "version": 1})
        return original_end_anew(draft, Outcome.FAILED, None, cause)

    return _Both(patch.object(claim_decisions, "_end_of_retired", end_at_once), without_tables())


def passes_on_what_a_workflow_raises() -> AbstractContextManager[Any]:
    request_of = requests.RequestMaker.request_of

    def raising(*args):
        try:
            return request_of(*args)
        except requests.BrokenRequestError as error:
            raise ZeroDivisionError from error

    return patch.object(requests.RequestMaker, "request_of", raising)


def an_expired_step(change: Callable[[Step, Step], Step]) -> AbstractContextManager[Any]:
    """What becomes of a step that has timed out, changed once more, by the step before and after."""
    expire = verbs.expire
    return patch.object(
        verbs, "expire", lambda step, *args, **more: change(step, expire(step, *args, **more))
    )


def rests_for_twice_as_long() -> AbstractContextManager[Any]:
    def longer(before, after):
        if not isinstance(after.state, states.CoolingDown):
            return after
        cooling, more = after.state, after.rules.cooldown
        later = replace(cooling, until=cooling.until + more, retry_by=cooling.retry_by + more)
        return replace(after, state=later)

    return an_expired_step(longer)


def counts_no_failure_of_the_step() -> AbstractContextManager[Any]:
    def uncounted(before, after):
        counts = replace(after.counts, failures=before.counts.failures)
        return replace(after, counts=counts)

    return an_expired_step(uncounted)


def tries_once_more() -> AbstractContextManager[Any]:
    expire = verbs.expire

    def patient(step, *args, **more):
        rules = replace(step.rules, threshold=step.rules.threshold + 1)
        return replace(expire(replace(step, rules=rules), *args, **more), rules=step.rules)

    return patch.object(verbs, "expire", patient)


def allows_more_than_its_time() -> AbstractContextManager[Any]:
    def started(self, order, now):
        for step in original_started(self, order, now):
            later = step.state.complete_by + TOLERANCE
            yield replace(step, state=replace(step.state, complete_by=later))

    return patch.object(Proceed, "_started", started)


def starts_steps_that_rest() -> AbstractContextManager[Any]:
    def started(self, order, now):
        with patch.object(OrderAggregate, "starts_at", lambda self, step: None):
            return list(original_started(self, order, now))

    return patch.object(Proceed, "_started", started)


def judges_at_every_try() -> AbstractContextManager[Any]:
    def go_on(self, draft):
        return original_proceed(self, replace(draft, order=judged_anew(draft.order, self.workflow)))

    def judged_anew(order, workflow):
        again = (
            replace(step, state=states.ConditionPending())
            for step in (() if order.is_undo else order.ready)
            if workflow.definition(step.name).conditions
        )
        return order.with_steps(*again)

    return patch.object(Proceed, "__call__", go_on)


def forgets_the_point_of_no_return() -> AbstractContextManager[Any]:
    return patch.object(OrderAggregate, "passed_pivots", lambda self: ())


def leaves_what_it_went_on_without() -> AbstractContextManager[Any]:
    return an_undo(lambda step, undo: step if isinstance(step.state, states.Skipped) else undo)


def takes_replies_to_what_has_failed() -> AbstractContextManager[Any]:
    def why_invalid(step, *args):
        is_failed = isinstance(step.state, states.Failed)
        return None if is_failed else original_why_invalid(step, *args)

    return _Both(patch.object(reply_decisions, "_why_invalid", why_invalid), without_tables())


def calls_incomplete_what_is_undone() -> AbstractContextManager[Any]:
    def end(draft, outcome, step, cause):
        has_failed = draft.order.has_any(states.Failed, states.UndoFailed, states.NothingToUndo)
        is_stuck = has_failed and outcome is Outcome.UNDONE
        return original_end_anew(
            draft, Outcome.UNDO_INCOMPLETE if is_stuck else outcome, step, cause
        )

    return an_end(end)


def offers_less_than_can_be_done() -> AbstractContextManager[Any]:
    return patch.object(alerts, "possible", lambda order, now: ["resubmit"])


def publishes_no_reasons() -> AbstractContextManager[Any]:
    published = Publisher.publish

    async def publish(self, events):
        await published(
            self, [replace(event, data={**event.data, "reason": None}) for event in events]
        )

    return patch.object(Publisher, "publish", publish)


def tells_of_a_step_again() -> AbstractContextManager[Any]:
    def notices_of(before, after, entry, address=None):
        done = after.in_state(states.Completed)
        again = (StepCompleted(step=step.name, attempt=step.counts.attempts) for step in done)
        return original_notices_of(before, after, replace(entry, events=(*entry.events, *again)))

    return patch.object(outbox, "notices_of", notices_of)


def numbers_notices_by_transition() -> AbstractContextManager[Any]:
    return patch.object(outbox, "MAX_PER_TRANSITION", 0)


def backup_answers_without_a_time_to_live() -> AbstractContextManager[Any]:
    def to_bus(self, agent, now):
        message = original_to_bus(self, agent, now)
        return replace(message, time_to_live=None) if agent == "payment-backup" else message

    return patch.object(ReplyMessage, "to_bus", to_bus)


def charges_what_nobody_has_begun() -> AbstractContextManager[Any]:
    return patch.object(supervisor_rules, "has_begun", lambda health, request: True)


def charges_what_was_begun_to_nobody() -> AbstractContextManager[Any]:
    return patch.object(supervisor_rules, "has_begun", lambda health, request: False)


def says_what_it_begins_once_it_is_done() -> AbstractContextManager[Any]:
    async def call(self, request, *, first):
        result = await original_call(self, request, first=False)
        await self.health_reporter.request_started(request)
        return result

    return patch.object(AgentService, "_call", call)


def never_says_at_once_what_it_begins() -> AbstractContextManager[Any]:
    return patch.object(HealthReporter, "_is_reported", lambda self, request: True)


def forgets_what_an_order_that_runs_could_start() -> AbstractContextManager[Any]:
    def index_rows(order, items):
        rows = original_index_rows(order, items)
        waits = order.process_state is ProcessState.PENDING
        return {
            key: row
            for key, row in rows.items()
            if waits or not key.startswith(WorkItemKind.PENDING)
        }

    return patch.object(lists, "index_rows", index_rows)


def writes_though_nothing_starts() -> AbstractContextManager[Any]:
    start = Proceed._start
    return patch.object(
        Proceed,
        "_start",
        lambda self, draft: start(self, replace(draft, order=replace(draft.order))),
    )


def closes_the_agent_on_the_word_of_one() -> AbstractContextManager[Any]:
    def requests_from(health, agent, now):
        return next(
            (report.open_until for report in health if report.agent == agent and report.open_until),
            None,
        )

    return patch.object(admission, "requests_from", requests_from)


def asks_another_provider() -> AbstractContextManager[Any]:
    return a_requested_agent(lambda self, step: with_key(step, provider=None))


def a_requested_agent(change: Callable[[Proceed, Step], Step]) -> AbstractContextManager[Any]:
    """The agent that is chosen, by the step as it is changed before."""
    agent_for = Proceed._agent_for
    return patch.object(
        Proceed, "_agent_for", lambda self, step: agent_for(self, change(self, step))
    )


def asks_another_provider_what_was_not_tried() -> AbstractContextManager[Any]:
    def forgotten(self, step):
        may_be_done = isinstance(step.effect, Doubt) or isinstance(step.state, states.UndoPending)
        return step if may_be_done else with_key(step, provider=None)

    return a_requested_agent(forgotten)


def sends_it_to_the_end_of_the_queue() -> AbstractContextManager[Any]:
    return patch.object(derive, "_ready_since", lambda before, after, now: now)


def takes_the_newest_first() -> AbstractContextManager[Any]:
    def lane(waiting, needs, priority):
        return deque(reversed(original_lane(waiting, needs, priority)))

    return patch.object(claim_queue, "_lane", lane)


def names_no_agents_in_the_work_index() -> AbstractContextManager[Any]:
    summary = lists.summary
    return patch.object(lists, "summary", lambda order: summary(order) | {"Agents": None})


def claims_more_than_fits() -> AbstractContextManager[Any]:
    return patch.object(Admission, "_limit", lambda *_: 10)


def takes_normal_orders_first() -> AbstractContextManager[Any]:
    return patch.object(claim_queue, "NORMAL_PRIORITY_SHARE", 1)


def ends_the_poll_at_a_row_that_nobody_can_read() -> AbstractContextManager[Any]:
    def candidate(self, now, row):
        return None if row.data["UpdatedAt"] > now else original_candidate(self, now, row)

    return patch.object(SchedulerService, "_candidate", candidate)


def counts_an_answer_twice() -> AbstractContextManager[Any]:
    why_not, record = decide.why_closed, decide._recorded

    def why_not_again(order, step):
        return None if isinstance(step.state, states.Completed) else why_not(order, step)

    def record_again(step, event):
        again = ExternalEventRecorded(step=step.name, attempt=step.counts.attempts)
        return (step, again) if isinstance(step.state, states.Completed) else record(step, event)

    return _Both(
        patch.object(decide, "_is_known", lambda step, event: False),
        _Both(
            patch.object(decide, "why_closed", why_not_again),
            patch.object(decide, "_recorded", record_again),
        ),
    )


def lets_a_wait_hold_up_the_end() -> AbstractContextManager[Any]:
    go_forward = Proceed._go_forward

    def held_up(self, draft):
        waits = draft.order.has_any(states.Failed) and draft.order.has_any(states.UnderWay)
        return self._start(draft) if waits else go_forward(self, draft)

    return patch.object(Proceed, "_go_forward", held_up)


def takes_answers_of_what_was_withdrawn() -> AbstractContextManager[Any]:
    complete = external_steps.complete_by_event.__wrapped__  # whatever state the step is in
    return _Both(
        patch.object(decide, "why_closed", lambda order, step: None),
        patch.object(external_steps, "complete_by_event", complete),
    )


def calls_again_what_is_answered_over_its_link() -> AbstractContextManager[Any]:
    async def call(self, request, *, first):
        try:
            return await original_call(self, request, first=first)
        except AnswersLaterError:
            return await original_call(self, request, first=False)

    return patch.object(AgentService, "_call", call)


def refuses_what_a_service_says() -> AbstractContextManager[Any]:
    why_not = decide.why_closed

    def why_closed(order, step):
        unknown = Cause(Code.EVENT_FOR_UNKNOWN_STEP, {"step": step.name})
        return why_not(order, step) if step.is_external else unknown

    return patch.object(decide, "why_closed", why_closed)


def leaves_no_doubt_of_a_call_that_asks_again() -> AbstractContextManager[Any]:
    def refuse(step, cause, *, unanswered=False, for_good=False):
        return verbs.refuse(step, cause, for_good=for_good)

    otherwise = SimpleNamespace(**{**vars(verbs), "refuse": refuse})
    return patch.object(decide, "verbs", otherwise)


def undoes_by_a_forgotten_key() -> AbstractContextManager[Any]:
    return patch.object(key_generations, "is_undone_by_key", lambda step: False)


def asks_a_stranger_once_its_agent_is_gone() -> AbstractContextManager[Any]:
    def forgotten(self, step):
        is_here = step.key and step.key.provider in self.scheduler.providers.values()
        return step if is_here else with_key(step, provider=None)

    return _Both(
        patch.object(Proceed, "unreachable", lambda self, steps: []), a_requested_agent(forgotten)
    )


def undoes_what_a_gateway_turned_away() -> AbstractContextManager[Any]:
    def fault_of(health, request):
        fault = original_fault_of(health, request)
        return fault and replace(fault, by_gateway=False)

    return patch.object(supervisor_rules, "fault_of", fault_of)


def undoes_in_the_recovery() -> AbstractContextManager[Any]:
    return _Both(
        patch.object(recover_decisions, "is_to_be_undone", lambda order: False),
        patch.object(recover_decisions, "end_failed", undo.end_or_undo),
    )


def forgets_the_doubt_of_a_time_out() -> AbstractContextManager[Any]:
    expire = verbs.expire_overloaded
    return patch.object(
        verbs,
        "expire_overloaded",
        lambda step, *args: replace(expire(step, *args), effect=step.effect),
    )


def spares_overloaded_attempts_for_ever() -> AbstractContextManager[Any]:
    return patch.object(step_kinds, "MAX_OVERLOADED_ATTEMPTS", 100)


def takes_two_orders_for_several() -> AbstractContextManager[Any]:
    return patch.object(agent_health, "OVERLOAD_ORDERS", 2)


def decides_by_the_fault_of_another_request() -> AbstractContextManager[Any]:
    def fault_of(health, request):
        faults = [fault for row in health for fault in row.faults]
        return max(faults, key=lambda fault: fault.by_gateway, default=None)

    return patch.object(supervisor_rules, "fault_of", fault_of)


def restores_what_may_be_done_as_not_begun() -> AbstractContextManager[Any]:
    return patch.object(restore, "_unknown_since", lambda step, copied, now: step)


def restores_as_if_the_first_provider_was_called() -> AbstractContextManager[Any]:
    return patch.object(restore, "_providers_of", lambda step, agents: {agents[0].name})


def restores_as_if_keys_were_known() -> AbstractContextManager[Any]:
    def known_until(step, *_):
        return step.key.known_until if step.key else None

    return patch.object(restore, "_known_until", known_until)


def begins_before_a_timer() -> AbstractContextManager[Any]:
    return patch.object(
        conditions, "schedule", lambda step, at: replace(step, state=states.Waiting())
    )


def undoes_past_the_pivot_in_doubt() -> AbstractContextManager[Any]:
    def passed_pivots(self):
        done = (states.Completed, states.Skipped)
        return tuple(
            step for step in self.steps if step.rules.pivot and isinstance(step.state, done)
        )

    return patch.object(OrderAggregate, "passed_pivots", passed_pivots)


def leaves_an_order_without_a_way_out() -> AbstractContextManager[Any]:
    return patch.object(settle, "steps_in_doubt", lambda order: ())


def holds_and_lets_the_deadline_pass() -> AbstractContextManager[Any]:
    return patch.object(release, "move_deadlines", lambda order, held_for: order)


def never_sweeps_what_waits() -> AbstractContextManager[Any]:
    return patch.object(
        supervisor_service, "product", lambda buckets, _: [("b00", WorkItemKind.RUNNING)]
    )


def keeps_nobody_s_lock() -> AbstractContextManager[Any]:
    return patch.object(derive, "_locked_by", lambda order: getattr(order.state, "instance", None))


def starts_what_comes_after_an_early_answer() -> AbstractContextManager[Any]:
    def dependencies(order):
        return {step.name: frozenset(step.rules.after) for step in order.steps}

    return patch.object(OrderAggregate, "dependencies", property(dependencies))


def counts_the_deadline_from_the_claim() -> AbstractContextManager[Any]:
    def claim(self, order, now, *more):
        deadline, is_new = order.deadline, not any(step.counts.attempts for step in order.steps)
        if deadline and is_new:
            moved = replace(deadline, due_by=deadline.due_by + (now - order.submitted.placed_at))
            order = replace(order, deadline=moved)
        return original_claim(self, order, now, *more)

    return patch.object(SchedulerRules, "claim", claim)


def starts_after_the_deadline() -> AbstractContextManager[Any]:
    def may_start(order, step, now):
        return (order.starts_at(step) or now) <= now

    return patch.object(OrderAggregate, "may_start", may_start)


def completes_after_the_deadline() -> AbstractContextManager[Any]:
    return patch.object(proceed, "_complete_by", lambda order, step, now: now + step.rules.timeout)


def shows_a_time_after_the_deadline() -> AbstractContextManager[Any]:
    def complete_by(order):
        return original_complete_by(replace(order, deadline=None))

    return patch.object(derive, "_complete_by", complete_by)


def never_checks_deadlines() -> AbstractContextManager[Any]:
    return patch.object(Workflows, "have_deadlines", False)


def compares_with_the_priority_of_now() -> AbstractContextManager[Any]:
    return patch.object(
        submission_rules,
        "same_submission",
        lambda existing, new, payload: existing.priority is new.priority,
    )


class _Both:
    """Several patches as one."""

    def __init__(self, *patches: Any) -> None:
        self._patches = patches

    def __enter__(self) -> None:
        for patched in self._patches:
            patched.__enter__()

    def __exit__(self, *args: object) -> None:
        for patched in reversed(self._patches):
            patched.__exit__(*args)


SEEDED_FAULTS: Mapping[str, tuple[SeededFault, WorldOf]] = {
    "SCH-2 claims what another scheduler has": (claims_what_is_taken, SKIPPED),
    "SCH-2 writes without looking at ETags": (writes_without_looking_at_etags, CANCELLED),
    "SCH-3 sends the request before it is recorded": (sends_before_it_writes, UNDISTURBED),
    "SCH-2 takes a conflict for success": (believes_a_conflict_to_be_its_own_write, CANCELLED),
    "SCH-6 refuses a reply from memory": (
        decides_from_memory_that_there_is_nothing_to_do,
        RECALLED_APART,
    ),
    "SCH-2 claims what another scheduler has that polls": (claims_what_is_taken, NEVER_POLLS),
    "SUP-4 counts a failure twice, of two orders at once": (counts_a_failure_twice, TWO_AT_ONCE),
    "SCH-6 takes replies after their time": (takes_replies_after_their_time, SKIPPED),
    "SCH-6 takes replies to steps that do not run": (
        takes_replies_to_steps_that_do_not_run,
        SKIPPED,
    ),
    "SCH-1 never polls": (never_polls, RESTED),
    "WRK-2 believes for ever what it did": (believes_for_ever_what_it_did, ONE_SLOT),
    "AGT-3 another idempotency key for each attempt": (another_key_per_attempt, UNDISTURBED),
    "AGT-4 replies after the complete-by time": (replies_after_its_time, GIVEN_UP),
    "AGT-5 calls after the complete-by time": (calls_after_its_time, GIVEN_UP),
    "SUP-2 never sweeps": (never_sweeps, SKIPPED),
    "SUP-2 recovers before the time is up": (recovers_before_the_time_is_up, UNDISTURBED),
    "SUP-3 recovers without unlocking": (leaves_the_order_locked, TRIED_AGAIN),
    "SUP-3 forgets when the retry is due": (forgets_when_the_retry_is_due, TRIED_AGAIN),
    "SUP-4 counts a failure twice": (counts_a_failure_twice, TRIED_AGAIN),
    "SUP-3 rests without giving the order back": (rests_without_giving_the_order_back, RESTED),
    "AGT-8 takes what was not tried for done": (takes_what_was_not_tried_for_done, CIRCUIT),
    "AGT-10 another key at another agent": (another_key_at_another_agent, REROUTED),
    "SCH-12 gives up while the step runs": (gives_up_and_lets_the_step_run, SKIPPED),
    "SCH-10 starts steps in any order": (starts_steps_in_any_order, CANCELLED),
    "SCH-12 starts steps after a failure": (starts_steps_after_a_failure, TWO_STEPS),
    "UND-1 undoes steps in any order": (undoes_steps_in_any_order, CANCELLED),
    "UND-2 leaves what was not answered": (leaves_what_was_not_answered, TAKEN_BACK),
    "UND-5 calls undone what is not": (calls_undone_what_is_not, TAKEN_BACK),
    "ALR-1 gives up without an alert": (gives_up_without_an_alert, CANCELLED),
    "ALR-1 confirms an alert before it is published": (confirms_before_it_sends, CANCELLED),
    "SUP-5 sweeps without being elected": (sweeps_without_being_elected, UNANSWERED),
    "SUP-5 goes on without the lease": (goes_on_without_the_lease, UNANSWERED),
    "AGT-4 answers without a time to live": (answers_without_a_time_to_live, UNDISTURBED),
    "SCH-9 does again what was done": (does_again_what_was_done, TWO_STEPS),
    "OPR-6 only sends what the operator wants": (only_sends_what_the_operator_wants, CANCELLED),
    "FLT-9 keeps no margin before the complete-by time": (keeps_no_margin, CLOCKS_DIFFER),
    "FLT-9 allows for no other clock": (allows_for_no_other_clock, CLOCKS_DIFFER),
    "FLT-10 forgets that the undo goes on": (forgets_that_the_undo_goes_on, UNDO_FAILS),
    "FLT-12 takes the newer for retired": (takes_the_newer_for_retired, UPGRADED),
    "FLT-12 refuses replies to newer orders": (refuses_replies_to_newer_orders, UPGRADED),
    "FLT-12 waits for what was retired": (waits_for_what_was_retired, GONE),
    "FLT-12 gives up what a newer provider may have done": (
        gives_up_what_a_newer_provider_may_have_done,
        PROVIDER_ADDED,
    ),
    "SCH-6 takes replies of former attempts": (takes_replies_of_former_attempts, TRIED_AGAIN),
    "SUP-3 waits out every rest": (waits_out_every_rest, RESTS_BESIDE),
    "UND-2 undoes before the attempt is over": (undoes_before_the_attempt_is_over, SETTLES),
    "UND-2 undoes at once what completed after a call that hangs": (
        undoes_what_completed_at_once,
        SETTLES_DONE,
    ),
    "UND-2 undoes at once what completed and was delivered twice": (
        undoes_what_completed_at_once,
        SETTLES_TWICE,
    ),
    "SCH-12 ends what was retired while it runs": (
        ends_what_was_retired_while_it_runs,
        RETIRED_WHILE_IT_RUNS,
    ),
    "SCH-8 passes on what a workflow raises": (passes_on_what_a_workflow_raises, NOT_BUILT),
    "SUP-3 rests for twice as long": (rests_for_twice_as_long, RESTED),
    "SUP-6 undoes in the recovery": (undoes_in_the_recovery, TAKEN_BACK),
    "SUP-3 undoes what a gateway turned away": (undoes_what_a_gateway_turned_away, TURNED_AWAY),
    "SUP-3 decides by the fault of another request": (
        decides_by_the_fault_of_another_request,
        TURNED_AWAY,
    ),
    "UND-2 forgets the doubt of a time-out": (forgets_the_doubt_of_a_time_out, HANGS),
    "SUP-3 spares overloaded attempts for ever": (spares_overloaded_attempts_for_ever, HANGS),
    "AGT-8 takes two orders for several": (takes_two_orders_for_several, HANGS),
    "SUP-4 counts no failure of the step": (counts_no_failure_of_the_step, TRIED_AGAIN),
    "SUP-3 tries once more than the threshold": (tries_once_more, GIVEN_UP),
    "SCH-3 allows more than its time": (allows_more_than_its_time, UNDISTURBED),
    "SUP-3 starts steps that rest": (starts_steps_that_rest, RESTS_BESIDE),
    "SCH-6 takes replies to what has failed": (
        takes_replies_to_what_has_failed,
        replace(GIVEN_UP, faults=2, acts=0),
    ),
    "UND-5 calls incomplete what is undone": (calls_incomplete_what_is_undone, PLAIN_ENDED),
    "ALR-1 offers less than can be done": (offers_less_than_can_be_done, GIVEN_UP),
    "ALR-1 publishes no reasons": (publishes_no_reasons, GIVEN_UP),
    "ALR-2 tells of a step again": (tells_of_a_step_again, NOTIFIED),
    "ALR-2 numbers notices by their transition": (numbers_notices_by_transition, NOTIFIED),
    "ALR-2 confirms notices before it sends them": (confirms_before_it_sends, NOTIFIED),
    "AGT-4 the backup answers without a time to live": (
        backup_answers_without_a_time_to_live,
        REROUTED,
    ),
    "AGT-10 names no agents in the work index": (names_no_agents_in_the_work_index, UNDISTURBED),
    "WRK-2 claims more than fits": (claims_more_than_fits, URGENT_FIRST),
    "SCH-11 takes normal orders first": (takes_normal_orders_first, URGENT_FIRST),
    "SCH-11 ends the poll at a row that nobody can read": (
        ends_the_poll_at_a_row_that_nobody_can_read,
        UNCLAIMABLE,
    ),
    "SUP-3 charges a first attempt whose reply may wait": (charges_a_reply_that_waits, UNANSWERED),
    "SUP-9 sends what no agent begins for ever": (sends_for_ever, NOT_BEGUN),
    "SUP-9 undoes the order, since no agent began": (undoes_what_no_agent_began, NOT_BEGUN),
    "SUP-9 waits for a silent agent for ever": (waits_for_a_silent_agent_for_ever, SILENT_OPTIONAL),
    "SUP-9 undoes what a silent agent leaves": (undoes_what_a_silent_agent_leaves, SILENT),
    "SUP-10 probes a silent agent with every order": (
        probes_a_silent_agent_with_every_order,
        SILENT,
    ),
    "SUP-10 probes a silent agent without a pause": (probes_a_silent_agent_without_a_pause, SILENT),
    "SUP-3 charges what nobody has begun": (charges_what_nobody_has_begun, NOT_BEGUN),
    "SUP-3 charges nobody for what was begun": (charges_what_was_begun_to_nobody, UNANSWERED),
    "SUP-3 says what it begins once it is done": (says_what_it_begins_once_it_is_done, UNANSWERED),
    "SUP-3 never says at once what it begins": (never_says_at_once_what_it_begins, KILLED),
    "SCH-1 forgets what an order that runs could start": (
        forgets_what_an_order_that_runs_could_start,
        STARTS_BESIDE,
    ),
    "SCH-2 writes though nothing starts": (writes_though_nothing_starts, ELSEWHERE),
    "AGT-8 closes the agent on the word of one": (
        closes_the_agent_on_the_word_of_one,
        ONE_INSTANCE_BREAKS,
    ),
    "AGT-3 asks another provider": (asks_another_provider, ELSEWHERE),
    "AGT-3 asks another provider what was not tried": (
        asks_another_provider_what_was_not_tried,
        ELSEWHERE,
    ),
    "AGT-3 begins a round in doubt": (begins_a_round_in_doubt, REFUSED_FOR_GOOD),
    "AGT-12 sends what is forgotten": (sends_what_is_forgotten, FORGOTTEN),
    "AGT-12 undoes by a forgotten key": (undoes_by_a_forgotten_key, FORGOTTEN_LATER),
    "AGT-3 asks a stranger once its agent is gone": (
        asks_a_stranger_once_its_agent_is_gone,
        TAKEN_OUT,
    ),
    "AGT-3 undoes the first round": (undoes_the_first_round, REFUSED_FOR_GOOD),
    "SCH-11 sends it to the end of the queue": (sends_it_to_the_end_of_the_queue, TRIED_AGAIN),
    "SCH-11 takes the newest first": (takes_the_newest_first, ARRIVES),
    "OPR-3 counts attempts afresh": (counts_attempts_afresh, GIVEN_UP),
    "OPR-4 takes running steps for ended": (takes_running_steps_for_ended, CANCELLED),
    "OPR-4 takes the order from its scheduler": (takes_the_order_from_its_scheduler, CANCELLED),
    "OPR-4 cancels without turning back": (cancels_without_turning_back, CANCELLED),
    "OPR-4 cancels what is over": (cancels_what_is_over, CANCELLED),
    "OPR-7 starts what is held": (starts_what_is_held, HELD),
    "OPR-7 ends an undo that is held": (ends_an_undo_that_is_held, HELD_BACK),
    "OPR-7 owes nothing to what is held": (owes_nothing_to_what_is_held, HELD),
    "OPR-4 calls done what was skipped": (skips_into_processed, SKIPPED),
    "SCH-13 leaves what it went on without": (leaves_what_it_went_on_without, WITHOUT),
    "SCH-14 judges at each try": (judges_at_every_try, JUDGED_ONCE),
    "SCH-15 begins before its time": (starts_steps_that_rest, LATER),
    "SCH-16 repeats without a pause": (repeats_without_a_pause, CIRCUIT),
    "SCH-16 pauses ever as long": (pauses_ever_as_long, ONE_INSTANCE_BREAKS),
    "AGT-8 forgets the pause that an agent names": (
        forgets_the_pause_that_an_agent_names,
        ACCEPTED,
    ),
    "SCH-16 takes a pause for a chosen time": (takes_a_pause_for_a_chosen_time, CIRCUIT),
    "SUB-9 dates the first steps alone": (dates_the_first_steps_alone, FOR_A_TIME_ANSWERED),
    "SUB-9 starts orders whatever their date": (starts_orders_whatever_their_date, FOR_A_TIME),
    "OPR-11 restores what may be done as not begun": (
        restores_what_may_be_done_as_not_begun,
        RESTORED_CANCELLED,
    ),
    "OPR-11 restores as if the first provider was asked": (
        restores_as_if_the_first_provider_was_called,
        RESTORED_ELSEWHERE,
    ),
    "OPR-11 restores as if keys were known": (restores_as_if_keys_were_known, RESTORED_LATER),
    "UND-6 forgets the point of no return": (forgets_the_point_of_no_return, PIVOT),
    "UND-6 takes a pivot in doubt for not done": (undoes_past_the_pivot_in_doubt, PIVOT_BESIDE),
    "OPR-12 leaves an order without a way out": (leaves_an_order_without_a_way_out, PIVOT_BESIDE),
    "ANS-8 calls again what is answered over its link": (
        calls_again_what_is_answered_over_its_link,
        CALLED_BACK,
    ),
    "ANS-6 refuses what a service says over its link": (refuses_what_a_service_says, CALLED_BACK),
    "AGT-11 leaves no doubt of a call that asks again": (
        leaves_no_doubt_of_a_call_that_asks_again,
        POLLED_AGAIN,
    ),
    "SCH-15 begins before a timer": (begins_before_a_timer, LATER_BESIDE),
    "SCH-12 lets a wait hold up the end": (lets_a_wait_hold_up_the_end, WITHDRAWN),
    "ANS-1 locks what nobody holds": (keeps_nobody_s_lock, WAITS_ALONE),
    "ANS-2 never sweeps what waits": (never_sweeps_what_waits, WAITS_ALONE),
    "ANS-3 counts an answer twice": (counts_an_answer_twice, ANSWERED),
    "ANS-4 takes answers of what was withdrawn": (
        takes_answers_of_what_was_withdrawn,
        ANSWER_CANCELLED,
    ),
    "SCH-10 starts what comes after an early answer": (
        starts_what_comes_after_an_early_answer,
        ANSWERED_BETWEEN,
    ),
    "OPR-7 holds and lets the deadline pass": (holds_and_lets_the_deadline_pass, ANSWER_HELD),
    "SUB-3 compares with the priority of now": (compares_with_the_priority_of_now, HURRIED_AGAIN),
    "SCH-17 counts the deadline from the claim": (counts_the_deadline_from_the_claim, UNDONE_LATE),
    "SCH-17 starts after the deadline": (starts_after_the_deadline, STARTS_LATE),
    "SCH-17 completes after the deadline": (completes_after_the_deadline, UNDONE_LATE),
    "SCH-17 shows a time after the deadline": (shows_a_time_after_the_deadline, ALERTED_LATE),
    "SCH-17 never checks deadlines": (never_checks_deadlines, STARTS_LATE),
}
"""By the statement that each of them breaks, with a small world in which it shows."""

MESSAGE_OF: Mapping[str, str] = {
    "SCH-14 judges at each try": "SCH-14",
    "SCH-16 repeats without a pause": "SCH-16",
    "SCH-16 pauses ever as long": "SCH-16",
    "AGT-3 asks another provider": "AGT-3",
    "AGT-3 asks a stranger once its agent is gone": "may have been done at payment, but is sent to",
    "AGT-8 forgets the pause that an agent names": "AGT-8",
    "AGT-12 undoes by a forgotten key": "the order ended as undone, but these key generations have an effect",
    "SCH-16 takes a pause for a chosen time": "ready since|the work index holds",
    "SUB-9 dates the first steps alone": r"the work index holds .*: expected .*\|later\|",
    "SUB-9 starts orders whatever their date": "started before the time of the order: .*SUB-9",
    "SUP-6 undoes in the recovery": "the supervisor started an undo",
    "SUP-3 undoes what a gateway turned away": "a gateway rejected .*, but the order is undone",
    "UND-2 forgets the doubt of a time-out": "is not in doubt",
    "SUP-3 spares overloaded attempts for ever": "0 failures counted, expected",
    "AGT-8 takes two orders for several": "0 failures counted, expected",
    "SUP-3 decides by the fault of another request": "failed at its service, but the order is not",
    "OPR-11 restores what may be done as not begun": "the order ended as undone, but",
    "OPR-11 restores as if the first provider was asked": "AGT-3",
    "OPR-11 restores as if keys were known": "a second time under a forgotten key",
    "UND-6 forgets the point of no return": "UND-6",
    "UND-6 takes a pivot in doubt for not done": "the order is undone although .* was done",
    "OPR-12 leaves an order without a way out": "no action can end its doubt",
    "SUP-3 forgets when the retry is due": "SUP-3",
    "ANS-8 calls again what is answered over its link": "ANS-8",
    "ANS-6 refuses what a service says over its link": "is refused although it is .*ANS-2",
    "AGT-11 leaves no doubt of a call that asks again": "the order is undone although .* was done",
    "SCH-15 begins before its time": "started before",
    "SCH-15 begins before a timer": "started before their time: .*SCH-15",
    "SCH-12 lets a wait hold up the end": "the end of the order waits for an external event",
    "ANS-1 locks what nobody holds": "LockedBy is scheduler-1",
    "ANS-2 never sweeps what waits": "no end can be reached",
    "ANS-3 counts an answer twice": "answered more than once",
    "ANS-4 takes answers of what was withdrawn": "but is now Completed .ANS-4",
    "SCH-10 starts what comes after an early answer": "the work index holds",
    "FLT-12 gives up what a newer provider may have done": "whose provider it does not know",
    "OPR-7 holds and lets the deadline pass": "moves by the time on hold",
    "SUB-3 compares with the priority of now": "SUB-3",
    "SCH-17 counts the deadline from the claim": "the deadline is .*SCH-17",
    "SCH-17 starts after the deadline": "started after the deadline",
    "SCH-17 completes after the deadline": "and has until .*: expected",
    "SCH-17 shows a time after the deadline": "CompleteBy",
    "SCH-17 never checks deadlines": "the order is .*|no end can be reached",
}
"""By seeded fault what is said of it, so that it is found for the right reason."""
