"""The three measurements, each on its own stack."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.counters import totals
from bench.driver import Driver, Final
from bench.usage import host_mb, usage

Result = dict[str, Any]

WARM_UP_ORDERS = 50
KILL_AT = 0.3
PAUSE_SECONDS = 0.5
"""The pause between the kill and the new host."""


async def warm_up(driver: Driver) -> None:
    """Let every connection open and every queue be used once, so that a running system is measured."""
    order_ids = driver.new_orders(WARM_UP_ORDERS)
    await driver.submit_all(order_ids)
    await driver.wait_for(order_ids, len(order_ids), 30)


async def throughput(driver: Driver, orders: int, most_seconds: float) -> Result:
    """Submit all orders as fast as possible. Measures from the first submission to the last `Processed`."""
    order_ids = driver.new_orders(orders)
    counts, used, began = totals(driver.folder), usage(driver.stack), time.time()
    submitting = asyncio.create_task(driver.submit_all(order_ids))
    submitting_ended: list[float] = []
    submitting.add_done_callback(lambda _: submitting_ended.append(time.time()))
    done = await driver.wait_for(order_ids, orders, most_seconds)
    counted, used_after, ended = totals(driver.folder), usage(driver.stack), time.time()
    await submitting
    final = await driver.final_states(order_ids)
    seconds = max(done.values(), default=ended) - began
    return {
        "orders": orders,
        "done": _processed(final),
        "recovered": sum(order.failures > 0 for order in final.values()),
        "orders_per_s": round(len(done) / seconds, 1),
        "submitted_per_s": round(orders / (submitting_ended[0] - began), 1),
        "cores": used_after.since(used, ended - began),
        "client_cpu_ms": round((used_after.worker - used.worker) * 1000 / orders, 2),
        "azurite_cpu_ms": round((used_after.azurite - used.azurite) * 1000 / orders, 2),
        "broker_cpu_ms": round((used_after.broker - used.broker) * 1000 / orders, 2),
        "host_mb": host_mb(driver.stack),
        **per_order(counted - counts, orders, submitted=orders),
    }


def per_order(counted: Mapping[str, int], orders: int, submitted: int) -> Result:
    """Return the operations for each order. The driver's submissions count as the shop's."""
    summed = {
        "table_transactions": sum(
            counted[name]
            for name in ("table_writes", "table_loads", "table_point_reads", "table_agenda_queries")
        ),
        "table_entities": counted["table_entities"],
        "storage_queue_operations": counted["storage_queue_operations"] + submitted,
        "service_bus_operations": counted["service_bus_sends"],
        "service_bus_messages": counted["service_bus_messages"],
        "service_bus_bytes": counted["service_bus_bytes"],
        "service_bus_received": counted["host_service_bus_receives"],
        "event_grid_operations": counted["event_grid_operations"],
        "remote_calls": counted["remote_calls"],
        "host_storage_queue_operations": sum(
            counted[f"host_storage_queue_{name}"] for name in ("receives", "deletes", "renewals")
        ),
        "host_service_bus_operations": sum(
            counted[f"host_service_bus_{name}"] for name in ("receives", "settlements", "renewals")
        ),
    }
    parts = (
        "table_writes",
        "table_loads",
        "table_point_reads",
        "table_agenda_queries",
        "table_look_queries",
        "table_entities_read",
        "looks",
        "blob_operations",
        "simulator_table_requests",
        "host_storage_queue_receives",
        "host_service_bus_settlements",
    )
    numbers = summed | {name: counted[name] for name in parts}
    return {name: round(number / orders, 3) for name, number in numbers.items()}


async def latency(driver: Driver, rate: float, seconds: float) -> Result:
    """Submit at a fixed rate. Measures each order from the time when it was due to its `Processed`."""
    order_ids = driver.new_orders(round(rate * seconds))
    start = time.time() + 0.2
    due = {order_id: start + number / rate for number, order_id in enumerate(order_ids)}
    counts, used = totals(driver.folder), usage(driver.stack)

    async def submit(order_id: str) -> None:
        await asyncio.sleep(max(0.0, due[order_id] - time.time()))
        await driver.submit(order_id)

    await asyncio.gather(*(submit(order_id) for order_id in order_ids))
    done = await driver.wait_for(order_ids, len(order_ids), 20)
    used_after, counted = usage(driver.stack), totals(driver.folder) - counts
    taken = [at - due[order_id] for order_id, at in done.items()]
    return {
        "p50_ms": percentile(taken, 0.5),
        "p99_ms": percentile(taken, 0.99),
        "max_ms": percentile(taken, 1),
        "samples": len(taken),
        "latency_client_cpu_ms": round(
            (used_after.worker - used.worker) * 1000 / len(order_ids), 2
        ),
        **{
            f"latency_{name}": number
            for name, number in per_order(counted, len(order_ids), len(order_ids)).items()
        },
    }


async def crash(driver: Driver, orders: int, most_seconds: float) -> Result:
    """Kill a host with SIGKILL when 30 % are processed, start a new one, and check every order."""
    order_ids = driver.new_orders(orders)
    calls_before = (await driver.remote_ledger(order_ids)).calls
    submitting = asyncio.create_task(driver.submit_all(order_ids))
    await driver.wait_for(order_ids, round(orders * KILL_AT), most_seconds)
    killed_at = time.time()
    await driver.stack.kill_host()
    at_kill = await driver.wait_for(order_ids, 0, 1)
    await submitting  # the submitter is not hurt: all orders are accepted
    await asyncio.sleep(max(0.0, killed_at + PAUSE_SECONDS - time.time()))
    restarted_at = time.time()
    await driver.stack.start_host()
    done = await driver.wait_for(order_ids, orders, most_seconds)
    final = await driver.final_states(order_ids)
    ledger = await driver.remote_ledger(order_ids)
    done = {
        order: row.updated_at for order, row in final.items() if row.state == "Processed"
    } | dict(done)
    unfinished = orders - _processed(final)
    called = {key.partition(":")[0] for key, at in ledger.effects if at <= killed_at}
    in_flight = [
        done[order]
        for order in called
        if order not in at_kill and done.get(order, 0) > restarted_at
    ]
    after = [at for at in done.values() if at > restarted_at]
    return {
        "crash_orders": orders,
        "crash_valid": len(at_kill)
        >= round(orders * KILL_AT),  # otherwise the kill came after all had ended
        "processed_at_kill": len(at_kill),
        "inflight_at_kill": len(called - at_kill.keys()),
        "lost": orders - len(final),
        "unfinished": unfinished,
        "crash_states": _states(list(final.values()), orders),
        "crash_recovered": sum(order.failures > 0 for order in final.values()),
        "duplicate_calls": ledger.calls - calls_before - len(ledger.keys),
        "duplicate_effects": len(ledger.effects) - len(ledger.keys),
        "recovery_s": None if unfinished else round(max(done.values()) - restarted_at, 2),
        "inflight_recovered_s": round(max(in_flight) - restarted_at, 2) if in_flight else None,
        "first_after_restart_s": round(min(after) - restarted_at, 2) if after else None,
    }


def percentile(seconds: Sequence[float], share: float) -> float | None:
    """Return the percentile in milliseconds. None if there are no values."""
    ordered = sorted(seconds)
    return (
        round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 1)
        if ordered
        else None
    )


def _processed(final: Mapping[str, Final]) -> int:
    return sum(order.state == "Processed" for order in final.values())


def _states(final: Sequence[Final], orders: int) -> dict[str, int]:
    """Count the orders by state. An order without a state row was never recorded."""
    names = [order.state for order in final] + ["NotRecorded"] * (orders - len(final))
    return {name: names.count(name) for name in sorted(set(names))}
