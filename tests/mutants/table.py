"""Faults of meaning that no mutation tester makes: each has a test that notices it."""

from tests.mutants.mutant import Mutant, Where

UNIT, APP, CONTRACT = "tests/unit/", "tests/app/test_", "tests/contract/test_"
INFRA, BROWSER, HOST = (
    "tests/deployment/test_",
    "tests/browser/test_",
    "tools/functions_alone/tests/host/test_",
)
BROKER = "tools/functions_alone/tests/broker/test_broker_queue_rules.py"
PAGES = f"{UNIT}engine/pages/test_triggers.py::test_what_is_pure_of_the_pages_does_what_its_own_tests_say"
EXACT_TIMES = f"{BROKER}::test_queue_rules_hold_at_exact_times"
DEPLOYED = "tests/deployment/snapshots/default.json"
"""What the template deploys, as the compiler has worked it out: the tests check their rules on it."""
STATE_ACCOUNT = """\
   "name": "ststate7ulcqxxwesckw",
   "properties": {
    "allowBlobPublicAccess": false,
    "allowCrossTenantReplication": false,
    "allowSharedKeyAccess": """
ALERT_RULES = f"{INFRA}alert_queries.py::test_every_rule_fires_for_what_it_says"
LEADS = f"{CONTRACT}other_ports.py::test_one_of_two_leads_and_knows_when_its_lease_may_have_lapsed"
BUS_FAULT = f"{UNIT}engine/azure/messaging/test_bus.py::test_a_message_that_cannot_be_sent_takes_no_other_of_its_batch_along"

