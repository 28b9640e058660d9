"""What is documented of dead letters that are forwarded to another queue."""

from azure.servicebus import ServiceBusMessage

from functions_alone.tests.support.waiting import PATIENCE_SECONDS


async def test_dead_letter_is_forwarded_with_its_reason_and_the_name_of_its_queue(
    forwarding, forwarding_name, queue
):
    """It comes as a message of the other queue, which was not delivered yet, with all that its sender gave it.

    learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues and, of the name,
    learn.microsoft.com/dotnet/api/azure.messaging.servicebus.servicebusreceivedmessage.deadlettersource
    """
    sender, receiver = forwarding
    sent = ServiceBusMessage("dead", message_id="m", application_properties={"step": 7})
    await sender.send_messages(sent)
    [message] = await receiver.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
    await receiver.dead_letter_message(message, reason="Why", error_description="because")
    [forwarded] = await queue.receive()
    await queue.complete(forwarded)
    assert (str(forwarded), forwarded.message_id) == ("dead", "m")
    assert forwarded.application_properties[b"step"] == 7
    assert (forwarded.dead_letter_reason, forwarded.dead_letter_error_description) == (
        "Why",
        "because",
    )
    assert forwarded.dead_letter_source == forwarding_name


async def test_what_was_delivered_too_often_is_forwarded_too(forwarding, queue):
    """By Service Bus itself, with its own reason; nothing of it stays behind."""
    sender, receiver = forwarding
    await sender.send_messages(ServiceBusMessage("tried"))
    forwarded = []
    while not forwarded:
        for message in await receiver.receive_messages(1, max_wait_time=1):
            await receiver.abandon_message(message)
        forwarded = await queue.receiver.receive_messages(1, max_wait_time=0.2)
    await queue.complete(*forwarded)
    assert [str(message) for message in forwarded] == ["tried"]
    assert forwarded[0].dead_letter_reason == "MaxDeliveryCountExceeded"
    assert await receiver.peek_messages(1, sequence_number=1) == []
