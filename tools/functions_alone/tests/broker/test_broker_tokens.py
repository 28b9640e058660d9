"""Whose token is wrong is refused, as on Azure. The rules are in tokens.test.mjs; here an SDK meets them."""

import pytest
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusAuthenticationError


@pytest.mark.parametrize(
    ("given", "instead", "why"),
    [
        ("SAS_KEY_VALUE", "another-key", "not that of the key RootManageSharedAccessKey"),
        (
            "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
            "SharedAccessSignature=SharedAccessSignature sr=x&sig=y&se=1&skn=RootManageSharedAccessKey",
            "expired",
        ),
    ],
    ids=["key", "token"],
)
async def test_a_wrong_credential_is_refused_with_the_reason(broker, given, instead, why):
    """A connection string of another namespace is noticed here, and not only on Azure."""
    string = broker.connection_string.replace(given, instead)
    assert string != broker.connection_string
    async with ServiceBusClient.from_connection_string(string, retry_total=0) as client:
        with pytest.raises(ServiceBusAuthenticationError) as raised:
            await client.get_queue_sender("plain").__aenter__()
    assert why in str(raised.value.inner_exception)