ROLES = (
    Mutant(
        statement="FLT-7",
        fault="a write whose answer was lost counts as a lost race",
        file="engine/storage/unit_of_work.py",
        old="            if await self.store.committed(transition):\n                return True\n",
        new="",
        tests=(f"{APP}services.py::test_a_lost_answer_is_not_taken_for_a_lost_race",),
    ),
    Mutant(
        fault="the log says what operators and services wrote",
        file="engine/storage/unit_of_work.py",
        old='"event": transition.entry.event,',
        new='"event": transition.entry.event, "detail": transition.entry.detail,',
        tests=(f"{APP}services.py::test_the_log_says_nothing_that_a_service_or_a_person_wrote",),
    ),
    Mutant(
        statement="FLT-12",
        fault="what a newer version keeps in a row is lost when an older one writes it",
        file="engine/storage/tables.py",
        old="return {**getattr(record, MORE), **columns}",
        new="return columns",
        tests=(
            (
                f"{CONTRACT}state_store.py::"
                "test_what_a_newer_version_keeps_in_an_order_outlives_every_change_by_an_older_one"
            ),
        ),
        where=Where.CONTRACT,
    ),
    Mutant(
        statement="FLT-12",
        fault="what a newer version keeps in a part of a step is lost when an older one writes it",
        file="engine/storage/step_rows.py",
        old="            merged.setdefault(name, value)",
        new="            pass",
        tests=(
            (
                f"{CONTRACT}state_store.py::"
                "test_what_a_newer_version_keeps_in_an_order_outlives_every_change_by_an_older_one"
            ),
        ),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="the history of an old order is removed before the order",
        file="engine/storage/archive.py",
        old="        if state_key(order.order_id) in others:",
        new="        await self._table.submit_separately(bucket, [Delete(key) for key in history])\n"
        "        if state_key(order.order_id) in others:",
        tests=(f"{APP}removals.py::test_an_order_is_there_with_its_whole_history_or_is_gone",),
    ),
    Mutant(
        statement="ALR-2",
        fault="a notice that was not sent is confirmed",
        file="operations/alerts/relay.py",
        old=" for row, fault in deliveries if fault is None]",
        new=" for row, fault in deliveries]",
        tests=(
            f"{UNIT}operations/alerts/test_relay.py::test_nothing_is_given_up_while_the_whole_bus_is_away",
        ),
    ),
    Mutant(
        statement="ALR-2",
        fault="a notice is gone before an operator is told of it",
        file="operations/alerts/relay.py",
        old="            await self.store.postpone(",
        new=(
            "            await self.store.confirm(bucket, [row.key])\n"
            "            await self.store.postpone("
        ),
        tests=(
            f"{UNIT}operations/alerts/test_relay.py::test_a_notice_is_given_up_only_together_with_its_alert",
        ),
    ),
    Mutant(
        statement="SUB-4",
        fault="a submission counts as recorded although no order is there",
        file="submission/service.py",
        old='raise UnavailableError("the order was refused as if',
        new='return print("the order was refused as if',
        tests=(
            f"{APP}services.py::test_a_submission_is_handed_back_if_it_is_refused_and_no_order_is_there",
        ),
    ),
    Mutant(
        statement="SUB-4",
        fault="a submission that cannot be read is kept before anybody is told",
        file="submission/service.py",
        old="        store = self.unit_of_work.store\n        rejection",
        new="        await self.poison.put(QUEUE, body, rules.invalid(fault), arrival)\n"
        "        store = self.unit_of_work.store\n        rejection",
        tests=(
            f"{APP}services.py::test_a_message_is_kept_only_once_the_operators_are_sure_to_get_an_alert",
        ),
    ),
    Mutant(
        statement="SUB-4",
        fault="a poison message is removed before it is put back",
        file="operations/api/poison.py",
        old="        await self._put_back(message, text_of(message))",
        new="        await self.poison.remove(queue, message_id)\n"
        "        await self._put_back(message, text_of(message))",
        tests=(
            f"{UNIT}operations/api/test_poison.py::test_a_message_that_cannot_be_put_back_is_not_removed",
        ),
    ),
    Mutant(
        statement="OPR-1",
        fault="operators see who the customer is",
        file="operations/api/views.py",
        old="payload=dict(payload.hidden(submitted)),",
        new="payload=dict(submitted),",
        tests=(
            f"{UNIT}engine/decisions/test_operator_actions.py::test_the_full_view_shows_the_documented_properties_and_no_personal_data",
        ),
    ),
    Mutant(
        statement="ALR-1",
        fault="what was read before an alert came closes it",
        file="operations/api/alerts.py",
        old="pending = await self.outbox_reader.read() if",
        new="pending = self.outbox_reader._last[0] if self.outbox_reader._last else await self.outbox_reader.read() if",
        tests=(
            f"{UNIT}operations/api/test_alerts.py::test_what_was_read_before_the_alert_came_closes_none",
        ),
    ),
    Mutant(
        statement="FLT-7",
        fault="a sweep that met an outage counts as one that came to its end",
        file="supervisor/service.py",
        old="        except UnavailableError:\n            raise\n",
        new="",
        tests=(
            f"{UNIT}supervisor/test_service.py::test_a_sweep_that_could_not_see_to_every_bucket_is_none[recovering]",
        ),
    ),
    Mutant(
        statement="FLT-9",
        fault="who has a clock that is off claims all the same",
        file="scheduler/service.py",
        old="return await self.clock_guard.agrees()",
        new="return True",
        tests=(
            f"{APP}clocks.py::test_who_has_a_clock_that_is_off_claims_nothing_until_it_is_right",
        ),
    ),
    Mutant(
        statement="SCH-6",
        fault="ids that have moved up in a batch are believed",
        file="scheduler/triggers.py",
        old="ids if all(ids) else [None] * len(ids)",
        new="ids",
        tests=(
            f"{UNIT}scheduler/test_triggers.py::test_a_stranger_without_an_id_costs_no_reply_its_order",
        ),
    ),
    Mutant(
        statement="FLT-12",
        fault="a reply that cannot be acted on sends its whole batch back",
        file="scheduler/triggers.py",
        old="            await self._later(reply, agent, why)",
        new="            raise",
        tests=(
            f"{UNIT}scheduler/test_triggers.py::test_a_reply_that_cannot_be_acted_on_comes_again_alone",
        ),
    ),
    Mutant(
        statement="AGT-10",
        fault="a call that has ended keeps its place",
        file="agents/bulkhead.py",
        old="self._slots.release()",
        new="pass",
        tests=(
            f"{UNIT}agents/test_bulkhead.py::test_no_more_calls_are_in_flight_than_the_service_takes",
        ),
    ),
    Mutant(
        statement="UND-2",
        fault="of a request that is delivered again it is said for sure that nothing was called for",
        file="agents/service.py",
        old="late, was_called=again, was_deferred=False)",
        new="late, was_called=False, was_deferred=False)",
        tests=(
            f"{UNIT}agents/test_service.py::test_a_request_that_is_delivered_again_is_not_called_untried",
        ),
    ),
    Mutant(
        statement="SCH-17",
        fault="the deadline counts from the placement, whatever time the order is for",
        file="engine/declarations/workflow.py",
        old="max(submitted.placed_at, submitted.not_before or submitted.placed_at)",
        new="submitted.placed_at",
        tests=(
            (
                f"{UNIT}engine/decisions/test_submit.py::"
                "test_the_deadline_counts_from_the_placement_or_from_the_time_of_the_order"
            ),
        ),
    ),
    Mutant(
        statement="SCH-17",
        fault="a late order past its point of no return is undone",
        file="engine/decisions/drafts.py",
        old="rule is WhenLate.UNDO and not order.passed_pivots()",
        new="rule is WhenLate.UNDO",
        tests=(
            (
                f"{UNIT}engine/decisions/test_deadlines.py::"
                "test_an_order_past_its_point_of_no_return_stops_instead"
            ),
        ),
    ),
)
"""What the roles and their stores do: in which order they write and send, what they hold back, what they say."""

