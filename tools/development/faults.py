"""The faults of developers' commands and of deployments, besides those of the local platform."""

from functions_alone.faults import StackFaultCode


class DevelopmentCode(StackFaultCode):
    """See `functions_alone.faults.StackFaultCode`."""

    HOSTS_INVALID = (
        "hosts-invalid",
        ("value", "most"),
        "{place}={value} is not valid. Set {place} to a number from 1 to {most}.",
    )
    OPERATOR_KEY_EMPTY = (
        "operator-key-empty",
        (),
        "{place} is empty. Unset it, or set it to the operators' key.",
    )
    BUSINESS_UNKNOWN = (
        "business-unknown",
        ("value", "reason", "example"),
        "{place}={value} is not a known business: {reason}. Use a name such as {example}.",
    )
    BUSINESS_REFUSED = (
        "business-refused",
        ("reason",),
        "{place} cannot be run as it is declared. Correct the faults that are listed below.\n{reason}",
    )
    BUSINESS_MISPLACED = (
        "business-misplaced",
        (),
        "{place} cannot be deployed from that module. Move the business to the module `business` of its package.",
    )
    ENTRY_WITHOUT_BUSINESS = (
        "entry-without-business",
        ("lines",),
        "{place} has no two lines, one after the other, that import BUSINESS, and page and routes. Add: {lines}",
    )
    EXAMPLE_NOT_DEPLOYABLE = (
        "example-not-deployable",
        (),
        "{place} is an example, and samples/ is not deployed. Copy its folder out of samples/ first.",
    )
    FILE_OUTDATED = (
        "file-outdated",
        ("business", "command"),
        "{place} does not fit {business}. Run: {command}",
    )
    TOO_MANY_CONNECTIONS = (
        "too-many-connections",
        ("needed", "allowed"),
        (
            "The agents of {place} need {needed} connections to the Service Bus emulator, which allows {allowed}."
            " Use `make run`, which has no such limit."
        ),
    )
    PROGRAM_MISSING = (
        "program-missing",
        ("product", "url"),
        "`{place}` does not work. Install {product}: {url}",
    )
    DOCKER_NOT_RUNNING = (
        "docker-not-running",
        (),
        "`{place}` gets no answer. Start Docker.",
    )
    EULA_NOT_ACCEPTED = (
        "eula-not-accepted",
        (),
        "{place} is not Y. Set {place}=Y if you accept the terms of SQL Server and of the Service Bus emulator.",
    )
    BICEP_INVALID = (
        "bicep-invalid",
        ("value",),
        "{place}={value} is not a program. Set {place} to the path of Bicep's command line.",
    )
    BICEP_MISSING = (
        "bicep-missing",
        ("version",),
        (
            "`{place}` was not found, neither on the PATH nor where azd and az keep it. Install Bicep {version}"
            " (`az bicep install`), or set BICEP to its path."
        ),
    )
    TEMPLATE_REFUSED = (
        "template-refused",
        ("diagnostics",),
        "{place} has diagnostics. Repair each of them:\n{diagnostics}",
    )
    BICEP_ENDED = (
        "bicep-ended",
        ("output",),
        "{place} ended while it worked. Repair what it reports:\n{output}",
    )
    TAG_DIFFERS = (
        "tag-differs",
        ("expected",),
        "The tag {place} does not fit the version in pyproject.toml. Release it as {expected}, or change the version.",
    )
    NOTES_MISSING = (
        "notes-missing",
        ("version",),
        "{place} has no entries for {version}. Write them below a heading `## {version}`.",
    )
    COMMIT_UNKNOWN = (
        "commit-unknown",
        ("output",),
        (
            "The commit {place} is not in this clone. Run `git fetch --unshallow` in a shallow clone, or `git fetch`,"
            " or name another commit.\n{output}"
        ),
    )
    SNAPSHOT_OUTDATED = (
        "snapshot-outdated",
        ("command", "differences"),
        "{place} is not what the template deploys. Run `{command}`, and commit what it writes.\n{differences}",
    )
