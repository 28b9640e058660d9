"""The next moves of a world: each delivery, each outcome of an effect, each fault."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

from engine.decisions.operator_actions import possible, why_customer_cannot_cancel
from engine.decisions.transitions import Transition
from engine.domain.errors import ConflictError, NewerWorkflowError, UnavailableError
from engine.domain.keys import bucket_of
from engine.domain.messages import BusMessage
from engine.domain.orders import OrderAggregate
from engine.domain.states import AtWork, UnderWay
from engine.domain.work_index import WorkItemKind
from engine.storage.agent_health import OPERATOR, AgentHealth, AttemptFault
from scheduler.service import WAKE_UP_TIME
from testkit.exploration import callbacks, restoring
from testkit.exploration.beliefs import closed_until, next_refresh, text_of_belief
from testkit.exploration.deployment import (
    CALL_BACK,
    CUSTOMER_CANCEL,
    ERASE,
    LEASE,
    PAUSE_AGENT,
    RESTORE,
    Deployment,
)
from testkit.exploration.driving import (
    Answer,
    Ended,
    Handler,
    HealthRows,
    Job,
    PortCall,
    Raised,
    Returned,
    run,
    settled,
)
from testkit.exploration.due import is_due, may_go_on, polled_from
from testkit.exploration.laws.check import check_commit, check_effect
from testkit.exploration.laws.facts import found_out, is_true
from testkit.exploration.laws.notifications import OF_ENDS
from testkit.exploration.laws.registry import (
    ACTED,
    AFTER_COMMIT,
    ANSWERED,
    DECISION,
    NOTED,
    PUBLISHED,
    READ,
)
from testkit.exploration.ports import RETRY_AFTER
from testkit.exploration.roles import begin
from testkit.exploration.services import Outcome, outcomes_of_call, with_effect
from testkit.exploration.turns import next_check
from testkit.exploration.violations import ViolationError
from testkit.exploration.world import (
    ReportedFault,
    Rows,
    Sent,
    World,
    forget_texts,
    text_of,
    tokens_in,
)
from testkit.memory import MemoryStateStore

INSTANT = timedelta(microseconds=1)
TIMERS = ("sweep", "relay", "poll")
PEOPLE = ("operator", "customer")
"""The slots of people who act on their own initiative."""
SOMEBODY = "outside"
"""The slot of a person who is asked, and may answer."""
CROWDS = (2, 3)
"""For how many orders the calls of an agent may time out at about the same time."""
READS = {"load", "history", "committed", "work_items", "acquire", "health"}
"""Effects that happen immediately. A later read is equal to a slow write, which then conflicts."""


@dataclass(frozen=True, slots=True)
class Move:
    """A possible next event. Its label describes it to people, and identifies it in a replay."""

    label: str
    world: World
    fault: bool = False
    act: bool = False
    """Whether a person decides to do it."""

    @property
    def by_itself(self) -> bool:
        """Whether it happens without a fault and without an act.

        Then it happens sooner or later, if nothing else does.
        """
        return not (self.fault or self.act)


def moves(world: World) -> Iterator[Move]:
    """Yield every move that is possible now, with the faults that this world allows."""
    for move in _moves(world):
        if not move.fault or world.may_fail(move.label):
            yield move


def _moves(world: World) -> Iterator[Move]:
    """Yield every move that is possible now.

    Time passes without a fault only if nothing else is left to do. Slowness is a fault like any
    other, and so are its consequences: a call without an answer, a message that expires, a lease
    that ends.
    """
    yield from _acts(world)
    yield from _answers(world)
    yield from _callbacks(world)
    urgent = [*_beginnings(world), *_landings(world)]
    for handler in world.handlers.values():
        urgent += _outcomes(world, handler)
    yield from urgent
    in_time = all(move.fault for move in urgent)
    if (in_time or world.faults_left) and (
        tick := _tick(world if in_time else _spoiled(world), in_time=in_time)
    ):
        yield tick
    yield from _agents_again(world)
    for message in world.to_come:
        rest = tuple(other for other in world.to_come if other != message)
        yield Move(
            "another order is submitted", world.but(to_come=rest).with_messages([message]), act=True
        )
    yield from _late_effects(world)
    yield from _restorings(world)
    if following := world.deployed.following:
        yield Move("a new version takes over", _deployed_anew(world, following), act=True)
    if world.faults_left:
        yield from _faults(_spoiled(world))


def _agents_again(world: World) -> Iterator[Move]:
    """Agents that take no requests, or make no calls, start again."""
    for name in sorted(world.open - world.broken):
        yield Move(f"the circuit of {name} closes", world.but(open=world.open - {name}))
    for name in sorted(world.paused):
        yield Move(f"the pause of the agent {name} ends", world.but(paused=world.paused - {name}))
    for name in sorted(world.away):
        yield Move(f"agent {name} is started again", world.but(away=world.away - {name}), act=True)


# What begins


def _beginnings(world: World) -> Iterator[Move]:
    for message in dict.fromkeys(world.queue):
        for slot in _idle(world, message.kind):
            is_broken = slot in world.broken & world.open
            is_away = world.deployed.requests.get(message.kind) in world.away
            if is_broken or is_away or not world.deployed.has_agent(slot, message.agent):
                continue
            job = Job(
                kind=message.kind, body=message.body, agent=message.agent, expires=message.expires
            )
            yield _begun(
                world.without_message(message), slot, job, f"{slot} takes the {message.kind}"
            )
    for kind in TIMERS:
        for slot in _idle(world, kind):
            if is_due(world, kind, world.deployed.clock_of(slot, world.now)):
                begun = _begun(
                    world, slot, Job(kind=kind, body=world.order_id), f"{slot} begins to {kind}"
                )
                if kind != "poll" or begun.world.key() != world.key():
                    yield begun  # where there is no room, a poll finds the same again and again


def _idle(world: World, kind: str) -> list[str]:
    """Return the slots that may take a job of this kind.

    Of several slots that differ only in their names, this is the first.
    """
    idle = [slot for slot in world.deployed.slots[kind] if slot not in world.handlers]
    if kind == "sweep" or not world.deployed.alike:
        return idle
    return idle[:1]


def _acts(world: World) -> Iterator[Move]:
    """Yield the acts of people that are possible now. Nothing else waits for them."""
    if not world.acts_left or not world.handlers.keys().isdisjoint(PEOPLE):
        return
    spent = world.but(acts_left=world.acts_left - 1)
    for part in world.parts():
        for slot, kind in _wishes(part):
            job, words = Job(kind=kind, body=part.order_id), kind.removeprefix(f"{slot}-")
            if kind == "settle":
                step, done = found_out(part, part.order())
                job = replace(job, step=step.name, done=done)
                words = f"settle {step.name}, which was {'' if done else 'not '}done"
            yield replace(_begun(spent, slot, job, f"{slot} begins to {words}"), act=True)
    if PAUSE_AGENT in world.operator:
        for name in sorted(world.deployed.agents.keys() - world.paused):
            paused = spent.but(paused=world.paused | {name})
            yield Move(f"operator pauses the agent {name}", paused, act=True)


def _answers(world: World) -> Iterator[Move]:
    """Yield the possible answers of people, including repeated ones.

    Nothing else waits for them.
    """
    if SOMEBODY in world.handlers:
        return
    for part in world.parts():
        order = part.order()
        external = [step for step in order.steps if step.is_external] if order else []
        for step, kind in product(external, world.outside):
            job = Job(kind=kind, body=part.order_id, step=step.name)
            label = f"{SOMEBODY} begins to {kind}: {step.name}"
            yield replace(_begun(world, SOMEBODY, job, label), act=True)


def _callbacks(world: World) -> Iterator[Move]:
    """Yield the possible answers of services at callback URLs. Nothing else waits for them."""
    if callbacks.SERVICE in world.handlers:
        return
    for key, job in callbacks.answers(world):
        after = callbacks.linked(world, key, job.token)
        if job.kind == CALL_BACK:
            done = f"{key} do" in world.effects
            after = after.but(effects=world.effects if done else with_effect(world, key, "do"))
            label = f"the service of {job.step} has done it, and answers over its link"
        else:
            after = after.but(declined=world.declined | {key}, refused=_remembered(world, job, key))
            label = f"the service of {job.step} refuses over its link"
        yield replace(_begun(after, callbacks.SERVICE, job, label), act=True)


def _remembered(world: World, job: Job, key: str) -> frozenset[str]:
    """Return the refusals that services remember after this key is refused at its callback URL."""
    order = world.about(job.body).order()
    step = order.step(job.step) if order else None
    agent = world.deployed.agents.get(step.agent) if step else None
    return world.refused | {key} if agent and agent.remembers_refusals else world.refused


def _deployed_anew(world: World, following: Deployment) -> World:
    """Return the world in which another version runs.

    Nobody reads the queues of agents that it does not have.
    """
    world = _cut_off(world)
    here = {*following.agents}
    queue = tuple(
        sent
        for sent in world.queue
        if sent.agent in {"", *here} and world.deployed.requests.get(sent.kind, "") in {"", *here}
    )
    return world.but(deployed=following, queue=queue, open=world.open & here)


def _cut_off(world: World) -> World:
    """Return the world in which all processes have ended, and their messages are redelivered."""
    for handler in world.handlers.values():
        world = _given_back(world.without_handler(handler.slot), handler)
    return world.but(beliefs={}, memories={})


def _restorings(world: World) -> Iterator[Move]:
    """Yield the moves that copy the store, or lose and restore it."""
    if world.copied:
        back = restoring.restored(_cut_off(world))
        yield Move("the store is lost, and restored from the copy", back, act=True)
    elif RESTORE in world.operator and world.acts_left and not world.restored and world.order():
        spent = world.but(acts_left=world.acts_left - 1)
        yield Move("somebody takes a copy", restoring.copied(spent), act=True)


def _wishes(world: World) -> Iterator[tuple[str, str]]:
    """Yield the acts of operators and the customer that are possible for the order."""
    order = world.order()
    if order is None:
        return
    for kind in possible(order, world.now):
        pending = kind in ("retry-with-new-key", "settle") and callbacks.undecided(world)
        if kind in world.operator and not pending and is_true(world, order, kind):
            yield "operator", kind
    if ERASE in world.operator:
        yield "operator", ERASE
    endpoint = world.deployed.endpoint_of(order.workflow)
    until = endpoint.cancel_until if endpoint else None
    if CUSTOMER_CANCEL in world.operator and not why_customer_cannot_cancel(order, until):
        yield "customer", CUSTOMER_CANCEL


def _begun(world: World, slot: str, job: Job, label: str) -> Move:
    belief, memory = world.beliefs.get(slot), world.memories.get(slot, ())
    handler = Handler(slot=slot, job=job, belief=belief, memory=memory)
    return Move(label, _go_on(world, handler))


# What handlers do


_runs: dict[tuple[Any, ...], tuple[Handler, PortCall | Ended, int]] = {}


def forget() -> None:
    """Forget results of worlds with other rules."""
    _runs.clear()
    forget_texts()


def _run(world: World, handler: Handler) -> tuple[Handler, PortCall | Ended, int]:
    """Run the handler on its log."""
    # The result is cached, because in most worlds the handler learns the same at this place.
    belief = handler.belief and text_of_belief(handler.belief, world.now)
    log = [*map(text_of, handler.log), *_tokens(world, handler)]
    memory = tuple(map(text_of, handler.memory))
    place = (id(world.deployed), handler.slot, handler.job, belief, memory)
    key = (*place, world.now, world.open, world.ids, *log)
    if (known := _runs.get(key)) is None:
        ids = world.ids

        def ask(what: str) -> Any:
            """Return what a handler gets without giving up control: the time, a circuit, an id."""
            nonlocal ids
            if what == "now":
                return world.now
            if what.startswith("open "):
                return not world.open.isdisjoint(what.split(" ")[1:])
            ids += 1
            return f"~{ids}~"

        known = _runs[key] = (*run(handler, partial(begin, world.deployed), ask), ids)
    return known


def _tokens(world: World, handler: Handler) -> Iterator[str]:
    """Yield the callback tokens that a handler has read, if services answer with them."""
    if world.deployed.called_back:
        values = (entry.value for entry in handler.log if isinstance(entry, Returned))
        yield from (str(tokens_in(value)) for value in values if isinstance(value, OrderAggregate))


def _go_on(world: World, handler: Handler) -> World:
    """Run the handler up to its next effect with several outcomes, or to its end."""
    while True:
        handler, reached, ids = _run(world, handler)
        world = world.but(ids=ids)
        if isinstance(reached, Ended):
            rested = world.without_handler(handler.slot).believing(handler.slot, handler.belief)
            return _ended(rested.remembering(handler.slot, handler.memory), handler, reached.error)
        if not _is_read(world, reached):
            check_effect(world, handler, reached)
            return world.with_handler(replace(handler, since=world.now))
        READ.check(world, handler, reached)
        world, answer = _read(world, handler, reached)
        handler = handler.with_answer(answer)


def _is_read(world: World, effect: PortCall) -> bool:
    is_settled = effect.name == "choose" and not world.deployed.either_way
    return effect.name in READS or is_settled


def _ended(world: World, handler: Handler, error: Exception | None) -> World:
    """Settle the message, or redeliver it if a dependency was unavailable."""
    if any(isinstance(cause, UnavailableError | NewerWorkflowError) for cause in _causes(error)):
        return _given_back(world, handler)
    by_people = handler.slot in (*PEOPLE, SOMEBODY, callbacks.SERVICE)
    if error is not None and not (by_people and isinstance(error, callbacks.REFUSALS)):
        raise ViolationError(f"{handler.slot} failed at {handler.job}: {error!r}")
    if handler.slot == callbacks.SERVICE:
        ANSWERED.check(world.about(handler.job.body), handler, error)
    if by_people and error is None:
        ACTED.check(world.about(handler.job.body), handler)
    return world


def _causes(error: Exception | None) -> Iterator[Exception]:
    """Yield the causes of an error. A fault in a group of outages is the only one that counts."""
    if isinstance(error, ExceptionGroup):
        causes = [cause for exception in error.exceptions for cause in _causes(exception)]
        yield from [cause for cause in causes if not isinstance(cause, UnavailableError)][
            :1
        ] or causes
    elif error is not None:
        yield error


def _given_back(world: World, handler: Handler) -> World:
    job = handler.job
    if handler.slot in PEOPLE:
        return world.but(acts_left=world.acts_left + 1)
    if job.kind not in world.deployed.queues or (job.expires and job.expires <= world.now):
        return world
    return world.with_messages(
        [Sent(kind=job.kind, body=job.body, agent=job.agent, expires=job.expires)]
    )


def _read(world: World, handler: Handler, effect: PortCall) -> tuple[World, Answer]:
    if effect.name == "acquire":
        (slot,) = effect.args
        if world.lease and world.lease[0] != slot and world.lease[1] > world.now:
            return world, Returned(None)
        until = world.now + LEASE
        return world.but(lease=(slot, until)), Returned(until)
    if effect.name == "choose":
        return world, Returned(value=False)
    if effect.name == "health":
        sweeps = handler.job.kind == "sweep"
        found = [*begun_by(world), *_reports(world)] if sweeps else _circuits(world)
        return world, Returned(HealthRows([*found, *world.silence]))
    if effect.name in ("load", "history"):
        about = world.about(*effect.args)
        return world, Returned(about.order() if effect.name == "load" else about.history())
    method = getattr(MemoryStateStore, effect.name)
    return world, Returned(settled(method(world.store(), *effect.args)))


def begun_by(world: World) -> list[AgentHealth]:
    """Return the agents' reports of begun requests."""
    faults = tuple(_attempt_fault(world, fault) for fault in sorted(world.faults))
    agent = next(iter(world.deployed.agents)) if world.deployed.hangs else "any"
    return [AgentHealth(agent=agent, instance="1", at=world.now, begun=world.begun, faults=faults)]


