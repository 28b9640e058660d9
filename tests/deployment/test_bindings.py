"""How the app's functions are bound to what starts them."""


def test_every_message_comes_as_bytes(functions):
    """As text it would be changed, spoil its batch, and replace its own metadata (host.md 2 and 3, webjobs.md 6)."""
    queues = {
        name: trigger["dataType"]
        for name, trigger in functions.items()
        if trigger["type"] in ("queueTrigger", "serviceBusTrigger")
    }
    assert len(queues) > 10
    assert set(queues.values()) == {"BINARY"}
