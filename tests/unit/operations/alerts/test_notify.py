"""Digests of alerts, channel by channel: when they go out, what they report, what a crash costs."""

from dataclasses import dataclass, field, replace
from unittest.mock import patch

import pytest

from engine.alerts import events as alerts
from engine.alerts.conditions import Condition, ConditionStatus
from engine.alerts.digests import DigestStatus
from engine.decisions.transitions import OperatorEvent
from engine.domain import statuses as life
from engine.domain.errors import ChannelAwayError, ChannelRefusedError, UnavailableError
from engine.storage.alert_log import AlertLog
from engine.storage.notifications import Notifications
from engine.words.catalogue import text
from engine.words.digests import subject_of
from operations.alerts.digests import (
    LONGEST_PAUSE,
    MAX_ENTRIES,
    MAX_MESSAGES,
    SHORTEST_PAUSE,
    Places,
)
from operations.alerts.notify import TOO_MANY_TRIES, Notifier
from operations.api.channels import ChannelService
from testkit.memory import of_columns
from tests.support.builders import NOW, ORDER_ID, refusal, seconds

INTERVAL = seconds(600)
PLACES = Places(app="https://shop.example", runbook={life.ORDER_FAILED: "https://docs.example#a"})
STALLS = Condition(
    key="agents/payment",
    reason=refusal("silent"),
    since=NOW,
    first=NOW,
    last=NOW,
    count=3,
    raised_at=NOW,
)


@dataclass
class Recorder:
    """A channel that keeps what it sends; `failure` comes instead, or after it was sent."""

    name: str = "smtp"
    sent: list = field(default_factory=list)
    failure: Exception | None = None
    arrives: bool = False

    async def send(self, digest):
        if self.failure is None or self.arrives:
            self.sent.append(digest)
        if self.failure:
            raise self.failure


class NotifierUnderTest:
    """The notifier on tables in memory, with a clock that the test moves."""

    def __init__(self, *channels):
        self.now, self.table, self.ids = NOW, of_columns(), 0
        self.channels = channels or (Recorder(),)
        self.names = [channel.name for channel in self.channels]
        self.notifications = Notifications(self.table)
        self.desk = ChannelService(channels=self.names, notifications=self.notifications)

    def notifier(self):
        """As a process has it that was just started."""
        return Notifier(
            channels=self.channels,
            notifications=Notifications(self.table),
            clock=lambda: self.now,
            new_id=self.new_id,
            interval=INTERVAL,
            places=PLACES,
        )

    def new_id(self):
        self.ids += 1
        return f"digest-{self.ids}"

    async def send(self):
        await self.notifier().send()

    async def alert(self, *numbers, **data):
        """Record an alert for each number."""
        for number in numbers:
            event = OperatorEvent(
                event_id=f"e{number:05d}",
                type=life.ORDER_FAILED,
                subject=f"orders/b01-{number}",
                at=self.now,
                data={"reason": "declined", "actionRequired": True, "actions": ["resubmit"]} | data,
            )
            await AlertLog(self.table).record(event, self.names)

    async def condition(self, revision, status, key="agents/payment"):
        event = alerts.stalled(replace(STALLS, key=key, revision=revision, status=status))
        await AlertLog(self.table).record(event, self.names)

    async def waiting(self):
        return [channel.waiting for channel in (await self.desk.list()).channels]


@pytest.fixture
def notifier():
    return NotifierUnderTest()


def abouts(digest):
    return [entry.about for entry in digest.entries]


@pytest.mark.proves("ALR-5")
async def test_the_first_alert_after_a_quiet_time_goes_out_at_once_and_others_in_the_next_digest(
    notifier,
):
    """At most one message in each interval, which has all that came meanwhile."""
    (channel,) = notifier.channels
    await notifier.send()
    assert channel.sent == []
    await notifier.alert(1)
    await notifier.send()
    await notifier.alert(2, 3)
    for late in (1, INTERVAL.total_seconds() - 1):
        notifier.now = NOW + seconds(late)
        await notifier.send()
    assert [abouts(digest) for digest in channel.sent] == [["orders/b01-1"]]
    notifier.now = NOW + INTERVAL
    await notifier.send()
    assert sorted(abouts(channel.sent[1])) == ["orders/b01-2", "orders/b01-3"]
    notifier.now += 3 * INTERVAL
    await notifier.alert(4)
    await notifier.send()
    assert abouts(channel.sent[2]) == ["orders/b01-4"]
    assert len({digest.id for digest in channel.sent}) == 3
    assert await notifier.waiting() == [0]