def _attempt_fault(world: World, fault: ReportedFault) -> AttemptFault:
    """Return the fault as the agent's row has it. Other orders time out at the same time."""
    text = "404" if fault.by_gateway else "503"
    others = (f"b00-{number}:a:1:do" for number in range(1, fault.orders))
    return AttemptFault(
        text="no answer" if fault.orders else text,
        by_gateway=fault.by_gateway,
        requests=(fault.request, *others),
        timed_out_at=(world.now,) * fault.orders or None,
    )


def _reports(world: World) -> list[AgentHealth]:
    """Return the last report of each agent, in worlds with silent agents."""
    return [AgentHealth(agent=agent, instance="1", at=at) for agent, at in world.reported]


def _circuits(world: World) -> list[AgentHealth]:
    """Return the agents' reports of their circuits.

    If the circuit of one instance is open, its other instances report that they work.
    """
    now, until = world.now, world.now + RETRY_AFTER
    instances = world.deployed.instances
    health: list[AgentHealth] = []
    health += [_pause(name, now, until) for name in sorted(world.paused)]
    for name in sorted(world.open):
        agent = next((agent for agent, slots in instances.items() if name in slots), name)
        working = (
            [slot for slot in instances[agent] if slot not in world.open] if name != agent else []
        )
        health += [AgentHealth(agent=agent, instance=name, at=now, open_until=until)]
        health += [AgentHealth(agent=agent, instance=slot, at=now) for slot in working]
    return health


