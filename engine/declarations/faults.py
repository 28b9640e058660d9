"""The faults of declarations and settings at the start of the app, as codes with facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import ClassVar, Self

from engine.domain.errors import AppError

Fact = str | int | float | timedelta | tuple[str | int, ...] | None
"""A value that the text of a fault contains. None means that no type is declared."""


class FaultCode(StrEnum):
    """The codes of faults, each with the names of its facts.

    `engine.words.faults` makes the texts.
    """

    facts: tuple[str, ...]

    def __new__(cls, value: str, facts: tuple[str, ...]) -> Self:
        code = str.__new__(cls, value)
        code._value_ = value
        code.facts = facts
        return code

    # Values of any declaration.
    PATTERN_MISMATCH = ("pattern-mismatch", ("field", "value", "pattern"))
    NOT_POSITIVE = ("not-positive", ("field", "value"))
    NEGATIVE = ("negative", ("field", "value"))
    TOO_HIGH = ("too-high", ("field", "value", "limit"))
    OUT_OF_RANGE = ("out-of-range", ("field", "value", "least", "most"))
    NOT_PRINTABLE = ("not-printable", ("field",))

    # Workflows.
    NO_WORKFLOW = ("no-workflow", ())
    UNKNOWN_WORKFLOW = ("unknown-workflow", ("workflow",))
    DUPLICATE_WORKFLOW = ("duplicate-workflow", ())
    PAYLOAD_DIFFERS = ("payload-differs", ("payload", "expected"))
    NO_STEP = ("no-step", ())
    TOO_MANY_STEPS = ("too-many-steps", ("steps", "limit"))
    DUPLICATE_STEP = ("duplicate-step", ("step",))
    ENDPOINT_STEP_UNKNOWN = ("endpoint-step-unknown", ("step",))
    WHEN_LATE_WITHOUT_WITHIN = ("when-late-without-within", ("when_late",))
    SAMPLE_INVALID = ("sample-invalid", ("message",))

    # Options of what an author declares.
    OPTION_UNKNOWN = ("option-unknown", ("option",))
    OPTION_TYPE = ("option-type", ("option", "expected", "given"))

    # Fields of a payload.
    FIELD_RESERVED = ("field-reserved", ("field",))
    FLOAT_FOR_MONEY = ("float-for-money", ())
    MODEL_IN_MAPPING = ("model-in-mapping", ("model",))
    PERSONAL_KEY = ("personal-key", ())
    MARK_ON_MODEL = ("mark-on-model", ("model",))

    # Steps.
    NOT_ABOVE = ("not-above", ("step",))
    AFTER_NOT_A_FUNCTION = ("after-not-a-function", ("step",))
    RESULT_NOT_AFTER = ("result-not-after", ("step",))
    RESULT_MAY_BE_MISSING = ("result-may-be-missing", ("step",))
    UNDO_AFTER_PIVOT = ("undo-after-pivot", ("step",))
    UNDO_NEVER_REACHED = ("undo-never-reached", ("step",))
    NOTHING_TO_UNDO = ("nothing-to-undo", ())
    CAPABILITY_NOT_OFFERED = ("capability-not-offered", ("capability",))
    UNDO_NEEDS_NOT_KEPT = ("undo-needs-not-kept", ("fields",))
    UNDO_NEEDS_WITHOUT_UNDO = ("undo-needs-without-undo", ())
    TITLE_TOO_LONG = ("title-too-long", ("length", "limit"))
    FUNCTION_WITHOUT_NAME = ("function-without-name", ("limit",))
    COOLDOWN_OUTLASTS_KEY = ("cooldown-outlasts-key", ("time", "agent", "keys_last"))
    ATTEMPTS_OUTLAST_KEY = ("attempts-outlast-key", ("attempts", "time", "agent", "keys_last"))
    TIMEOUT_WITHIN_MARGIN = ("timeout-within-margin", ("timeout", "margin"))
    EXTERNAL_WITHOUT_MODEL = ("external-without-model", ())
    EXTERNAL_WITHOUT_TIMEOUT = ("external-without-timeout", ())
    EXTERNAL_WITH_UNDO = ("external-with-undo", ())
    EXTERNAL_AS_PIVOT = ("external-as-pivot", ())

    # Functions of authors, and the operations of their steps.
    TYPES_UNREADABLE = ("types-unreadable", ("message",))
    NOT_PLAIN_FUNCTION = ("not-plain-function", ())
    RETURN_TYPE = ("return-type", ("expected", "returned"))
    PARAMETER_WITHOUT_NAME = ("parameter-without-name", ())
    PARAMETER_UNKNOWN = ("parameter-unknown", ("payload",))
    PARAMETER_OF_NOTHING = ("parameter-of-nothing", ("step",))
    PARAMETER_TYPE = ("parameter-type", ("step", "expected", "declared"))
    OPERATION_WITHOUT_CLASS = ("operation-without-class", ())
    OPERATION_REQUEST = ("operation-request", ("expected", "returned"))
    REQUEST_FIELD_RESERVED = ("request-field-reserved", ("model", "field"))
    UNDO_BY_OTHER_SERVICE = ("undo-by-other-service", ("capability",))
    EXAMPLE_MISSING = ("example-missing", ("operation", "model", "message"))
    PATH_FIELD_UNKNOWN = ("path-field-unknown", ("operation", "field"))
    PERSONAL_INSIDE_FIELD = ("personal-inside-field", ())
    KEY_IN_ANSWER = ("key-in-answer", ())
    ACTIVITY_NOT_A_FUNCTION = ("activity-not-a-function", ())
    ACTIVITY_PARAMETERS = ("activity-parameters", ("model",))
    ACTIVITY_PARAMETER_TYPE = ("activity-parameter-type", ("parameter", "given", "declared"))
    ACTIVITY_UNKNOWN_OPERATION = ("activity-unknown-operation", ("operation",))
    DUPLICATE_ACTIVITY = ("duplicate-activity", ("operation",))

    # Agents.
    DUPLICATE_AGENT = ("duplicate-agent", ())
    QUEUE_OF_SCHEDULER = ("queue-of-scheduler", ("queue",))
    CAPABILITY_RESERVED = ("capability-reserved", ("capability",))
    NOT_A_REFUSAL = ("not-a-refusal", ("status", "excluded"))
    TWO_ROUTES = ("two-routes", ("operation",))
    OPERATION_NOT_REACHABLE = ("operation-not-reachable", ("operation",))
    AUTH_WITHOUT_CALLS = ("auth-without-calls", ())
    CALLBACK_WITHOUT_TIME = ("callback-without-time", ())
    ANSWER_OUTLASTS_KEY = ("answer-outlasts-key", ("answer_within", "keys_last"))
    METHOD_UNKNOWN = ("method-unknown", ("method", "methods"))
    PATH_INVALID = ("path-invalid", ("path",))
    HEADER_NOT_ALLOWED = ("header-not-allowed", ("header",))

    # Settings. No fact holds the value of a secret.
    SETTING_MISSING = ("setting-missing", ("expected",))
    SETTING_INVALID = ("setting-invalid", ("message",))
    SETTING_MALFORMED = ("setting-malformed", ("message", "expected"))
    CONNECTION_MISSING = ("connection-missing", ("alternatives",))
    TOPIC_KEY_MISSING = ("topic-key-missing", ())
    NOT_HTTPS = ("not-https", ())
    CHANNEL_INCOMPLETE = ("channel-incomplete", ("channel", "expected"))
    RULE_CHANNEL_OFF = ("rule-channel-off", ("channel",))
    RULE_UNKNOWN_TYPE = ("rule-unknown-type", ("type", "types"))
    RULE_UNKNOWN_CAUSE = ("rule-unknown-cause", ("cause",))
    MAIL_ADDRESS_INVALID = ("mail-address-invalid", ("position",))
    TOO_MANY_RECIPIENTS = ("too-many-recipients", ("count", "limit"))
    SMTP_URL_INVALID = ("smtp-url-invalid", ())
    SETTING_UNKNOWN_AGENT = ("setting-unknown-agent", ("agent", "agents"))
    LANGUAGE_UNKNOWN = ("language-unknown", ("language", "languages"))
    PREFIX_TAKEN = ("prefix-taken", ("queues",))
    SCHEDULE_TIME_SPAN = ("schedule-time-span", ("value",))
    SCHEDULE_NOT_SIX_FIELDS = ("schedule-not-six-fields", ("value", "fields"))
    SCHEDULE_FIELD_INVALID = ("schedule-field-invalid", ("field", "value", "least", "most"))
    SCHEDULE_BOTH_DAYS = ("schedule-both-days", ("day_of_month", "day_of_week"))
    SCHEDULE_NEVER = ("schedule-never", ("day", "month"))
    TIME_SPAN_INVALID = ("time-span-invalid", ("value",))
    MARGIN_TOO_LONG = ("margin-too-long", ("limit",))
    PUBLIC_URL_MISSING = ("public-url-missing", ("name", "expected"))
    ADDRESS_MISSING = ("address-missing", ("agent",))
    ADDRESS_INVALID = ("address-invalid", ("agent",))
    ADDRESS_WITH_QUERY = ("address-with-query", ("agent",))
    OPTIONAL_ADDRESS_INVALID = ("optional-address-invalid", ("agent",))
    AGENT_SETTING_MISSING = ("agent-setting-missing", ("expected", "agent"))
    AGENT_SETTING_NOT_IN_HEADER = ("agent-setting-not-in-header", ("expected", "agent"))
    AGENT_SETTING_NO_ADDRESS = ("agent-setting-no-address", ("expected", "agent"))
    AGENT_SETTING_UNUSABLE = ("agent-setting-unusable", ("expected", "agent"))
    KEY_VAULT_UNRESOLVED = ("key-vault-unresolved", ())

    # The name of a new business.
    BUSINESS_NAME_INVALID = ("business-name-invalid", ("limit",))
    PYTHON_KEYWORD = ("python-keyword", ())
    FILE_EXISTS = ("file-exists", ())
    MODULE_EXISTS = ("module-exists", ())


@dataclass(frozen=True, init=False)
class Fault:
    """One fault: its code, its place, and the facts that the code names."""

    code: FaultCode
    place: str
    """The place, such as `trip version 1: step hotel` or a setting, or empty for the whole app."""
    facts: Mapping[str, Fact] = field(hash=False)
    nearest: str | None = field(default=None, compare=False)
    """The known name that the author may have meant, or None if none is similar."""

    def __init__(self, code: FaultCode, place: str = "", /, **facts: Fact) -> None:
        if facts.keys() != set(code.facts):
            raise TypeError(f"{code} has the facts {code.facts}, not {tuple(facts)}")
        object.__setattr__(self, "code", code)  # the class is frozen
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "facts", facts)

    def within(self, place: str) -> "Fault":
        inside = Fault(self.code, f"{place}: {self.place}" if self.place else place, **self.facts)
        object.__setattr__(inside, "nearest", self.nearest)
        return inside

    def like(self, name: str, known: Iterable[str]) -> "Fault":
        """Return the fault with the known name that is most similar to `name`, if there is one."""
        found = Fault(self.code, self.place, **self.facts)
        object.__setattr__(found, "nearest", next(iter(get_close_matches(name, known)), None))
        return found


class StartUpError(AppError):
    """The app cannot start. `faults` lists every fault, and not only the first."""

    describe: ClassVar[Callable[["StartUpError"], str]]
    """Returns the text of an error. `engine.words.faults` sets the function that makes the
    words."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__()
        self.args = (faults,)  # another process makes the error from these
        self.faults = faults

    def __str__(self) -> str:
        return type(self).describe(self)


def _codes_of(error: StartUpError) -> str:
    return "; ".join(map(str, error.faults))


StartUpError.describe = _codes_of
