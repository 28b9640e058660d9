"""Ending: what runs comes to its end, within limits."""

import signal
import socket

import pytest

from functions_alone.tests.support.waiting import until


def test_sigterm_lets_running_calls_end_and_settles_their_messages(
    start_host, own_bus_queue, other_bus_queue, work_queue, lease_of
):
    """Every trigger: nothing new is taken, calls end, messages are settled, and the caller of HTTP gets an answer.

    The lock of the timer is free when its last run has ended, and not before.
    """
    queues = {
        "SINGLES": own_bus_queue.name,
        "BATCHES": other_bus_queue.name,
        "WORK_QUEUE": work_queue.queue_name,
    }
    own = {"TICK_DOES": "gate", "AzureFunctionsWebHost__hostid": "stopping"}
    host = start_host("hold,from_queue,from_bus,from_bus_many,tick", **own, **queues)
    with socket.create_connection(("127.0.0.1", host.port)) as held:
        held.sendall(b"GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n")
        work_queue.send_message("gate")
        own_bus_queue.send("gate")
        other_bus_queue.send("gate")
        for kind in ("hold", "queue", "timer", "single", "batch"):
            host.wait_for(kind)
        host.ask_to_stop()
        assert lease_of("stopping/tick.Listener") == "leased"
        host.open_gate()
        assert held.recv(1000).startswith(b"HTTP/1.1 200")
    assert host.ended() == 0
    assert lease_of("stopping/tick.Listener") == "available"
    assert own_bus_queue.under_way() == other_bus_queue.under_way() == 0
    assert work_queue.get_queue_properties().approximate_message_count == 0
    assert host.logged("WARNING") == 0


@pytest.mark.soak
def test_a_call_that_does_not_end_is_cut_off_after_the_grace_time(start_host, own_bus_queue):
    """LOCAL_SHUTDOWN_SECONDS bounds the wait; the message stays for another host."""
    host = start_host("from_bus", SINGLES=own_bus_queue.name, LOCAL_SHUTDOWN_SECONDS="0.3")
    own_bus_queue.send("gate")
    host.wait_for("single")
    assert host.stop() == 0
    assert host.logged("were cut off") == 1
    assert own_bus_queue.under_way() == 1


@pytest.mark.soak
def test_a_second_signal_ends_at_once(start_host, work_queue):
    """Whoever does not want to wait sends it twice; what the host held is free again once its lock has run out."""
    host = start_host(
        "hold,from_queue", WORK_QUEUE=work_queue.queue_name, LOCAL_QUEUE_LOCK_SECONDS="1"
    )
    work_queue.send_message("gate")
    with socket.create_connection(("127.0.0.1", host.port)) as held:
        held.sendall(b"GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n")
        host.wait_for("hold")
        host.wait_for("queue")
        host.ask_to_stop()
        assert host.stop() == 128 + signal.SIGTERM
    assert until(work_queue.receive_message).dequeue_count == 2