def _pause(agent: str, now: datetime, until: datetime) -> AgentHealth:
    """Return the row by which an operator pauses an agent."""
    return AgentHealth(
        agent=agent,
        instance=OPERATOR,
        at=now,
        paused_until=until,
        paused_by="grace",
        paused_because="it is mended",
    )


def _outcomes(world: World, handler: Handler) -> Iterator[Move]:
    """Yield every outcome of the effect that a handler waits for."""
    effect = handler.pending
    if (
        effect.name == "call" and not world.deployed.answered
    ):  # the lock of its message outlives the request
        yield Move(f"{handler.slot}: the call kills the process", world.crashed(handler.slot))
        return
    hangs = effect.name == "call" and world.deployed.hangs
    if hangs and world.now < handler.since + effect.args[1]:
        return  # the time passes
    for what, after, answer, is_fault in _OUTCOMES[effect.name](world, handler, *effect.args):
        label = f"{handler.slot}: {what}"
        if not is_fault:
            moved = _go_on(after, handler.with_answer(answer))
            yield Move(label, moved)
            if world.faults_left and handler.slot not in moved.handlers:
                yield from _crash_after(_spoiled(after), handler, label)
        elif world.faults_left and world.may_fail(label):  # asked first: to go on costs most
            yield Move(label, _go_on(_spoiled(after), handler.with_answer(answer)), fault=True)


