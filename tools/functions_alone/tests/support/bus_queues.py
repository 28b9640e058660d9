"""The queues of the shared broker, by name, with their properties."""

OF_THE_BROKERS_TESTS = {
    "plain": {"LockDuration": "PT5M"},  # first: the generic operations use it
    "quick": {"LockDuration": "PT1S", "MaxDeliveryCount": 2},
    "renewed": {"LockDuration": "PT4S"},
    "renewed-often": {"LockDuration": "PT15S"},
    "mortal": {"DefaultMessageTimeToLive": "PT1S"},
    "mourned": {"DefaultMessageTimeToLive": "PT0.5S", "DeadLetteringOnMessageExpiration": True},
    "forwarding": {"MaxDeliveryCount": 2, "ForwardDeadLetteredMessagesTo": "plain"},
    "unique": {"RequiresDuplicateDetection": True, "DuplicateDetectionHistoryTimeWindow": "PT3S"},
}

OF_THE_SHARED_HOST = {
    name: {"LockDuration": "PT3S", "MaxDeliveryCount": 2}
    for name in ("singles", "batches", "texts", "texts-together")
}
"""Here a lock is lost before a test gets impatient."""

OF_ONE_TEST = {
    f"own-{number}": {"LockDuration": "PT1M", "MaxDeliveryCount": 2000} for number in range(8)
}
"""Here no lock is lost."""

QUEUES = OF_THE_BROKERS_TESTS | OF_THE_SHARED_HOST | OF_ONE_TEST
