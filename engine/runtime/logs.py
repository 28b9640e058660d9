"""Log lines as Application Insights keeps them: a constant message, then its fields as JSON.

The worker of Azure Functions sends only the formatted message, so fields passed as `extra` would be
lost.
"""

import json
import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FieldsFormatter(logging.Formatter):
    """Appends the fields passed as `extra` to the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides logging's own
        """Format the line without the traceback."""
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return f"{record.message} {json.dumps(fields, default=str)}" if fields else record.message


def show_fields() -> None:
    """Show the fields in handlers without a format, and drop the SDKs' line for every request."""
    for handler in logging.getLogger().handlers:
        if handler.formatter is None:
            handler.setFormatter(FieldsFormatter())
    # These lines would cause most of the cost of telemetry.
    sdks = logging.getLogger("azure")
    if sdks.level == logging.NOTSET:
        sdks.setLevel(logging.WARNING)