def _spoiled(world: World) -> World:
    """Return the world with one fault less."""
    return world.but(faults_left=world.faults_left - 1)


def _crash_after(world: World, handler: Handler, label: str) -> Iterator[Move]:
    """Yield a crash after the last effect of a handler, before its message is settled."""
    if handler.job.kind in world.deployed.queues:
        crashed = _given_back(world.crashed(handler.slot), handler)
        yield Move(f"{label}, and crashes before its message is settled", crashed, fault=True)


def _commit(world: World, handler: Handler, transition: Transition) -> Iterator[Outcome]:
    what = f"commits “{transition.entry.event}”"
    DECISION.check(world, handler, transition)
    away, conflict = Raised(UnavailableError), Raised(ConflictError, "another writer was first")
    written = _write(world, transition)
    if written is None:
        yield f"{what}: another writer was first", world, conflict, False
    else:
        after, snapshot = written
        AFTER_COMMIT.check(after, transition)
        yield what, after, Returned(snapshot), False
        yield f"{what}, the answer is lost", after, away, True
        yield f"{what}, is asked to repeat it, and conflicts with itself", after, conflict, True
    yield f"{what}: the store is away", world, away, True
    landing = tuple(sorted([*world.landing, transition], key=repr))
    yield f"{what}: no answer, it may arrive later", world.but(landing=landing), away, True


