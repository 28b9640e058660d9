"""Dependencies that are away when a host starts, come, and go again."""

import asyncio

from functions_alone.tests.support.gateways import Gateway


async def test_storage_and_broker_away_and_back(services, start_host, work_queue, own_bus_queue):
    """The host starts without them, serves HTTP, and says once of each that it is away and once that it is back."""
    storage, bus = Gateway(services.ports.queue_port), Gateway(services.ports.amqp_port)
    connections = {
        "Storage": services.storage_connection_string.replace(
            f":{services.ports.queue_port}/", f":{storage.port}/"
        ),
        "Bus": services.service_bus_connection_string.replace(
            f":{services.ports.amqp_port};", f":{bus.port};"
        ),
    }
    work_queue.send_message("hello")
    queues = {"WORK_QUEUE": work_queue.queue_name, "SINGLES": own_bus_queue.name}
    host = start_host("from_queue,from_bus", **queues, **connections)
    both = (f"storage queue {work_queue.queue_name}", f"service bus queue {own_bus_queue.name}")

    async def logged_by_both(state, times):
        for queue in both:
            await asyncio.to_thread(host.wait_for_log, f"{queue} is {state}", times)

    await logged_by_both("away", 1)
    await asyncio.gather(storage.open(), bus.open())
    await logged_by_both("back", 1)
    await asyncio.to_thread(host.wait_for, "queue")
    await asyncio.gather(storage.close(), bus.close())
    await logged_by_both("away", 2)
    assert host.seen("queue")[0]["body"] == "hello"
    assert host.logged("Traceback") == 0
