"""The scheduler's decisions about pending orders and agents' replies (SCH-1 to SCH-12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.decisions import claim
from engine.decisions.proceed import NO_SILENT_AGENTS, Capacity, Scheduler, SilentAgents
from engine.decisions.reply import Delivery, RefusedReply, receive
from engine.decisions.transitions import HistoryEntry, NotClaimed, Note, Transition, transition_of
from engine.declarations.business import AgentDefinition, Payload
from engine.declarations.workflow import Workflows
from engine.domain.messages import AgentReply
from engine.domain.orders import OrderAggregate
from engine.features.external_events.callback_urls import CallbackUrls


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerRules:
    """The decisions of a scheduler instance.

    They are pure functions with the time as an argument.
    """

    instance: str
    workflows: Workflows
    payload: Payload
    providers: Mapping[str, str]
    """The provider of each agent's service. Services of one provider share their idempotency keys.
    """
    agents: Mapping[str, AgentDefinition] = field(default_factory=dict)
    """The declared agents, by name."""
    callback_urls: CallbackUrls | None = None
    """Makes the URLs at which steps are completed from outside. None if there are none."""
    clock_tolerance: timedelta
    version_overlap: timedelta
    """How long an order with an unknown workflow or provider is left to a newer version (FLT-12).

    At an unknown provider, a step of the order may already have been done.
    """
    max_silence: timedelta
    """How long an order waits for silent agents before its step fails (SUP-9)."""

    def claim(
        self,
        order: OrderAggregate,
        now: datetime,
        capacity: Capacity,
        silent: SilentAgents = NO_SILENT_AGENTS,
    ) -> Transition | NotClaimed:
        """Claim the order and start its ready steps in one write (SCH-2, SCH-3).

        Return the reason if the order is not claimed. `silent` maps each silent agent to the time
        since which it has been silent.
        """
        decided = claim.claim(order, now, capacity, self._scheduler(), silent)
        if isinstance(decided, NotClaimed):
            return decided
        return transition_of(decided, self._actor)

    def can_claim(self, workflow: str, version: int, waited: timedelta) -> bool:
        """Whether this app may claim orders of this workflow version (FLT-12).

        An order with an unknown version waits `version_overlap` for a newer app. After that it is
        ended.
        """
        return claim.can_claim(self._scheduler(), workflow, version, waited)

    def receive(
        self,
        order: OrderAggregate,
        reply: AgentReply,
        now: datetime,
        capacity: Capacity,
        agent: str,
    ) -> Transition | Note:
        """Act on a valid reply, or record an invalid one as refused (SCH-5, SCH-6, SCH-8).

        `agent` is the agent whose queue delivered the reply. Raises `NewerWorkflowError` for a
        valid reply that only a newer version of the app can handle (FLT-12).
        """
        decided = receive(order, Delivery(reply, agent), now, capacity, self._scheduler())
        if isinstance(decided, RefusedReply):
            return self._note(order, decided, now)
        return transition_of(decided, self._actor)

    def _note(self, order: OrderAggregate, refused: RefusedReply, now: datetime) -> Note:
        return Note(
            note_id=refused.note_id,
            order_id=order.order_id,
            version=order.version,
            entry=HistoryEntry(at=now, actor=self._actor, events=(refused.event,)),
        )

    @property
    def _actor(self) -> str:
        return f"scheduler/{self.instance}"

    def _scheduler(self) -> Scheduler:
        """Return the knowledge that the decisions need."""
        return Scheduler(
            instance=self.instance,
            workflows=self.workflows,
            payload=self.payload,
            providers=self.providers,
            agents=self.agents,
            callbacks=self.callback_urls,
            clock_tolerance=self.clock_tolerance,
            version_overlap=self.version_overlap,
            max_silence=self.max_silence,
        )
