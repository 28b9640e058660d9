"""What can go wrong in the host itself, as opposed to in the app."""


class HostError(Exception):
    """The host cannot start, or cannot go on; the message is meant for a person at a terminal."""


class InvocationFailed(Exception):  # noqa: N818 - named like the event in Azure's own logs
    """The function raised or ran out of time, or its process ended; it has been logged already."""


class LinkLostError(Exception):
    """The connection to the broker is gone."""
