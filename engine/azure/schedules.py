"""Schedules and time spans, by the rules of Azure's host.

Azure reads some of them in surprising ways: `FRI-MON` is Monday to Friday, `S` is Sunday, and
`24:00:00` is 24 days. So we accept only forms that Azure's host and the embedded host read alike. A
test compares them with the results of Azure's parser (`tests/data/azure_host/ncrontab.tsv`).
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from engine.declarations.faults import Fault, FaultCode

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
LEAP_YEAR = 2024

HOST_JSON = "AzureFunctionsJobHost__"
"""The prefix of settings that replace values of host.json."""
_OF_TIME = re.compile(r"(timeout|interval|duration|period|delay|waittime)$", re.IGNORECASE)
"""The endings of the names of all times in host.json."""
_SPAN = re.compile(r"([0-9]{1,6}\.)?([01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](\.[0-9]{1,7})?")
_LIKE_A_SPAN = re.compile(r"[0-9.:+-]+")
_VALUE = "[0-9]{1,2}|[A-Za-z]{3}"
_TWO_ALIKE = "(?=[0-9]+-[0-9]|[A-Za-z]+-[A-Za-z])"
_RANGE = rf"\*|{_TWO_ALIKE}(?P<first>{_VALUE})-(?P<last>{_VALUE})"
_TERM = re.compile(rf"(?P<value>{_VALUE})|(?:{_RANGE})(?:/(?P<step>[1-9][0-9]?))?")
"""A term of a field. A step may only follow `*` or a range: hosts disagree about `1/2` and `1-1/2`.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One of the six fields of a schedule."""

    name: str
    least: int
    most: int
    names: Sequence[str] = ()

    def values(self, text: str) -> Set[int]:
        """Return the values of the field.

        Raises `ValueError` if functions hosts disagree about them.
        """
        return {value for term in text.split(",") for value in self._values_of(term)}

    def _values_of(self, term: str) -> Sequence[int]:
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(term)
        if match["value"]:
            return [self._value(match["value"])]
        first = self._value(match["first"] or str(self.least))
        last = self._value(match["last"] or str(self.most))
        if last <= first:
            raise ValueError(term)
        return range(first, last + 1, int(match["step"] or 1))

    def _value(self, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + self.least
        value = int(text)
        if not self.least <= value <= self.most:
            raise ValueError(text)
        return value


DAY_OF_MONTH, MONTH = Field("day of month", 1, 31), Field("month", 1, 12, MONTHS)
DAY_OF_WEEK = Field("day of week", 0, 6, DAYS)
FIELDS = (
    Field("second", 0, 59),
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    DAY_OF_MONTH,
    MONTH,
    DAY_OF_WEEK,
)


def schedule_faults(setting: str, text: str) -> Iterator[Fault]:
    """Yield the parts of a schedule about which functions hosts disagree."""
    fields = [field for field in text.split(" ") if field]
    if len(fields) == 1 and _LIKE_A_SPAN.fullmatch(fields[0]):
        yield Fault(FaultCode.SCHEDULE_TIME_SPAN, setting, value=text)
    elif len(fields) != len(FIELDS):
        yield Fault(FaultCode.SCHEDULE_NOT_SIX_FIELDS, setting, value=text, fields=len(fields))
    else:
        yield from _field_faults(setting, dict(zip(FIELDS, fields, strict=True)))


def _field_faults(setting: str, texts: Mapping[Field, str]) -> Iterator[Fault]:
    values: dict[Field, Set[int]] = {}
    for field, text in texts.items():
        try:
            values[field] = field.values(text)
        except ValueError:
            yield Fault(
                FaultCode.SCHEDULE_FIELD_INVALID, setting,
                field=field.name, value=text, least=field.least, most=field.most,
            )  # fmt: skip
    days = {"day_of_month": texts[DAY_OF_MONTH], "day_of_week": texts[DAY_OF_WEEK]}
    if not any(text.startswith("*") for text in days.values()):
        yield Fault(FaultCode.SCHEDULE_BOTH_DAYS, setting, **days)
    if DAY_OF_MONTH in values and MONTH in values:
        first = min(values[DAY_OF_MONTH])
        if all(monthrange(LEAP_YEAR, month)[1] < first for month in values[MONTH]):
            yield Fault(FaultCode.SCHEDULE_NEVER, setting, day=first, month=texts[MONTH])


def span_faults(environ: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the settings for times in host.json about which functions hosts disagree."""
    for name, value in environ.items():
        if name.startswith(HOST_JSON) and _OF_TIME.search(name) and not _SPAN.fullmatch(value):
            yield Fault(FaultCode.TIME_SPAN_INVALID, name, value=value)