def _write(world: World, transition: Transition) -> tuple[World, Any] | None:
    store = world.store()
    try:
        snapshot = settled(store.commit(transition))
    except ConflictError:
        return None
    order_id = transition.after.order_id
    after = world.but(
        rows=Rows(store.rows[bucket_of(world.order_id)]), landed=world.landed - {order_id}
    )
    check_commit(world.about(order_id), transition)
    return after.saying(after.begun), snapshot


def _note(world: World, handler: Handler, note: Any) -> Iterator[Outcome]:
    NOTED.check(world.about(note.order_id), handler, note)
    store = world.store()
    settled(store.note(note))
    after = world.but(rows=Rows(store.rows[bucket_of(world.order_id)]))
    yield f"notes “{note.entry.event}”", after, Returned(), False
    yield f"notes “{note.entry.event}”, the answer is lost", after, Raised(UnavailableError), True


def _send(world: World, handler: Handler, messages: tuple[BusMessage, ...]) -> Iterator[Outcome]:
    senders = world.deployed.settings.reply_to_prefix
    notices = [message.body for message in messages if message.queue.startswith(senders)]
    sent = [_sent(message, world) for message in messages if message.body not in notices]
    kinds = [message.kind for message in sent] + ["notice" for _ in notices]
    what = f"sends the {' and the '.join(kinds)}"
    after = world.with_messages(sent).but(received_notices=world.received_notices.union(notices))
    yield what, after, Returned(), False
    yield f"{what}, but does not learn of it", after, Raised(UnavailableError), True
    yield f"{what}: the bus is away", world, Raised(UnavailableError), True
    dead = [
        message.expires
        for message in sent
        if message.kind in world.deployed.requests and message.expires
    ]
    if dead:
        yield (
            f"{what}: the bus says nothing until it is dead",
            world.at(max(dead)),
            Raised(UnavailableError),
            True,
        )