@pytest.mark.proves("ALR-5")
async def test_an_entry_says_what_happened_to_what_what_to_do_and_where(notifier):
    """Texts are cleaned, since they come from outside."""
    await notifier.alert(1, reason="declined\r\nBcc: x")
    await notifier.send()
    ((entry,),) = (digest.entries for digest in notifier.channels[0].sent)
    assert (entry.status, entry.needs_action, entry.count) == (DigestStatus.NEW, True, 1)
    assert (entry.about, entry.reason) == ("orders/b01-1", "declined Bcc: x")
    assert entry.advice == text("action.resubmit.title")
    assert entry.link == "https://shop.example/console#/orders/b01-1"
    assert entry.runbook == "https://docs.example#a"
    assert notifier.channels[0].sent[0].link == "https://shop.example/console#/alerts"


@pytest.mark.proves("ALR-5")
@pytest.mark.parametrize(
    ("kind", "subject", "path"),
    [
        (alerts.SUBMISSION_REJECTED, f"orders/{ORDER_ID}", "/poison"),
        (alerts.STALLED, "orders-waiting/payment", "/orders?state=Pending"),
        (alerts.STALLED, "orders-overdue", "/orders?state=Processing"),
        (alerts.STALLED, "orders-held", "/orders?state=Held"),
        (alerts.STALLED, "agents/payment", "/alerts"),
    ],
)
def test_an_alert_leads_to_the_page_that_helps(kind, subject, path):
    """Without an address of the app, to none."""
    event = OperatorEvent(event_id="e", type=kind, subject=subject, at=NOW, data={})
    assert PLACES.about(event) == f"https://shop.example/console#{path}"
    assert Places().about(event) == ""


async def test_what_needs_an_action_comes_first_and_of_too_many_the_number_is_given(notifier):
    """All of them are reported: none comes again."""
    await notifier.alert(1, actionRequired=False)
    notifier.now += seconds(1)
    await notifier.alert(*range(2, 300))
    await notifier.send()
    (digest,) = notifier.channels[0].sent
    assert (len(digest.entries), digest.others) == (MAX_ENTRIES, 299 - MAX_ENTRIES)
    assert all(entry.needs_action for entry in digest.entries)
    assert await notifier.waiting() == [0]


async def test_more_than_fits_into_a_digest_comes_with_the_next(notifier):
    """What a digest reports stands in one column."""
    await notifier.alert(*range(10))
    with patch("operations.alerts.digests.MAX_CHARACTERS", 180):
        await notifier.send()
    assert await notifier.waiting() == [5]
    notifier.now += INTERVAL
    await notifier.send()
    assert await notifier.waiting() == [0]
    assert [len(digest.entries) for digest in notifier.channels[0].sent] == [5, 5]


async def test_of_a_condition_a_digest_has_the_latest(notifier):
    """One that began and ended meanwhile is resolved."""
    await notifier.condition(2, ConditionStatus.RESOLVED)
    await notifier.condition(1, ConditionStatus.NEW)
    await notifier.condition(1, ConditionStatus.NEW, key="submissions")
    await notifier.send()
    (digest,) = notifier.channels[0].sent
    assert [(entry.about, entry.status, entry.count) for entry in digest.entries] == [
        ("submissions", DigestStatus.NEW, 3),
        ("agents/payment", DigestStatus.RESOLVED, 3),
    ]


@pytest.mark.parametrize("crash", range(1, 5))
async def test_a_crash_at_any_moment_loses_nothing_and_repeats_at_most_one_message(notifier, crash):
    """Under the same id, with the same alerts, though others have come; and none is sent early."""
    await notifier.alert(1, 2)
    submits = 0
    submit, submit_separately = notifier.table.submit, notifier.table.submit_separately

    def counting(write):
        async def counted(*args):
            nonlocal submits
            submits += 1
            if submits == crash:
                raise UnavailableError("killed")
            return await write(*args)

        return counted

    with (
        patch.object(notifier.table, "submit", counting(submit)),
        patch.object(notifier.table, "submit_separately", counting(submit_separately)),
        pytest.raises(ExceptionGroup),
    ):
        await notifier.send()
    await notifier.alert(3)
    await notifier.send()
    sent = notifier.channels[0].sent
    for _ in range(2):
        notifier.now += INTERVAL
        await notifier.send()
    first = [digest for digest in sent if digest.id == sent[0].id]
    assert len(first) <= 2
    assert len({(digest.entries, subject_of(digest)) for digest in first}) == 1
    reported = {about for digest in sent for about in abouts(digest)}
    assert reported == {"orders/b01-1", "orders/b01-2", "orders/b01-3"}
    assert await notifier.waiting() == [0]


