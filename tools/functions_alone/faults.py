"""The faults that keep a stack or a host from starting.

Code compares their fields. Only `text_of` turns them into words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self


class StackFaultCode(StrEnum):
    """Base of the tables of codes. Each member has a code, the names of its facts, and a text template."""

    facts: tuple[str, ...]
    template: str
    """The text, with the place and every fact. Output of other programs stands at the end, on its own lines."""

    def __new__(cls, value: str, facts: tuple[str, ...], template: str) -> Self:
        """Make a member from its row of the table."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.facts, code.template = facts, template
        return code


class LocalCode(StackFaultCode):
    """The faults of the stack and of the functions host."""

    PORT_INVALID = (
        "port-invalid",
        ("value",),
        "{place}={value} is not a port. Set {place} to a number from 1 to 65535.",
    )
    PORT_SHARED = (
        "port-shared",
        ("port",),
        "{place} are set to the same port, {port}. Set each to a different port.",
    )
    PORT_IN_USE = (
        "port-in-use",
        ("port", "program"),
        "Port {port} is in use by {program}. Stop that program, or set {place} to another port.",
    )
    CANNOT_LISTEN = (
        "cannot-listen",
        ("reason",),
        "Cannot listen on {place}: {reason}. Choose another port.",
    )
    DATA_IN_USE = (
        "data-folder-in-use",
        (),
        "Another stack uses the data folder {place}. Stop it, or set DATA_DIR to another folder.",
    )
    DATA_UNUSABLE = (
        "data-folder-unusable",
        ("reason",),
        "The data folder {place} cannot be used: {reason}. Set DATA_DIR to another folder.",
    )
    DATA_LAYOUT = (
        "data-folder-layout",
        ("layout", "oldest", "newest", "remedy"),
        (
            "{place} has data of layout {layout}, and this app reads layouts {oldest} to {newest}:"
            " {remedy}, or set DATA_DIR to another folder."
        ),
    )
    PART_ENDED = (
        "part-ended",
        ("exit", "log", "output"),
        "{place} exited during start-up ({exit}). See {log}.\n{output}",
    )
    PART_NOT_READY = (
        "part-not-ready",
        ("seconds", "missing", "log", "output"),
        "{place} was not ready after {seconds} s. See {log}.\nStill missing: {missing}\n{output}",
    )
    PART_NOT_SUPERVISED = (
        "part-not-supervised",
        ("reason",),
        "The stack can no longer restart {place}: {reason}. Stop the stack and start it again.",
    )
    MODULES_LINKED = (
        "modules-linked",
        ("target",),
        "{place} is a link to {target}, which npm would empty. Remove the link, then start again.",
    )
    INSTALL_FAILED = (
        "install-failed",
        ("output",),
        "{place} cannot be installed from npm. Check the network, then start again.\n{output}",
    )
    APP_UNLOADABLE = (
        "app-unloadable",
        ("output",),
        "The app in {place} cannot be loaded. Correct the error below.\n{output}",
    )
    APP_MISSING = (
        "app-missing",
        (),
        "There is no function_app.py in {place}. Pass the folder that contains it.",
    )
    APP_REFUSED = (
        "app-refused",
        ("reason",),
        "{place} stopped at start-up. Correct the faults that are listed below.\n{reason}",
    )
    APP_FAILED = (
        "app-failed",
        ("error",),
        "{place} cannot be loaded: it raised {error}. The traceback is above.",
    )
    APP_NOT_UNIQUE = (
        "app-not-unique",
        ("count",),
        "{place} has {count} FunctionApp objects at top level. It must have exactly one.",
    )
    APP_ENDED = (
        "app-ended",
        ("exit",),
        "The worker process ended while it loaded {place} ({exit}). An app must not end its process.",
    )
    HOST_JSON_UNREADABLE = (
        "host-json-unreadable",
        ("reason",),
        "{place} cannot be read: {reason}. The host needs a valid host.json beside function_app.py.",
    )
    HOST_JSON_INVALID = (
        "host-json-invalid",
        ("file", "reason"),
        "{file}: {place} is not valid: {reason}. Correct the file, or the setting that replaces it.",
    )
    HOST_JSON_OVERRIDE = (
        "host-json-override",
        ("section",),
        (
            "Setting {place} has no effect: in host.json, {section} is a value, not a section."
            " Remove the setting, or correct its name."
        ),
    )
    SETTING_MISSING = (
        "setting-missing",
        (),
        "App setting {place} is missing. Set this environment variable.",
    )
    SETTING_NOT_A_NUMBER = (
        "setting-not-a-number",
        ("value",),
        "{place}={value} is not a number. Set {place} to a number of seconds.",
    )
    SETTING_NOT_A_CHOICE = (
        "setting-not-a-choice",
        ("value", "choices"),
        "{place}={value} is not valid. Set {place} to one of: {choices}.",
    )
    DEBUGGER_MISSING = (
        "debugger-missing",
        ("command",),
        "{place} needs the package debugpy, which is not installed. Run: {command}",
    )
    FUNCTION_UNKNOWN = (
        "function-unknown",
        ("functions",),
        "The app has no {place}. Choose from: {functions}.",
    )
    FEATURE_UNSUPPORTED = (
        "feature-unsupported",
        ("feature", "alternative"),
        "{place}: this host does not support {feature}. Instead, {alternative}.",
    )
    MESSAGES_NOT_COMPLETED = (
        "messages-not-completed",
        (),
        "{place}: a Python function cannot complete messages. Remove auto_complete_messages=False.",
    )
    TIMER_MONITORED = (
        "timer-monitored",
        (),
        "{place}: this host does not store the runs of timers. Set use_monitor=False.",
    )
    SCHEDULE_INVALID = (
        "schedule-invalid",
        ("reason",),
        "{place} is not valid: {reason}. Use NCRONTAB with six fields, or hh:mm:ss.",
    )
    ROUTE_RESERVED = (
        "route-reserved",
        (),
        "{place}: paths under /admin and /runtime belong to the host. Choose another route.",
    )
    ROUTE_UNREADABLE = (
        "route-unreadable",
        ("part",),
        "{place}: {part} is not a parameter. Write parameters as {{name}} or {{name:constraint}}.",
    )
    ROUTE_CONSTRAINT_UNKNOWN = (
        "route-constraint-unknown",
        ("constraint",),
        "{place}: this host does not support the constraint {constraint}. Remove it, and check the value in the function.",
    )
    COMPONENT_ENDED = (
        "component-ended",
        ("reason",),
        "The host ends because it lost {place}: {reason}. Start the host again.",
    )
    FORK_FAILED = (
        "fork-failed",
        ("reason",),
        "{place} cannot be forked: {reason}. If this happens again, raise the machine's process and memory limits.",
    )


@dataclass(frozen=True, slots=True)
class StackFault:
    """One thing that is wrong. `place` names a variable, a file, a function or a part of the stack."""

    code: StackFaultCode
    place: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.facts.keys() != set(self.code.facts):
            raise TypeError(f"{self.code} has the facts {self.code.facts}, not {[*self.facts]}")


def text_of(fault: StackFault) -> str:
    """Return what is wrong and what to do.

    The first line ends with the code, which people can search for in docs and logs.
    """
    text = fault.code.template.format(place=fault.place, **fault.facts).rstrip()
    first, newline, rest = text.partition("\n")
    return f"{first} [{fault.code}]{newline}{rest}"


class FaultsError(Exception):
    """Base of errors that consist of faults. Each fault is a paragraph of the text."""

    def __init__(self, *faults: StackFault) -> None:
        super().__init__(*faults)
        self.faults: Sequence[StackFault] = faults

    def __str__(self) -> str:
        return "\n".join(map(text_of, self.faults))
