"""The order that a Service Bus message may carry along, see `core.carried`."""

import azure.functions as func

from core.messages import ORDER_PROPERTY


def carried_by(message: func.ServiceBusMessage) -> str | None:
    """Return the order as packed text; None if the message carries none."""
    text = (message.application_properties or {}).get(ORDER_PROPERTY)
    return text if isinstance(text, str) else None