@pytest.mark.proves("ALR-5")
async def test_two_processes_at_the_same_time_do_not_send_two_digests(notifier):
    """The one that was first goes on."""
    await notifier.alert(1)
    put = Notifications.put

    async def behind(notifications, state, etag):
        with patch.object(Notifications, "put", put):
            await notifier.send()
        return await put(notifications, state, etag)

    with patch.object(Notifications, "put", behind):
        await notifier.send()
    assert len(notifier.channels[0].sent) == 1


@pytest.mark.proves("ALR-5")
@pytest.mark.parametrize(
    ("failure", "least", "most"),
    [
        (ChannelAwayError("429", seconds(3600)), seconds(3600), seconds(3600)),
        (ChannelAwayError("503"), SHORTEST_PAUSE, SHORTEST_PAUSE),
        (RuntimeError("a fault of the code"), SHORTEST_PAUSE, SHORTEST_PAUSE),
    ],
)
async def test_a_channel_that_fails_rests_and_holds_no_other_up(failure, least, most):
    """Then the same digest comes again."""
    fails, works = Recorder("mail", failure=failure), Recorder("slack")
    notifier = NotifierUnderTest(fails, works)
    await notifier.alert(1)
    await notifier.send()
    (failed, worked) = (await notifier.desk.list()).channels
    assert NOW + least <= failed.paused_until <= NOW + most
    assert (failed.waiting, worked.waiting, failed.failure is None) == (1, 0, False)
    notifier.now = failed.paused_until - seconds(1)
    fails.failure = None
    await notifier.send()
    assert (fails.sent, len(works.sent)) == ([], 1)
    notifier.now += seconds(1)
    await notifier.alert(2)
    await notifier.send()
    (digest,) = fails.sent
    assert (digest.id, abouts(digest)) in [
        ("digest-1", ["orders/b01-1"]),
        ("digest-2", ["orders/b01-1"]),
    ]
    assert (await notifier.desk.list()).channels[0].failure is None


@pytest.mark.proves("ALR-5")
async def test_pauses_grow_and_a_channel_that_stays_away_is_an_error(notifier, caplog):
    """The Azure Monitor rules count errors."""
    caplog.set_level("WARNING")
    (channel,) = notifier.channels
    channel.failure = ChannelAwayError("no answer")
    await notifier.alert(1)
    pauses = []
    for _ in range(12):
        await notifier.send()
        (state,) = (await notifier.desk.list()).channels
        pauses.append(state.paused_until - notifier.now)
        notifier.now = state.paused_until
    assert pauses[:4] == [SHORTEST_PAUSE * 2**n for n in range(4)]
    assert pauses[-1] == LONGEST_PAUSE
    lines = [(record.levelname, record.message) for record in caplog.records]
    first, later = ("WARNING", "channel.not_sent"), ("ERROR", "channel.away")
    assert lines == [first] * (TOO_MANY_TRIES - 1) + [later] * (13 - TOO_MANY_TRIES)


@pytest.mark.proves("ALR-5")
async def test_a_message_that_perhaps_arrived_is_repeated_under_its_id(notifier):
    """With the same entries."""
    (channel,) = notifier.channels
    channel.failure, channel.arrives = ChannelAwayError("cut"), True
    await notifier.alert(1)
    await notifier.send()
    channel.failure = None
    notifier.now += SHORTEST_PAUSE
    await notifier.alert(2)
    await notifier.send()
    first, again = channel.sent
    assert first == again


@pytest.mark.proves("ALR-5")
async def test_a_message_that_is_refused_is_logged_shown_and_not_repeated(notifier, caplog):
    """What comes later is tried after the interval."""
    (channel,) = notifier.channels
    channel.failure = ChannelRefusedError("400")
    await notifier.alert(1)
    await notifier.send()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "channel.refused"
    ]
    (state,) = (await notifier.desk.list()).channels
    assert ([message.outcome for message in state.messages], state.waiting) == (["refused"], 0)
    assert (state.failure is None, state.last_sent_at) == (False, None)
    channel.failure = None
    notifier.now += INTERVAL
    await notifier.alert(2)
    await notifier.send()
    assert [abouts(digest) for digest in channel.sent] == [["orders/b01-2"]]


@pytest.mark.proves("ALR-5")
async def test_operators_see_the_last_messages_newest_first(notifier):
    """A number of them."""
    for number in range(MAX_MESSAGES + 2):
        await notifier.alert(number)
        await notifier.send()
        notifier.now += INTERVAL
    (state,) = (await notifier.desk.list()).channels
    assert [message.id for message in state.messages] == [
        f"digest-{number}" for number in range(MAX_MESSAGES + 2, 2, -1)
    ]
    assert (state.last_sent_at, state.paused_until) == (notifier.now - INTERVAL, None)
    assert {(message.outcome, message.entries) for message in state.messages} == {("sent", 1)}


