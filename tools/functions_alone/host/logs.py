"""One line per record on stderr, with the extra fields as key=value."""

import logging
import sys

# Libraries that would report every retry; the host itself says once that a dependency is away.
_NOISY = {"azure": logging.ERROR, "azure.servicebus": logging.CRITICAL, "asyncio": logging.ERROR}
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class HostFieldsFormatter(logging.Formatter):
    """Appends the values passed as `extra` to the message.

    No text can produce a line that looks like a record, whoever wrote it: all lines but the first are indented, and
    characters that are not printable are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format the line, and the traceback below it."""
        return "\n    ".join(map(_printable, super().format(record).splitlines()))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides logging's own
        """Format the line without the traceback."""
        line = super().formatMessage(record)
        fields = [f"{key}={value}" for key, value in vars(record).items() if key not in _STANDARD]
        return " ".join([line, *fields])


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in line
    )


def configure_logging(level: str = "INFO") -> None:
    """Send all records from `level` upward to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HostFieldsFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name, quiet in _NOISY.items():
        logging.getLogger(name).setLevel(quiet)