EDGE = (
    Mutant(
        statement="OPR-5",
        fault="the operators' API is open to anybody",
        file="engine/runtime/api.py",
        old="if route.open else func.AuthLevel.FUNCTION",
        new="if route else func.AuthLevel.FUNCTION",
        tests=(f"{INFRA}bicep.py::test_sign_in_leaves_open_what_needs_no_key",),
    ),
    Mutant(
        statement="FLT-6",
        fault="a function in which something is cancelled gives no answer",
        file="engine/runtime/functions.py",
        old="except (asyncio.CancelledError, BaseExceptionGroup) as error:",
        new="except ZeroDivisionError as error:",
        tests=(
            f"{UNIT}engine/runtime/test_functions.py::test_what_is_cancelled_in_a_function_is_its_failure",
        ),
    ),
    Mutant(
        fault="the sweep does not give up a turn that comes too late",
        file="supervisor/triggers.py",
        old='await skip_overlapping_runs("supervisor_sweep", ',
        new='await (lambda _, work: work())("supervisor_sweep", ',
        tests=(
            f"{UNIT}test_function_app.py::test_every_timer_comes_in_turn_and_ends_quietly_while_the_store_is_away",
        ),
    ),
    Mutant(
        statement="AGT-10",
        fault="the setting for calls in flight is ignored",
        file="bootstrap/engine.py",
        old="self.settings.calls_in_flight.get(agent.name, agent.calls_in_flight)",
        new="agent.calls_in_flight",
        tests=(f"{UNIT}test_function_app.py::test_the_limit_of_calls_to_a_service_is_a_setting",),
    ),
    Mutant(
        fault="a row is written although somebody else has changed it",
        file="engine/azure/tables/wire.py",
        old="If-Match: {etag}",
        new="If-Match: *",
        tests=(
            f"{UNIT}engine/azure/tables/test_wire.py::test_every_part_of_a_transaction_says_what_azure_demands",
        ),
    ),
    Mutant(
        statement="SUB-2",
        fault="of a group that is refused the first is blamed",
        file="engine/azure/tables/transactions.py",
        old="if index is None:\n        return None",
        new="if index is None:\n        return 0",
        tests=(
            f"{CONTRACT}state_store.py::test_an_order_that_is_refused_takes_no_other_of_its_group_along",
        ),
        where=Where.CONTRACT,
    ),
    Mutant(
        statement="SUP-2",
        fault="a page without rows is taken for the last one",
        file="engine/azure/tables/wire.py",
        old="more = _continuation(answer.headers)",
        new='more = _continuation(answer.headers) if _json_of(answer)["value"] else None',
        tests=(
            f"{UNIT}engine/azure/tables/test_wire.py::test_a_range_ends_with_the_last_page_and_not_with_one_that_is_empty_or_short",
        ),
    ),
    Mutant(
        statement="FLT-7",
        fault="a store that asks for patience is not waited for",
        file="engine/azure/failures.py",
        old="PASSING = {408, 429}",
        new="PASSING = {408}",
        tests=(f"{UNIT}engine/azure/test_failures.py::test_every_status_has_one_meaning",),
    ),
    Mutant(
        statement="SUP-5",
        fault="a lease counts from when its answer came",
        file="engine/azure/lease.py",
        old="self._until = requested_at +",
        new="self._until = self._monotonic() +",
        tests=(
            f"{UNIT}engine/azure/test_lease.py::test_a_lease_counts_from_before_it_was_requested",
        ),
    ),
    Mutant(
        statement="SUP-5",
        fault="who is refused the lease believes to have it",
        file="engine/azure/lease.py",
        old="self._until = 0.0\n            return False",
        new="pass",
        tests=(LEADS,),
        where=Where.CONTRACT,
    ),
    Mutant(
        statement="FLT-6",
        fault="what does not fit into a batch is lost",
        file="engine/azure/messaging/bus.py",
        old="                break  # it goes with the next batch",
        new="                outcomes.append(None)\n                continue",
        tests=(
            f"{UNIT}engine/azure/messaging/test_bus.py::test_what_does_not_fit_into_a_batch_goes_with_the_next_one[by size]",
        ),
    ),
    Mutant(
        statement="FLT-6",
        fault="a message that cannot be sent takes its whole batch along",
        file="engine/azure/messaging/bus.py",
        old="(MessageSizeExceededError, ValueError, TypeError)",
        new="MessageSizeExceededError",
        tests=(BUS_FAULT,),
    ),
    Mutant(
        statement="SUB-4",
        fault="an order that nobody takes is dropped after a week",
        file="engine/azure/messaging/queues.py",
        old="time_to_live=FOREVER, ",
        new="",
        tests=(f"{CONTRACT}other_ports.py::test_a_message_waits_until_somebody_takes_it",),
        where=Where.CONTRACT,
    ),
    Mutant(
        statement="FLT-11",
        fault="a topic that is not there refuses the events",
        file="engine/azure/messaging/event_grid.py",
        old='azure_errors("Event Grid", UnavailableError)',
        new='azure_errors("Event Grid")',
        tests=(
            f"{UNIT}engine/azure/test_failures.py::test_a_topic_or_a_queue_that_is_not_there_is_away",
        ),
    ),
    Mutant(
        fault="a service hears from the calls for other customers",
        file="engine/azure/connections.py",
        old="cookie_jar=aiohttp.DummyCookieJar(),",
        new="",
        tests=(
            f"{UNIT}engine/azure/test_remote.py::test_a_service_hears_nothing_from_the_calls_before",
        ),
    ),
    Mutant(
        statement="AGT-3",
        fault="each attempt has a key of its own",
        file="engine/azure/remote.py",
        old="self.form.key_header: request.idempotency_key",
        new="self.form.key_header: request.request_id",
        tests=(
            f"{UNIT}engine/azure/test_remote.py::test_a_call_names_its_order_its_step_and_its_key",
        ),
    ),
    Mutant(
        statement="AGT-1",
        fault="an agent goes wherever the service sends it",
        file="engine/azure/remote.py",
        old="allow_redirects=False",
        new="allow_redirects=True",
        tests=(
            f"{UNIT}engine/azure/test_remote.py::test_a_call_goes_where_it_is_sent_and_nowhere_else",
        ),
    ),
    Mutant(
        fault="Event Grid gets the role of who reads a queue",
        file="infra/roles.json",
        old="c6a89b2d-59bc-44d0-9896-0f6e12d7b80a",
        new="8a0f0c08-91a1-4084-bc3d-661d67233fed",
        tests=(f"{INFRA}bicep.py::test_every_role_is_the_one_that_it_is_called",),
    ),
    Mutant(
        statement="SUP-7",
        fault="the alert that works while the app is dead can never fire",
        file=DEPLOYED,
        old='"threshold": 1,',
        new='"threshold": 0,',
        tests=(ALERT_RULES,),
    ),
    Mutant(
        statement="SUP-7",
        fault="of what Azure counts only one minute in five is looked at",
        file=DEPLOYED,
        old='alert-dead-lettered",\n    "enabled": true,\n    "evaluationFrequency": "PT1M"',
        new='alert-dead-lettered",\n    "enabled": true,\n    "evaluationFrequency": "PT5M"',
        tests=(ALERT_RULES,),
    ),
    Mutant(
        statement="SUP-7",
        fault="nobody is told that the app lacks a right",
        file=DEPLOYED,
        old='or message startswith \\"right.missing \\" ',
        new="",
        tests=(ALERT_RULES,),
    ),
    Mutant(
        fault="the state is open to who has a key of the account",
        file=DEPLOYED,
        old=f"{STATE_ACCOUNT}false",
        new=f"{STATE_ACCOUNT}true",
        tests=(f"{INFRA}bicep.py::test_keys_are_off",),
    ),
    Mutant(
        fault="an attempt is shorter on Azure than a call",
        file=DEPLOYED,
        old='"STEP_TIMEOUT_SECONDS": "180"',
        new='"STEP_TIMEOUT_SECONDS": "6"',
        tests=(f"{INFRA}settings.py::test_a_setting_is_in_azure_what_it_is_where_nobody_sets_it",),
    ),
    Mutant(
        statement="FLT-7",
        fault="a submission that failed once waits for minutes",
        file="host.json",
        old='"visibilityTimeout": "00:00:05"',
        new='"visibilityTimeout": "00:05:00"',
        tests=(f"{INFRA}files.py::test_an_outage_of_minutes_wears_out_no_message",),
    ),
    Mutant(
        fault="the console may stand in a frame of another page",
        file="engine/pages/triggers.py",
        old='("base-uri", "form-action", "frame-ancestors")',
        new='("base-uri", "form-action")',
        tests=(
            f"{UNIT}engine/pages/test_triggers.py::test_a_page_may_load_nothing_but_what_is_ours_and_is_shown_in_no_other",
        ),
    ),
    Mutant(
        fault="what operators see is left on the disk",
        file="engine/pages/static/common/api.js",
        old='      cache: "no-store",\n',
        new="",
        tests=(PAGES,),
    ),
    Mutant(
        fault="a page that nobody looks at goes on asking",
        file="engine/pages/static/common/poll.js",
        old="if (this.stopped || document.hidden) return;",
        new="if (this.stopped) return;",
        tests=(PAGES,),
    ),
    Mutant(
        fault="the same purchase stands in the basket again after it was ordered",
        file="shop/page/store.js",
        old='  localStorage.removeItem("basket");\n',
        new="",
        tests=(PAGES,),
    ),
    Mutant(
        statement="OPR-5",
        fault="the console keeps the key where it outlives the tab",
        file="operations/console/static/session.js",
        old="sessionStorage.setItem(KEY, key)",
        new="(sessionStorage.setItem(KEY, key), localStorage.setItem(KEY, key))",
        tests=(f"{BROWSER}console_page.py::test_from_an_alert_to_an_order_that_is_right_again",),
        where=Where.SYSTEM,
    ),
    Mutant(
        statement="OPR-5",
        fault="any number begins an action on many orders",
        file="operations/console/static/dialog.js",
        old="Number(given.number) === question.orders",
        new="given.number",
        tests=(
            f"{BROWSER}console_page.py::test_whoever_acts_on_many_orders_types_their_number_and_means_every_page",
        ),
        where=Where.SYSTEM,
    ),
    Mutant(
        statement="OPR-3",
        fault="an action on many orders ends with their first page",
        file="operations/console/static/bulk.js",
        old="} while (continuation);",
        new="} while (false);",
        tests=(
            f"{BROWSER}console_page.py::test_whoever_acts_on_many_orders_types_their_number_and_means_every_page",
        ),
        where=Where.SYSTEM,
    ),
    Mutant(
        fault="the local host opens what needs a key",
        file="tools/functions_alone/host/http.py",
        old="return bool(self._key) and hmac.compare_digest(given.encode(), self._key)",
        new="return bool(given)",
        tests=(f"{HOST}http_trigger.py::test_keys",),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="the local host removes a message before it is in the poison queue",
        file="tools/functions_alone/host/storage_queue.py",
        old="        try:\n            await self._poison.send_message(held.message.content)",
        new="        await self._delete(held)\n"
        "        try:\n            await self._poison.send_message(held.message.content)",
        tests=(
            f"{HOST}storage_queue_trigger.py::test_a_message_is_in_the_poison_queue_before_it_is_deleted",
        ),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="the local host settles a message while its lock is being renewed",
        file="tools/functions_alone/host/storage_queue.py",
        old="            await held.renewing  # it changes the receipt that settling needs\n",
        new="            pass\n",
        tests=(
            (
                f"{HOST}storage_queue_trigger.py::"
                "test_a_message_is_settled_under_the_receipt_of_a_renewal_that_was_under_way"
            ),
        ),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="the broker counts no failed delivery",
        file="tools/functions_alone/broker/queue.mjs",
        old="  #failed(message, now) {\n    message.deliveryCount += 1;\n",
        new="  #failed(message, now) {\n",
        tests=(EXACT_TIMES,),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="a write that is cut short loses a message on its way to the dead letters",
        file="tools/functions_alone/broker/journal.mjs",
        old="if (!held) gone.push({ queue: queue.name, gone: message.sequence });",
        new="if (!held) records.add({ queue: queue.name, gone: message.sequence });",
        tests=(EXACT_TIMES,),
        where=Where.CONTRACT,
    ),
    Mutant(
        fault="the broker takes a body that was cut short for a whole one",
        file="tools/functions_alone/broker/records.mjs",
        old="        if (reader.line() === null) return;\n",
        new="        reader.line();\n",
        tests=(EXACT_TIMES,),
        where=Where.CONTRACT,
    ),
)
"""Where the app meets others: adapters, triggers, infrastructure, pages, and the stand-ins for Azure."""

MUTANTS = (*ROLES, *EDGE)
