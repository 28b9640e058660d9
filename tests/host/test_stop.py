"""Ending: what runs comes to its end, within limits."""

import signal
import socket

from conftest import until


def _refused(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_sigterm_lets_running_calls_end_and_settles_their_messages(
    start_host, own_bus_queue, other_bus_queue, work_queue
):
    """Every trigger: nothing new is taken, calls end, messages are settled, and the caller of HTTP gets an answer."""
    names = "hold,from_queue,from_bus,from_bus_many,tick"
    host = start_host(names, SINGLES=own_bus_queue.name, BATCHES=other_bus_queue.name, WORK_QUEUE=work_queue.queue_name)
    with socket.create_connection(("127.0.0.1", host.port)) as held:
        held.sendall(b"GET /hold?seconds=0.7 HTTP/1.1\r\nHost: x\r\n\r\n")
        work_queue.send_message("slow 0.7")
        own_bus_queue.send("slow 0.7")
        other_bus_queue.send("slow 0.7")
        for kind in ("hold", "queue", "timer", "single", "batch"):
            host.wait_for(kind, len)
        host.process.send_signal(signal.SIGTERM)
        until(lambda: _refused(host.port), "the socket to close")
        assert held.recv(1000).startswith(b"HTTP/1.1 200")
    assert host.process.wait(timeout=15) == 0
    assert own_bus_queue.is_empty()
    assert other_bus_queue.is_empty()
    assert work_queue.get_queue_properties().approximate_message_count == 0
    assert host.logged("WARNING") == 0


def test_a_call_that_does_not_end_is_cut_off_after_the_grace_time(start_host, own_bus_queue):
    """LOCAL_SHUTDOWN_SECONDS bounds the wait; the message stays for another host."""
    host = start_host("from_bus", SINGLES=own_bus_queue.name, LOCAL_SHUTDOWN_SECONDS="0.3")
    own_bus_queue.send("gate")
    host.wait_for("single", len)
    assert host.stop() == 0
    assert host.logged("were cut off") == 1
    assert own_bus_queue.count("active") + own_bus_queue.count("locked") == 1


def test_a_second_signal_ends_at_once(start_host):
    """Whoever does not want to wait sends the signal twice."""
    host = start_host("hold")
    with socket.create_connection(("127.0.0.1", host.port)) as held:
        held.sendall(b"GET /hold?seconds=9 HTTP/1.1\r\nHost: x\r\n\r\n")
        host.wait_for("hold", len)
        host.process.send_signal(signal.SIGTERM)
        until(lambda: _refused(host.port), "the socket to close")
        assert host.stop() == 128 + signal.SIGTERM
