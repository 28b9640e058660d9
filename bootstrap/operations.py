"""Makes the operators' services of one process, as attributes of `Operations`."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property, partial
from uuid import uuid4

from bootstrap.engine import Engine
from engine.alerts.conditions import ConditionStatus
from engine.decisions.transitions import OperatorEvent
from engine.declarations.business import offers_of
from engine.http.sign_in import SignIn
from engine.storage.alert_log import PARTITION as OF_ALERTS
from engine.storage.alert_log import AlertLog
from engine.storage.archive import Archive
from engine.storage.conditions import PARTITION as OF_CONDITIONS
from engine.storage.conditions import ConditionLog
from engine.storage.copies import Copies
from engine.storage.notifications import PARTITION as OF_CHANNELS
from engine.storage.notifications import Notifications
from engine.storage.orders import OrderStore
from engine.storage.submission_keys import PARTITIONS as OF_KEYS
from operations.alerts import rules
from operations.alerts.channel_rules import channels_of
from operations.alerts.digests import Places, needs_action
from operations.alerts.notify import Notifier
from operations.alerts.relay import Relay
from operations.alerts.stall_detector import StallDetector
from operations.api.agents import AgentPauseService
from operations.api.alerts import AlertService
from operations.api.bulk import BulkService
from operations.api.channels import ChannelService
from operations.api.copies import CopyService
from operations.api.external_events import ExternalEventService
from operations.api.health import HealthService
from operations.api.live import LiveService
from operations.api.outbox import OutboxReader
from operations.api.overview import OverviewService
from operations.api.poison import PoisonService
from operations.api.prospects import ActingRules
from operations.api.retention import RetentionService
from operations.api.runs import RunService
from operations.api.service import OperatorService
from operations.api.triggers import OperatorServices
from operations.api.vocabulary import OutsideLinks, runbook_of
from scheduler.service import WAKE_UP_TIME
from submission.service import QUEUE as SUBMISSIONS


class Operations:
    """The services that operators use, and those that alert them.

    Each service is made when it is first used, and connects to nothing before that.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine, table = engine, engine.adapters.table
        self.alert_log = AlertLog(table("alerts"))
        # Work on alerts has a budget of its own, so that it never delays an order.
        self._background = engine.adapters.background_table or table
        self.incoming_alerts = AlertLog(self._background("alerts"))
        self.conditions = ConditionLog(self._background("alerts"))
        self.notifications = Notifications(self._background("alerts"))
        queues = {SUBMISSIONS: engine.submissions, rules.QUEUE: engine.adapters.queue(rules.QUEUE)}
        self.storage_queues = queues

    @cached_property
    def archive(self) -> Archive:
        """The orders and histories that are still kept."""
        return Archive(self.engine.store, self.engine.adapters.table("agents"))

    @cached_property
    def background_store(self) -> OrderStore:
        """The orders, within the limit of operations for work on alerts."""
        return self.engine.store.over(self._background("orders"))

    @cached_property
    def relay(self) -> Relay:
        """Sends the rows of the outbox: alerts, and notifications to submitters."""
        engine = self.engine
        return Relay(
            store=self.background_store,
            publisher=engine.adapters.events,
            bus=engine.adapters.bus,
            clock=engine.adapters.clock,
            max_tries=engine.settings.notice_tries,
        )

    @cached_property
    def stall_detector(self) -> StallDetector:
        """Raises alerts for orders and processes that stand still."""
        engine = self.engine
        return StallDetector(
            store=self.background_store,
            conditions=self.conditions,
            sweeps=engine.sweeps,
            submissions=engine.submissions,
            agent_health=engine.agent_health,
            offers=offers_of(engine.agents),
            checked=engine.checked,
            clock=engine.adapters.clock,
            pending_alert_after=timedelta(seconds=engine.settings.pending_alert_seconds),
            sweep_alert_after=timedelta(seconds=engine.settings.sweep_alert_seconds),
        )

    @cached_property
    def notifier(self) -> Notifier:
        engine = self.engine
        settings = engine.settings
        runbook = runbook_of(settings.runbook_url) if settings.runbook_url else {}
        return Notifier(
            channels=[*engine.adapters.channels.values()],
            notifications=self.notifications,
            clock=engine.adapters.clock,
            new_id=lambda: str(uuid4()),
            interval=timedelta(seconds=settings.alert_interval_seconds),
            places=Places(app=(settings.public_url or "").rstrip("/"), runbook=runbook),
        )

    def channels_of(self, event: OperatorEvent) -> Sequence[str]:
        """Return the channels that report an event.

        The end of a condition goes to the channels that reported its beginning.
        """
        engine = self.engine
        is_end = event.data.get("status") == ConditionStatus.RESOLVED
        return channels_of(
            engine.settings.alert_rules,
            engine.adapters.channels,
            event,
            needs_action=is_end or needs_action(event),
        )

    @property
    def sign_in(self) -> SignIn | None:
        """The operators' sign-in, if the platform has one for this app."""
        settings = self.engine.settings
        return SignIn(role=settings.operator_role) if settings.operator_sign_in else None

    @cached_property
    def retention(self) -> RetentionService:
        """Removes old records, and erases a customer's data."""
        engine = self.engine
        days = engine.settings.retention_days
        return RetentionService(
            unit_of_work=engine.unit_of_work,
            archive=self.archive,
            alert_log=self.alert_log,
            figures=engine.figures,
            agent_health=engine.agent_health,
            poison=self.poison,
            submission_keys=engine.submission_keys,
            clock=engine.adapters.clock,
            clock_guard=engine.clock_guard,
            payload=engine.business.payload,
            workflows=engine.business.workflows,
            keep=timedelta(days=days) if days else None,
        )

    @cached_property
    def services(self) -> OperatorServices:
        """The services behind the operators' API."""
        engine = self.engine
        clock, agents = engine.adapters.clock, engine.agent_names
        pending = OutboxReader(store=engine.store, clock=clock)
        return OperatorServices(
            orders=self.orders,
            external_events=ExternalEventService(
                unit_of_work=engine.unit_of_work,
                workflows=engine.business.workflows,
                payload=engine.business.payload,
                callback_urls=engine.callback_urls,
            ),
            bulk=BulkService(
                unit_of_work=engine.unit_of_work,
                store=engine.store,
                workflows=engine.business.workflows,
                clock=clock,
                clock_tolerance=engine.clock_tolerance,
            ),
            agents=AgentPauseService(
                agents=agents,
                agent_health=engine.agent_health,
                clock=clock,
            ),
            alerts=AlertService(alert_log=self.alert_log, outbox_reader=pending, clock=clock),
            channels=ChannelService(
                channels=[*engine.adapters.channels],
                notifications=Notifications(engine.adapters.table("alerts")),
            ),
            poison=self.poison,
            overview=OverviewService(
                outbox_reader=pending,
                agents=agents,
                agent_health=engine.agent_health,
                sweeps=engine.sweeps,
                poison=self.poison,
                figures=engine.figures,
                queues=self.storage_queues,
                clock=clock,
            ),
            live=LiveService(
                outbox_reader=pending,
                agents=agents,
                agent_health=engine.agent_health,
                sweeps=engine.sweeps,
                submissions=engine.submissions,
                clock=clock,
            ),
            retention=self.retention,
            copies=CopyService(
                copies=self.copies,
                unit_of_work=engine.unit_of_work,
                agents=engine.agents,
                clock_tolerance=engine.clock_tolerance,
                clock=clock,
            ),
            runs=RunService(
                work={
                    "sweep": engine.supervisor.sweep,
                    "poll": engine.scheduler.poll,
                    "relay": self.relay.relay,
                    "stall-detector": self.stall_detector.check,
                    "notify": self.notifier.send,
                    "retention": self.retention.sweep,
                }
            ),
            health=HealthService(
                checks={
                    "stateStore": self.orders.probe,
                    "submissionQueue": engine.submissions.waiting,
                    "serviceBus": partial(engine.adapters.bus.probe, engine.bus_queues),
                }
            ),
        )

    @cached_property
    def copies(self) -> Copies:
        """Copies of all rows that must survive a disaster."""
        engine = self.engine
        partitions = {
            "orders": engine.store.buckets,
            "submissionkeys": OF_KEYS,
            "alerts": [OF_ALERTS, OF_CHANNELS, OF_CONDITIONS],
            "poison": [*self.storage_queues, *engine.bus_queues],
        }
        tables = {name: engine.adapters.table(name) for name in (*partitions, "agents")}
        return Copies(tables, partitions, engine.adapters.clock)

    @cached_property
    def orders(self) -> OperatorService:
        engine = self.engine
        return OperatorService(
            unit_of_work=engine.unit_of_work,
            store=engine.store,
            archive=self.archive,
            clock=engine.adapters.clock,
            payload=engine.business.payload,
            workflows=engine.business.workflows,
            acting=ActingRules(
                claim=engine.scheduler_rules.claim,
                recover=engine.supervisor_rules.recover,
                poll_delay=WAKE_UP_TIME,
                clock_tolerance=engine.clock_tolerance,
                offers=offers_of(engine.agents),
                version_overlap=engine.version_overlap,
                max_silence=engine.max_silence,
            ),
            agent_health=engine.agent_health,
            find=engine.customers.find,
            links=OutsideLinks(log=engine.settings.log_link, runbook=engine.settings.runbook_url),
        )

    @cached_property
    def poison(self) -> PoisonService:
        engine = self.engine
        parts = engine.adapters
        return PoisonService(
            poison=engine.poison_store,
            bus=parts.bus,
            storage_queues=self.storage_queues,
            bus_queues=engine.bus_queues,
        )
