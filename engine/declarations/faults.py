"""What is wrong with declarations and settings when the app starts, and the words for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Self

from engine.domain.errors import AppError

Fact = str | int | float | timedelta | tuple[str | int, ...] | None
"""A value that the text of a fault contains; None for the type of something that declares none."""


class FaultCode(StrEnum):
    """What is wrong: a code, the names of its facts, and the template of its text."""

    facts: tuple[str, ...]
    template: str
    """What is wrong and what to do; in braces stand the facts."""

    def __new__(cls, value: str, facts: tuple[str, ...], template: str) -> Self:
        """Make a code from its row of the table."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.facts, code.template = facts, template
        return code

    # Values of any declaration.
    PATTERN_MISMATCH = (
        "pattern-mismatch",
        ("field", "value", "pattern"),
        "{field} {value} is not valid; use a text that matches {pattern}",
    )
    NOT_POSITIVE = ("not-positive", ("field", "value"), "{field} is {value}; use more than zero")
    NEGATIVE = ("negative", ("field", "value"), "{field} is {value}; use zero or more")
    TOO_HIGH = ("too-high", ("field", "value", "limit"), "{field} is {value}; use at most {limit}")
    OUT_OF_RANGE = (
        "out-of-range",
        ("field", "value", "least", "most"),
        "{field} is {value}; use {least} to {most}",
    )
    NOT_PRINTABLE = (
        "not-printable",
        ("field",),
        "{field} has characters other than printable ASCII; remove them",
    )

    # Workflows.
    NO_WORKFLOW = ("no-workflow", (), "there is no workflow; declare one")
    UNKNOWN_WORKFLOW = (
        "unknown-workflow",
        ("workflow",),
        "there is no workflow {workflow}; name a declared one",
    )
    DUPLICATE_WORKFLOW = (
        "duplicate-workflow",
        (),
        "the version is declared twice; change the name or the version",
    )
    PAYLOAD_DIFFERS = (
        "payload-differs",
        ("payload", "expected"),
        "the payload is {payload}; all workflows need the same, {expected}",
    )
    NO_STEP = ("no-step", (), "there is no step; add one")
    TOO_MANY_STEPS = (
        "too-many-steps",
        ("steps", "limit"),
        "there are {steps} steps; use at most {limit}",
    )
    DUPLICATE_STEP = ("duplicate-step", ("step",), "step {step} is defined twice; rename one")
    ENDPOINT_STEP_UNKNOWN = (
        "endpoint-step-unknown",
        ("step",),
        "cancel_until names step {step}, which the workflow does not have; name one of its steps",
    )
    SAMPLE_INVALID = ("sample-invalid", ("message",), "the payload is not valid: {message}")

    # Fields of a payload.
    FIELD_RESERVED = (
        "field-reserved",
        ("field",),
        "every submission already has a field {field}; rename this one",
    )
    MODEL_IN_MAPPING = (
        "model-in-mapping",
        ("model",),
        "the field maps to {model}; use a list of {model} instead",
    )
    PERSONAL_KEY = (
        "personal-key",
        (),
        (
            "the field is personal data and a key, but keys are shown and never erased; "
            "remove one of the marks"
        ),
    )
    MARK_ON_MODEL = (
        "mark-on-model",
        ("model",),
        "the mark is on the whole of {model}; mark its fields instead",
    )

    # Steps.
    NOT_ABOVE = (
        "not-above",
        ("step",),
        "`after` names {step}, which is not defined above this step; define it first, or remove it",
    )
    RESULT_NOT_AFTER = (
        "result-not-after",
        ("step",),
        "it uses the result of {step}, but does not come after it; add {step} to its `after`",
    )
    RESULT_MAY_BE_MISSING = (
        "result-may-be-missing",
        ("step",),
        "it uses the result of {step}, but {step} may be skipped; accept None as that result",
    )
    UNDO_AFTER_PIVOT = (
        "undo-after-pivot",
        ("step",),
        (
            "it comes after {step}, a point of no return, so on_failure cannot be UNDO; "
            "use another policy"
        ),
    )
    CAPABILITY_NOT_OFFERED = (
        "capability-not-offered",
        ("capability",),
        "no agent offers {capability}; declare or deploy one",
    )
    UNDO_NEEDS_NOT_KEPT = (
        "undo-needs-not-kept",
        ("fields",),
        "the undo needs {fields}, but the step does not keep this; add it to its result fields",
    )
    UNDO_NEEDS_WITHOUT_UNDO = (
        "undo-needs-without-undo",
        (),
        "it declares what its undo needs, but has no undo; declare an undo, or remove the fields",
    )
    TITLE_TOO_LONG = (
        "title-too-long",
        ("length", "limit"),
        "the title has {length} characters; use at most {limit}",
    )
    FUNCTION_WITHOUT_NAME = (
        "function-without-name",
        ("limit",),
        (
            "the function is a lambda or its name is too long; "
            "use a named function, with at most {limit} characters"
        ),
    )
    COOLDOWN_OUTLASTS_KEY = (
        "cooldown-outlasts-key",
        ("time", "agent", "keys_last"),
        (
            "the cooldown may last {time}, but {agent} forgets an idempotency key after "
            "{keys_last}; shorten the cooldown"
        ),
    )
    ATTEMPTS_OUTLAST_KEY = (
        "attempts-outlast-key",
        ("attempts", "time", "agent", "keys_last"),
        (
            "{attempts} attempts may take {time}, but {agent} forgets an idempotency key after "
            "{keys_last}; lower the timeout or the failure threshold"
        ),
    )
    EXTERNAL_WITHOUT_MODEL = (
        "external-without-model",
        (),
        "an external event completes the step, but no model validates its answer; declare a model",
    )
    EXTERNAL_WITHOUT_TIMEOUT = (
        "external-without-timeout",
        (),
        "an external event completes the step, but there is no timeout; set one",
    )
    EXTERNAL_WITH_UNDO = (
        "external-with-undo",
        (),
        "an external event completes the step, so there is nothing to undo; remove the undo",
    )
    EXTERNAL_AS_PIVOT = (
        "external-as-pivot",
        (),
        "an external event completes the step, so it cannot be a point of no return; remove pivot",
    )

    # Functions of authors, and the operations of their steps.
    TYPES_UNREADABLE = (
        "types-unreadable",
        ("message",),
        "its type hints cannot be resolved: {message}; import or define that name",
    )
    NOT_PLAIN_FUNCTION = (
        "not-plain-function",
        (),
        "it is a coroutine or a generator; use a plain function, which returns immediately",
    )
    RETURN_TYPE = (
        "return-type",
        ("expected", "returned"),
        "its function returns {returned}; return {expected}",
    )
    PARAMETER_WITHOUT_NAME = (
        "parameter-without-name",
        (),
        "it cannot be passed by name; use a parameter that is not *, ** or positional-only",
    )
    PARAMETER_UNKNOWN = (
        "parameter-unknown",
        ("payload",),
        (
            "it matches no step above, and its type is neither the payload {payload} nor Order; "
            "correct its name or its type"
        ),
    )
    PARAMETER_OF_NOTHING = (
        "parameter-of-nothing",
        ("step",),
        "step {step} has no result; remove the parameter",
    )
    PARAMETER_TYPE = (
        "parameter-type",
        ("step", "expected", "declared"),
        "it is {declared}, but step {step} returns {expected}; use that type",
    )
    OPERATION_WITHOUT_CLASS = (
        "operation-without-class",
        (),
        "the operation belongs to no class of agents; make it an attribute of one",
    )
    OPERATION_REQUEST = (
        "operation-request",
        ("expected", "returned"),
        "the operation takes {expected}, but the function returns {returned}; return {expected}",
    )
    UNDO_BY_OTHER_SERVICE = (
        "undo-by-other-service",
        ("capability",),
        "the undo calls another service, {capability}; use an operation of the service of the step",
    )
    EXAMPLE_MISSING = (
        "example-missing",
        ("operation", "model", "message"),
        (
            "the answer of {operation}, {model}, has no example: {message}; "
            "add one, such as Field(examples=[...])"
        ),
    )
    PATH_FIELD_UNKNOWN = (
        "path-field-unknown",
        ("operation", "field"),
        (
            "the path of {operation} has {field}, which the request does not have; "
            "change the path or the request"
        ),
    )
    PERSONAL_INSIDE_FIELD = (
        "personal-inside-field",
        (),
        "a part of the field is marked as personal data; mark the whole field",
    )
    ACTIVITY_NOT_A_FUNCTION = (
        "activity-not-a-function",
        (),
        "it is not a function, or it is a generator; use a function that returns its answer",
    )
    ACTIVITY_PARAMETERS = (
        "activity-parameters",
        ("model",),
        "its function has to take a Call and a {model}",
    )
    ACTIVITY_PARAMETER_TYPE = (
        "activity-parameter-type",
        ("given", "declared"),
        "a parameter of its function has the type {declared}; declare it as {given}",
    )
    ACTIVITY_UNKNOWN_OPERATION = (
        "activity-unknown-operation",
        ("operation",),
        "the agent has no operation {operation}; use an operation of its class",
    )
    DUPLICATE_ACTIVITY = (
        "duplicate-activity",
        ("operation",),
        "operation {operation} has several functions; keep one",
    )

    # Agents.
    DUPLICATE_AGENT = ("duplicate-agent", (), "the agent is declared twice; rename one")
    QUEUE_OF_SCHEDULER = (
        "queue-of-scheduler",
        ("queue",),
        "the agent's queue would be {queue}, the scheduler's; rename the agent",
    )
    CAPABILITY_RESERVED = (
        "capability-reserved",
        ("capability",),
        "capability {capability} is reserved for external events; offer another one",
    )
    NOT_A_REFUSAL = (
        "not-a-refusal",
        ("status", "excluded"),
        "{status} is not a refusal status; use 400 to 499, other than {excluded}",
    )
    TWO_ROUTES = ("two-routes", ("operation",), "operation {operation} has two routes; keep one")
    OPERATION_NOT_REACHABLE = (
        "operation-not-reachable",
        ("operation",),
        "operation {operation} has no function, and the agent has no address; declare one of them",
    )
    AUTH_WITHOUT_CALLS = (
        "auth-without-calls",
        (),
        "auth is for calls over HTTP, but all of the agent's operations are functions; remove auth",
    )
    CALLBACK_WITHOUT_TIME = ("callback-without-time", (), "calls_back needs answer_within; set it")
    ANSWER_OUTLASTS_KEY = (
        "answer-outlasts-key",
        ("answer_within", "keys_last"),
        (
            "answer_within is {answer_within}, but the service forgets a key after {keys_last}; "
            "shorten answer_within"
        ),
    )
    METHOD_UNKNOWN = (
        "method-unknown",
        ("method", "methods"),
        "method {method} is not valid; use one of {methods}",
    )
    PATH_INVALID = (
        "path-invalid",
        ("path",),
        "path {path} is not valid; use one such as /v1/parcels/{{orderId}}",
    )
    HEADER_NOT_ALLOWED = (
        "header-not-allowed",
        ("header",),
        "header {header} cannot be declared; use another one",
    )

    # Settings. No fact holds the value of a secret.
    SETTING_MISSING = ("setting-missing", ("expected",), "it is missing; set it to {expected}")
    SETTING_INVALID = ("setting-invalid", ("message",), "it is not valid: {message}")
    SETTING_MALFORMED = (
        "setting-malformed",
        ("message", "expected"),
        "it is not valid: {message}; set it to {expected}",
    )
    CONNECTION_MISSING = (
        "connection-missing",
        ("alternatives",),
        "it is missing; set it to a connection string, or set {alternatives}",
    )
    TOPIC_KEY_MISSING = (
        "topic-key-missing",
        (),
        "it is missing; set it, since an http:// endpoint takes no managed identity",
    )
    NOT_HTTPS = ("not-https", (), "secrets are sent to this address; use https://")
    CHANNEL_INCOMPLETE = (
        "channel-incomplete",
        ("channel", "expected"),
        "it is missing, but channel {channel} needs it; set it to {expected}",
    )
    RULE_CHANNEL_OFF = (
        "rule-channel-off",
        ("channel",),
        "a rule sends to channel {channel}, which is off; set up the channel, or remove the rule",
    )
    RULE_UNKNOWN_TYPE = (
        "rule-unknown-type",
        ("type", "types"),
        "no alert has type {type}; use one of: {types}",
    )
    RULE_UNKNOWN_CAUSE = (
        "rule-unknown-cause",
        ("cause",),
        "no cause has the code {cause}; use the part before the colon in `operators causes`",
    )
    MAIL_ADDRESS_INVALID = (
        "mail-address-invalid",
        ("position",),
        (
            "address {position} in it is not a mail address; use one such as ops@example.com, "
            "without a display name"
        ),
    )
    TOO_MANY_RECIPIENTS = (
        "too-many-recipients",
        ("count", "limit"),
        "it has {count} addresses; use at most {limit}",
    )
    SMTP_URL_INVALID = (
        "smtp-url-invalid",
        (),
        (
            "it is not the address of a mail server; use smtps://USER:PASSWORD@HOST:465, or "
            "smtp://USER:PASSWORD@HOST:587 for STARTTLS, with percent-encoding for special "
            "characters of user and password, such as %40 for @"
        ),
    )
    SETTING_UNKNOWN_AGENT = (
        "setting-unknown-agent",
        ("agent", "agents"),
        "there is no agent {agent}; use one of: {agents}",
    )
    LANGUAGE_UNKNOWN = (
        "language-unknown",
        ("language", "languages"),
        "there is no language {language}; use one of: {languages}",
    )
    PREFIX_TAKEN = (
        "prefix-taken",
        ("queues",),
        "the app's own queues {queues} begin with it; use another prefix",
    )
    SCHEDULE_TIME_SPAN = (
        "schedule-time-span",
        ("value",),
        (
            "{value} is a time span, which Azure takes on an App Service plan only; "
            "use six fields, such as */30 * * * * *"
        ),
    )
    SCHEDULE_NOT_SIX_FIELDS = (
        "schedule-not-six-fields",
        ("value", "fields"),
        (
            "{value} has {fields} fields between spaces; "
            "use six, seconds first, such as 0 */5 * * * *"
        ),
    )
    SCHEDULE_FIELD_INVALID = (
        "schedule-field-invalid",
        ("field", "value", "least", "most"),
        (
            "the {field} cannot be {value}; use * or numbers from {least} to {most}, "
            "with lists (1,2), ranges from low to high (1-3), and steps after * or a range "
            "(*/2, 1-3/2); months and days of the week also have names of three letters (JAN, MON)"
        ),
    )
    SCHEDULE_BOTH_DAYS = (
        "schedule-both-days",
        ("day_of_month", "day_of_week"),
        (
            "it limits the day of the month to {day_of_month} and that of the week to "
            "{day_of_week}; functions hosts read that differently, so use * for one of them"
        ),
    )
    SCHEDULE_NEVER = (
        "schedule-never",
        ("day", "month"),
        "month {month} has no day {day}, so it never comes; use a day that there is",
    )
    TIME_SPAN_INVALID = (
        "time-span-invalid",
        ("value",),
        (
            "{value} is not a time that functions hosts read alike; "
            "use hh:mm:ss up to 23:59:59, and d.hh:mm:ss from a day on (1.00:00:00)"
        ),
    )
    MARGIN_TOO_LONG = (
        "margin-too-long",
        ("limit",),
        "it leaves agents no time for their calls; use less than {limit}",
    )
    PUBLIC_URL_MISSING = (
        "public-url-missing",
        ("name", "expected"),
        "it is missing, but {name} waits for external events; set it to {expected}",
    )
    ADDRESS_MISSING = (
        "address-missing",
        ("agent",),
        (
            "it is missing; "
            "set it to the address of agent {agent}'s service: https://, or http:// on this "
            "machine only"
        ),
    )
    ADDRESS_INVALID = (
        "address-invalid",
        ("agent",),
        (
            "it is not an address; "
            "set it to the address of agent {agent}'s service: https://, or http:// on this "
            "machine only"
        ),
    )
    OPTIONAL_ADDRESS_INVALID = (
        "optional-address-invalid",
        ("agent",),
        (
            "it is not an address; "
            "leave it empty, or set it to the address of agent {agent}'s service: https://, or "
            "http:// on this machine only"
        ),
    )
    AGENT_SETTING_MISSING = (
        "agent-setting-missing",
        ("expected", "agent"),
        "it is missing; set it to {expected}, for agent {agent}",
    )
    AGENT_SETTING_NOT_IN_HEADER = (
        "agent-setting-not-in-header",
        ("expected", "agent"),
        (
            "it has characters that an HTTP header cannot have; "
            "set it to {expected}, for agent {agent}"
        ),
    )
    AGENT_SETTING_NO_ADDRESS = (
        "agent-setting-no-address",
        ("expected", "agent"),
        "it is not an address; set it to {expected}, for agent {agent}",
    )
    AGENT_SETTING_UNUSABLE = (
        "agent-setting-unusable",
        ("expected", "agent"),
        "it cannot be used; set it to {expected}, for agent {agent}",
    )
    KEY_VAULT_UNRESOLVED = (
        "key-vault-unresolved",
        (),
        (
            "its Key Vault reference does not resolve; "
            "check the secret's name and the app's access to the vault"
        ),
    )

    # The name of a new business.
    BUSINESS_NAME_INVALID = (
        "business-name-invalid",
        ("limit",),
        (
            "it is not a name such as car-rental; "
            "use at most {limit} lower-case letters, digits and dashes"
        ),
    )
    PYTHON_KEYWORD = ("python-keyword", (), "it is a keyword of Python; choose another name")
    FILE_EXISTS = ("file-exists", (), "it exists already; choose another name, or remove it")
    MODULE_EXISTS = ("module-exists", (), "an installed module has this name; choose another one")