@pytest.mark.proves("ALR-5")
async def test_a_channel_whose_row_cannot_be_read_costs_only_itself():
    """The failure is raised at the end."""
    broken, works = Recorder("mail"), Recorder("slack")
    notifier = NotifierUnderTest(broken, works)
    await notifier.alert(1)
    notifier.table.partitions["channels"] = {"mail": (1, {"SchemaVersion": 99})}
    with pytest.raises(ExceptionGroup):
        await notifier.send()
    assert (broken.sent, len(works.sent)) == ([], 1)


@pytest.mark.proves("ALR-5")
async def test_a_condition_is_in_the_next_message_however_many_alerts_wait(notifier):
    """It may be the cause of all the orders that failed, and is listed among them."""
    await notifier.alert(*range(100))
    await notifier.condition(1, ConditionStatus.NEW)
    await notifier.condition(2, ConditionStatus.RESOLVED, key="submissions")
    notifier.now += seconds(60)
    await notifier.alert(*range(100, 200))
    with patch("operations.alerts.digests.MAX_CHARACTERS", 6000):
        await notifier.send()
    (digest,) = notifier.channels[0].sent
    assert digest.others > 0
    assert {"agents/payment", "submissions"} <= {*abouts(digest)}
    assert not digest.entries[-1].needs_action


@pytest.mark.proves("ALR-5")
async def test_of_too_many_alerts_those_that_wait_longest_are_sent_first(notifier):
    """Whatever their ids, so that none waits for ever while others come."""
    await notifier.alert(9)
    notifier.now += seconds(1)
    await notifier.alert(1, 2)
    with patch("operations.alerts.digests.MAX_CHARACTERS", 100):
        await notifier.send()
    assert "orders/b01-9" in abouts(notifier.channels[0].sent[0])
    assert await notifier.waiting() != [0]


@pytest.mark.parametrize("ahead", [seconds(7200), seconds(365 * 86_400)])
@pytest.mark.parametrize("failure", [None, ChannelAwayError("503")])
async def test_a_clock_that_was_ahead_silences_no_channel(notifier, ahead, failure):
    """Neither by the time of the last message nor by a pause."""
    (channel,) = notifier.channels
    notifier.now, channel.failure = NOW + ahead, failure
    await notifier.alert(1)
    await notifier.send()
    notifier.now, channel.failure = NOW, None
    await notifier.alert(2)
    for _ in range(2):
        await notifier.send()
        notifier.now += INTERVAL
    assert {about for digest in channel.sent for about in abouts(digest)} == {
        "orders/b01-1",
        "orders/b01-2",
    }


@pytest.mark.parametrize(
    "data", [{"status": []}, {"status": {}}, {"status": 1}, {"count": "many"}, {"actions": {}}]
)
async def test_an_event_of_others_with_odd_data_holds_up_no_channel(notifier, data):
    """Any publisher of the topic may send it."""
    await notifier.alert(1, **data)
    await notifier.send()
    assert [abouts(digest) for digest in notifier.channels[0].sent] == [["orders/b01-1"]]


async def test_what_a_removed_channel_has_not_sent_goes_with_the_old_alerts():
    """Else it would be looked at for ever, and sent when the channel is set up again."""
    notifier = NotifierUnderTest(Recorder("smtp"), Recorder("slack"))
    await notifier.alert(1)
    notifier.channels = notifier.channels[:1]
    await notifier.send()
    notifier.now += seconds(10)
    await notifier.alert(2)
    log = AlertLog(notifier.table)
    assert await log.remove_before(NOW + seconds(5), 1000) == 2
    assert await log.remove_before(NOW + seconds(5), 1000) == 0
    assert await notifier.waiting() == [1, 1]
    notifier.now += INTERVAL
    await notifier.send()
    await log.remove_before(notifier.now, 1000)
    assert not await notifier.notifications.any_waiting()


@pytest.mark.proves("ALR-5")
@pytest.mark.parametrize("fails_first", [False, True])
async def test_a_run_beside_one_that_sends_does_not_send_the_same_digest(fails_first):
    """An operator may run it by hand, on another instance; after a crash it is sent again soon."""

    @dataclass
    class Slow(Recorder):
        async def send(self, digest):
            await super().send(digest)
            await notifier.send()

    channel = Slow(failure=ChannelAwayError("503") if fails_first else None)
    notifier = NotifierUnderTest(channel)
    await notifier.alert(1)
    await notifier.send()
    channel.failure = None
    notifier.now += SHORTEST_PAUSE
    await notifier.send()
    assert [abouts(digest) for digest in channel.sent] == [["orders/b01-1"]]