def _sent(message: BusMessage, world: World) -> Sent:
    kind = world.deployed.kinds[message.queue]
    expires = world.now + message.time_to_live if message.time_to_live else None
    agent = message.queue.removesuffix("-responses") if kind == "reply" else ""
    return Sent(kind=kind, body=message.body, agent=agent, expires=expires)


def _late_effects(world: World) -> Iterator[Move]:
    """Yield late effects of calls that nobody waits for. They may happen or not."""
    for key, until in world.late:
        rest = tuple(call for call in world.late if call != (key, until))
        happened = world.but(effects=with_effect(world, key, "do"), late=rest)
        yield Move(f"the call of {key.rpartition(':')[2]} takes effect late", happened, act=True)


def _say(world: World, handler: Handler, *begun: str) -> Iterator[Outcome]:
    after = _without_silence(world, world.deployed.requests[handler.job.kind])
    yield "says what it begins", after.saying([*world.begun, *begun]), Returned(), False
    yield "says what it begins: the table is away", world, Raised(UnavailableError), True


def _without_silence(world: World, agent: str) -> World:
    """Return the world in which an agent has reported. The next reader removes its record."""
    if not world.deployed.records_silence:
        return world
    silence = tuple(record for record in world.silence if record.agent != agent)
    others = [(name, at) for name, at in world.reported if name != agent]
    return world.but(silence=silence, reported=(*others, (agent, world.now)))


def _record_silence(world: World, handler: Handler, record: AgentHealth) -> Iterator[Outcome]:
    others = tuple(other for other in world.silence if other.agent != record.agent)
    what = f"records that {record.agent} is silent"
    yield what, world.but(silence=(*others, record)), Returned(), False
    yield f"{what}: the table is away", world, Raised(UnavailableError), True


def _report(world: World, handler: Handler, *fault: Any) -> Iterator[Outcome]:
    request, by_gateway, is_timeout = fault
    for orders in CROWDS if world.deployed.hangs and is_timeout else (1,):
        reported = ReportedFault(request, by_gateway, orders if is_timeout else 0)
        after = world.but(faults=world.faults | {reported}).saying([*world.begun, request])
        what = f"reports that {orders} orders have timed out" if orders > 1 else "reports its fault"
        yield what, after, Returned(), False
    yield "reports its fault: the table is away", world, Raised(UnavailableError), True


def _choose(world: World, handler: Handler) -> Iterator[Outcome]:
    yield "goes from the first to the last", world, Returned(value=False), False
    yield "goes from the last to the first", world, Returned(value=True), False


