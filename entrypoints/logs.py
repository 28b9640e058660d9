"""Log lines as Application Insights keeps them: the constant message, then its fields as JSON.

The worker of Azure Functions sends the formatted message alone, so what was passed as `extra` would be lost.
"""

import json
import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FieldsFormatter(logging.Formatter):
    """Appends what was passed as `extra` to the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides logging's own
        """Format the line without the traceback."""
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return f"{record.message} {json.dumps(fields, default=str)}" if fields else record.message


def show_fields() -> None:
    """Let handlers that have no format of their own show the fields; keep the SDKs' line for every request out.

    At Azure's level of detail those lines would be most of what telemetry costs.
    """
    for handler in logging.getLogger().handlers:
        if handler.formatter is None:
            handler.setFormatter(FieldsFormatter())
    sdks = logging.getLogger("azure")
    if sdks.level == logging.NOTSET:
        sdks.setLevel(logging.WARNING)