@dataclass(frozen=True, init=False)
class Fault:
    """One fault: its code, where it is, and the facts that the code names."""

    code: FaultCode
    place: str
    """The place, such as `trip version 1: step hotel` or a setting; empty for the whole app."""
    facts: Mapping[str, Fact] = field(hash=False)

    def __init__(self, code: FaultCode, place: str = "", /, **facts: Fact) -> None:
        if facts.keys() != set(code.facts):
            raise TypeError(f"{code} has the facts {code.facts}, not {tuple(facts)}")
        object.__setattr__(self, "code", code)  # the class is frozen
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "facts", facts)

    def within(self, place: str) -> "Fault":
        """Return the fault with its place inside another one."""
        return Fault(self.code, f"{place}: {self.place}" if self.place else place, **self.facts)


class StartUpError(AppError):
    """The app cannot start; `faults` lists every fault, never only the first."""

    heading: ClassVar[str] = "The app cannot start. {count} fault(s):"

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__()
        self.args = (faults,)  # another process makes the error from these
        self.faults = faults

    def __str__(self) -> str:
        heading = self.heading.format(count=len(self.faults))
        return "\n".join([heading, *(f"- {text_of(fault)}" for fault in self.faults)])


def text_of(fault: Fault) -> str:
    """Return where it is, what is wrong and what to do, and the code, for a search in docs."""
    facts = {name: _fact(value) for name, value in fault.facts.items()}
    text = f"{fault.code.template.format(**facts)} [{fault.code}]"
    return f"{fault.place}: {text}" if fault.place else text


def _fact(value: Fact) -> str:
    if value is None:
        return "an undeclared type"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