def _publish(world: World, handler: Handler, events: tuple[Any, ...]) -> Iterator[Outcome]:
    PUBLISHED.check(world, events)
    of_ends = {event.event_id for event in events if event.type in OF_ENDS}
    after = world.but(published=world.published | of_ends)
    yield "publishes the alert", after, Returned(), False
    yield "publishes the alert, but does not learn of it", after, Raised(UnavailableError), True
    yield "publishes the alert: Event Grid is away", world, Raised(UnavailableError), True


def _confirm(
    world: World, handler: Handler, bucket: str, keys: tuple[str, ...]
) -> Iterator[Outcome]:
    rows = Rows({key: row for key, row in world.rows.items() if key not in keys})
    yield "clears the outbox", world.but(rows=rows), Returned(), False


def _postpone(world: World, handler: Handler, bucket: str, key: str, row: Any) -> Iterator[Outcome]:
    store = world.store()
    existed = settled(store.postpone(bucket, key, row))
    yield "puts it off", world.but(rows=Rows(store.rows[bucket])), Returned(value=existed), False


def _poison(
    world: World, handler: Handler, source: str, body: bytes, reason: str
) -> Iterator[Outcome]:
    yield (
        "keeps the message as poison",
        world.but(poison=world.poison | {reason}),
        Returned(),
        False,
    )


def _announce(world: World, handler: Handler, bucket: str, event: Any) -> Iterator[Outcome]:
    store = world.store()
    settled(store.announce(bucket, event))
    yield "announces the refusal", world.but(rows=Rows(store.rows[bucket])), Returned(), False


_OUTCOMES: Mapping[str, Any] = {
    "commit": _commit,
    "note": _note,
    "send": _send,
    "call": outcomes_of_call,
    "say": _say,
    "silence": _record_silence,
    "report": _report,
    "choose": _choose,
    "publish": _publish,
    "confirm": _confirm,
    "postpone": _postpone,
    "poison": _poison,
    "announce": _announce,
}


# What happens by itself


def _landings(world: World) -> Iterator[Move]:
    for transition in dict.fromkeys(map(id, world.landing)):
        arriving = next(landing for landing in world.landing if id(landing) == transition)
        rest = world.but(
            landing=tuple(landing for landing in world.landing if landing is not arriving)
        )
        written = _write(rest, arriving)
        label = f"the late write “{arriving.entry.event}” arrives"
        yield (
            Move(label, _as_landed(written[0], arriving))
            if written
            else Move(f"{label}, and finds the order changed", rest)
        )


def _as_landed(world: World, transition: Transition) -> World:
    """Return the world in which this write was late.

    Schedulers had to assume its slot free.
    """
    if not world.deployed.believing:
        return world
    return world.but(landed=world.landed | {transition.after.order_id})


def _tick(world: World, *, in_time: bool) -> Move | None:
    """Advance the time to the next moment at which anything could change."""
    later = min((moment for moment in _moments(world) if moment > world.now), default=None)
    if later is None:
        return None
    label = f"time passes to {later:%H:%M:%S.%f}" + (
        "" if in_time else ", too fast for what is going on"
    )
    return Move(label, world.at(later), fault=not in_time)


def _moments(world: World) -> Iterator[datetime]:
    yield from _set_moments(world)
    if world.lease and any(handler.job.kind == "sweep" for handler in world.handlers.values()):
        yield world.lease[1]  # nobody else asks whether it still holds
    elif world.lease and any(
        is_due(world, "sweep", world.deployed.clock_of(slot, world.now))
        for slot in world.deployed.slots["sweep"]
    ):
        yield world.lease[1]  # another supervisor may take over
    for handler in world.handlers.values():
        if handler.pending and handler.pending.name == "call":
            yield handler.since + handler.pending.args[1]


def _set_moments(world: World) -> Iterator[datetime]:
    """Yield the moments in the order's records, by the clocks of the processes concerned."""
    for part in world.parts():
        if order := part.order():
            yield from _moments_of(order, world)
    for row in (
        row for key, row in world.work_items().items() if key.startswith(WorkItemKind.OUTBOX)
    ):
        yield datetime.fromisoformat(row.key.split("|")[1])


def _moments_of(order: OrderAggregate, world: World) -> Iterator[datetime]:
    deployed = world.deployed
    if deployed.gone:  # a step waits for a newer version that leads to its provider (FLT-12)
        yield order.derived.ready_since + deployed.version_overlap + INSTANT
    if may_go_on(order, deployed.workflows):
        begins = polled_from(order)
        looks = map(next_refresh, () if world.open or world.paused else world.beliefs.values())
        soon = begins + WAKE_UP_TIME  # of what becomes of one order, later looks say the same
        yield from (
            look for look in looks if look <= soon or (world.shared and is_due(world, "poll", look))
        )
        yield from (until for belief in world.beliefs.values() for until in closed_until(belief))
        yield from _shown(deployed, "poll", begins)
        yield from _moments_of_silence(order, world)
    if check := next_check(order):
        yield from _shown(deployed, "poll", order.deadline.due_by)
        yield from _shown(deployed, "reply", order.deadline.due_by)
        yield from _shown(deployed, "sweep", check + deployed.tolerance + INSTANT)
    keys = (step.key for step in order.steps)
    yield from (key.known_until for key in keys if key and key.known_until)
    for at_work in order.in_state(AtWork):
        yield from _shown_to_agents(deployed, at_work.state.complete_by - deployed.margin)
    for due in {step.state.complete_by for step in order.in_state(UnderWay)}:
        yield due
        yield from _shown(deployed, "reply", due + deployed.tolerance + INSTANT)
        yield from _shown(deployed, "sweep", due + deployed.tolerance + INSTANT)


def _moments_of_silence(order: OrderAggregate, world: World) -> Iterator[datetime]:
    """Yield when an order may be failed or requested again, by the records of silent agents."""
    for record in world.silence:
        if record.unresponsive_since and record.next_probe:
            yield record.next_probe
            since = max(record.unresponsive_since, order.derived.ready_since)
            yield since + world.deployed.max_silence + INSTANT


def _shown(deployed: Deployment, kind: str, moment: datetime) -> set[datetime]:
    """Return the true times at which the processes of this kind read this time on their clocks."""
    return {moment - (deployed.clock_of(slot, moment) - moment) for slot in deployed.slots[kind]}


def _shown_to_agents(deployed: Deployment, moment: datetime) -> set[datetime]:
    return set().union(*(_shown(deployed, kind, moment) for kind in deployed.requests))


def _faults(world: World) -> Iterator[Move]:
    """Yield the faults that may occur. Each leaves the world with one fault less."""
    for message in dict.fromkeys(world.queue):
        if (
            message.kind != "submission"
        ):  # a Storage Queue loses nothing; the bus may expire what it holds
            yield Move(f"the {message.kind} is lost", world.without_message(message), fault=True)
        yield Move(
            f"the {message.kind} is delivered twice", world.with_messages([message]), fault=True
        )
        if message.expires:
            kept = replace(message, expires=None)
            late_at = message.expires + world.deployed.tolerance + INSTANT
            late = world.without_message(message).at(late_at).with_messages([kept])
            yield Move(
                f"the {message.kind} is held up, and delivered after its time", late, fault=True
            )
    for name in sorted(world.may_open - world.open):
        yield Move(f"the circuit of {name} opens", world.but(open=world.open | {name}), fault=True)
    yield from _sent_to_the_broken(world)
    for slot, handler in world.handlers.items():
        crashed = _given_back(world.crashed(slot), handler)
        before = handler.pending.name if handler.pending else "its end"
        yield Move(f"{slot} crashes before: {before}", crashed, fault=True)


def _sent_to_the_broken(world: World) -> Iterator[Move]:
    """Yield requests that an instance with a permanently open circuit takes.

    The bus decides which instance takes a request.
    """
    for message in dict.fromkeys(world.queue):
        for slot in _idle(world, message.kind):
            if slot in world.broken & world.open:
                job = Job(
                    kind=message.kind,
                    body=message.body,
                    agent=message.agent,
                    expires=message.expires,
                )
                begun = _begun(
                    world.without_message(message),
                    slot,
                    job,
                    f"{slot}, which is broken, takes the request",
                )
                yield replace(begun, fault=True)


def sent(submission: Mapping[str, Any]) -> Sent:
    """Return the message that submits this order."""
    return Sent(kind="submission", body=json.dumps(submission))
