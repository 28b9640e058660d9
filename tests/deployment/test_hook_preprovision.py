"""The hook that rejects settings with which the app could be deployed but could not work."""

import json
import os
import pty
import re
import signal
import subprocess

import pytest

from tests.support.deploying import ADDRESSES, REQUIRED, SETTINGS
from tests.support.hooks import Project, Ran, oldest_python

HOOK = "preprovision.py"
FIRST = next(name for name in ADDRESSES if name in REQUIRED)
REMOTE = dict.fromkeys(REQUIRED, "https://service.example.com")
MISSING = {("setting-missing", name) for name in REQUIRED}
SET = ["azd", "env", "set", "SIMULATED_SERVICES", "true"]
STORE = ["azd", "env", "set", "--file"]


def kept(settings):
    """The call by which azd keeps the settings of the agents; the last word is the file's text."""
    text = json.dumps({name: settings[name] for name in SETTINGS if name in settings})
    return [*STORE, f"SERVICE_SETTINGS='{text.replace(': ', ':').replace(', ', ',')}'\n"]


@pytest.fixture
def project(tmp_path):
    """A project whose azd does what it is told."""
    project = Project(tmp_path)
    project.program("azd")
    return project


def fault(code, *places):
    return {(code, place) for place in places}


ROWS = {
    # label: the settings besides the services' addresses, and the faults.
    "everything default": ({}, set()),
    "a demonstration": ({"SIMULATED_SERVICES": "true"}, set()),
    "an explicit false": ({"SIMULATED_SERVICES": "false"}, set()),
    "Front Door and budget": ({"FRONT_DOOR_ID": "an-id", "MONTHLY_BUDGET": "0"}, set()),
    "simulated behind Front Door": (
        {"SIMULATED_SERVICES": "true", "FRONT_DOOR_ID": "an-id"},
        fault("front-door-simulated", "FRONT_DOOR_ID"),
    ),
    "http": ({FIRST: "http://service.example.com"}, fault("url-invalid", FIRST)),
    "http on this machine, where Azure is not": (
        {FIRST: "http://localhost:7071"},
        fault("url-invalid", FIRST),
    ),
    "a password": ({FIRST: "https://user:password@pay"}, fault("url-invalid", FIRST)),
    "no host": ({FIRST: "https://"}, fault("url-invalid", FIRST)),
    "an upper-case scheme (hooks.md 6)": ({FIRST: "HTTPS://pay"}, fault("url-invalid", FIRST)),
    "a blank at the end (hooks.md 6)": ({FIRST: "https://pay "}, fault("url-invalid", FIRST)),
    "a blank inside (hooks.md 6)": ({FIRST: "https://pay x"}, fault("url-invalid", FIRST)),
    "a new line (hooks.md 6)": ({FIRST: "https://pay\n"}, fault("url-invalid", FIRST)),
    "a host that is none (hooks.md 6)": ({FIRST: "https://[x]"}, fault("url-invalid", FIRST)),
    "a wide at sign (hooks.md 6)": ({FIRST: "https://a\uff20pay"}, fault("url-invalid", FIRST)),
    "simulated in capitals, without an address (hooks.md 9)": (
        {"SIMULATED_SERVICES": "True"} | dict.fromkeys(REQUIRED, ""),
        fault("switch-invalid", "SIMULATED_SERVICES"),
    ),
    "a switch as a number (hooks.md 9)": (
        {"NETWORK_ISOLATION": "1"},
        fault("switch-invalid", "NETWORK_ISOLATION"),
    ),
    "a word that azd drops (deployment.md 9)": (
        {"NETWORK_ISOLATION": "yes", "SIMULATED_SERVICES": "no "},
        fault("switch-invalid", "NETWORK_ISOLATION", "SIMULATED_SERVICES"),
    ),
    "a digit of another script": (
        {"MONTHLY_BUDGET": "\u0661"},
        fault("number-invalid", "MONTHLY_BUDGET"),
    ),
    "a negative number": ({"MONTHLY_BUDGET": "-1"}, fault("number-invalid", "MONTHLY_BUDGET")),
    "a switch": ({"NETWORK_ISOLATION": "true"}, set()),
    "a budget": ({"MONTHLY_BUDGET": "50"}, set()),
    "a broken number": ({"MONTHLY_BUDGET": "49.90"}, fault("number-invalid", "MONTHLY_BUDGET")),
    "a number with a new line (hooks.md 18)": (
        {"MONTHLY_BUDGET": "10\n"},
        fault("number-invalid", "MONTHLY_BUDGET"),
    ),
    "the isolation as it is": ({"DEPLOYED_NETWORK_ISOLATION": "false"}, set()),
    "the isolation as azd never writes it (hooks.md 9)": (
        {"DEPLOYED_NETWORK_ISOLATION": "True", "NETWORK_ISOLATION": "true"},
        set(),
    ),
    "isolation of what is open": (
        {"DEPLOYED_NETWORK_ISOLATION": "false", "NETWORK_ISOLATION": "true"},
        fault("not-in-place", "NETWORK_ISOLATION"),
    ),
    "the end of an isolation": (
        {"DEPLOYED_NETWORK_ISOLATION": "true"},
        fault("not-in-place", "NETWORK_ISOLATION"),
    ),
    "an invalid switch is one fault (hooks.md 9)": (
        {"DEPLOYED_NETWORK_ISOLATION": "true", "NETWORK_ISOLATION": "True"},
        fault("switch-invalid", "NETWORK_ISOLATION"),
    ),
    "the redundancy as it is": ({"DEPLOYED_REDUNDANCY": "zone"}, set()),
    "the redundancy in capitals (hooks.md 9)": (
        {"DEPLOYED_REDUNDANCY": "zone", "REDUNDANCY": "ZONE"},
        set(),
    ),
    "the redundancy as Azure may write it": ({"DEPLOYED_REDUNDANCY": "ZONE"}, set()),
    "geo as it is": ({"DEPLOYED_REDUNDANCY": "geo", "REDUNDANCY": "geo"}, set()),
    "geo-zone as it is": ({"DEPLOYED_REDUNDANCY": "geo-zone", "REDUNDANCY": "geo-zone"}, set()),
    "geo-zone to geo": (
        {"DEPLOYED_REDUNDANCY": "geo-zone", "REDUNDANCY": "geo"},
        fault("not-in-place", "REDUNDANCY"),
    ),
    "what azd itself keeps of a deployment": (
        {"KEY_VAULT_NAME": "kv-x", "DEPLOYED_PYTHON_VERSION": "3.13"},
        set(),
    ),
    "channels to people": (
        {
            "TEAMS_WEBHOOK_URL": "https://logic.example.com:443/run?sig=secret",
            "SLACK_WEBHOOK_URL": "@Microsoft.KeyVault(VaultName=v;SecretName=slack)",
            "SMTP_URL": "smtps://user:password@mail.example.com:465",
            "SMTP_SENDER": "orders@example.com",
        },
        set(),
    ),
    "channels that could reach nobody": (
        {"TEAMS_WEBHOOK_URL": "http://a", "SLACK_WEBHOOK_URL": "b", "SMTP_URL": "mail:465"},
        fault("channel-invalid", "TEAMS_WEBHOOK_URL", "SLACK_WEBHOOK_URL", "SMTP_URL")
        | fault("sender-missing", "SMTP_SENDER"),
    ),
    "zone to geo-zone": ({"DEPLOYED_REDUNDANCY": "zone", "REDUNDANCY": "geo-zone"}, set()),
    "geo-zone to zone": ({"DEPLOYED_REDUNDANCY": "geo-zone"}, set()),
    "zone to geo": (
        {"DEPLOYED_REDUNDANCY": "zone", "REDUNDANCY": "geo"},
        fault("not-in-place", "REDUNDANCY"),
    ),
    "geo to zone": ({"DEPLOYED_REDUNDANCY": "geo"}, fault("not-in-place", "REDUNDANCY")),
    "all at the same time": (
        {
            FIRST: "http://pay",
            "NETWORK_ISOLATION": "on",
            "MONTHLY_BUDGET": "a",
            "DEPLOYED_REDUNDANCY": "geo",
        },
        fault("url-invalid", FIRST)
        | fault("switch-invalid", "NETWORK_ISOLATION")
        | fault("number-invalid", "MONTHLY_BUDGET")
        | fault("not-in-place", "REDUNDANCY"),
    ),
}


@pytest.mark.parametrize(("given", "faults"), ROWS.values(), ids=ROWS)
def test_settings_that_could_not_work_are_rejected(project, given, faults):
    """Before anything is made, all together, each with its code and the name of the variable."""
    ran = project.run(HOOK, **REMOTE | given)
    assert ran.faults == faults
    assert ran.code == (1 if faults else 0)
    settings = {name: value for name, value in (REMOTE | given).items() if name in REMOTE and value}
    assert project.calls == ([] if faults else [kept(settings)])


def test_the_switches_are_those_of_the_template(project, template):
    """Each parameter that is true or false, and no other."""
    passed = json.loads((project.root / "infra/main.parameters.json").read_text())["parameters"]
    types = {name: parameter["type"] for name, parameter in template["parameters"].items()}
    switches = {
        re.match(r"[$][{](\w+)", parameter["value"])[1]
        for name, parameter in passed.items()
        if types[name] == "bool"
    }
    given = dict.fromkeys(re.findall(r"[$][{](\w+)", json.dumps(passed)), "https://a.example.com")
    given |= REMOTE
    ran = project.run(HOOK, **given)
    assert {place for code, place in ran.faults if code == "switch-invalid"} == switches


def test_the_default_of_the_redundancy_is_that_of_the_parameters(project):
    """What azd passes if nothing is set; it may be another one in a clone."""
    path = project.root / "infra/main.parameters.json"
    path.write_text(path.read_text().replace("${REDUNDANCY=zone}", "${REDUNDANCY=geo}"))
    assert project.run(HOOK, **REMOTE, DEPLOYED_REDUNDANCY="geo").faults == set()
    expected = fault("not-in-place", "REDUNDANCY")
    assert project.run(HOOK, **REMOTE, DEPLOYED_REDUNDANCY="zone").faults == expected


def test_a_value_that_may_be_secret_is_not_shown(project):
    """The address holds a password, and the log of a workflow is read by many."""
    assert "hunter2" not in project.run(HOOK, **REMOTE | {FIRST: "https://a:hunter2@pay"}).err


def test_there_are_no_questions_without_a_terminal(project):
    """What is missing is rejected; an unset variable and an empty one are the same."""
    ran = project.run(HOOK)
    assert (ran.faults, ran.out) == (MISSING, "")
    assert project.run(HOOK, **dict.fromkeys(REQUIRED, ""), NETWORK_ISOLATION="").faults == MISSING
    assert project.calls == []


def test_a_closed_input_is_no_terminal(project):
    """As where a service starts azd."""
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$1" <&-', oldest_python(), str(project.hooks / HOOK)],
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert Ran(ran.returncode, ran.stdout, ran.stderr).faults == MISSING


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        ({"kind": "address", "required": False}, "", None),
        ({"kind": "address", "required": False}, "http://pay", "url-invalid"),
        ({"kind": "address", "required": False}, "https://pay", None),
        ({"kind": "address", "required": True}, "https://pay/?code=k", "url-with-query"),
        ({"kind": "address", "required": False}, "https://pay/#top", "url-with-query"),
        ({"kind": "value", "required": True}, "https://sign-in/token?tenant=t", None),
        ({"kind": "value", "required": True}, "", "setting-missing"),
        ({"kind": "value", "required": True}, "@Microsoft.KeyVault(SecretUri=https://v/k)", None),
    ],
)
def test_the_hook_checks_what_is_declared(project, setting, value, code):
    """An optional address may be left out, but has to be one; a value may be anything.

    A path cannot be appended to an address with a query or a fragment (bugs 18).
    """
    write_settings(project, [{"name": "SOME_SETTING", **setting}])
    faults = fault(code, "SOME_SETTING") if code else set()
    assert project.run(HOOK, SOME_SETTING=value).faults == faults


def write_settings(project, settings, end="\n"):
    text = json.dumps({"agents": [], "queues": [], "settings": settings}, indent=2)
    (project.root / "infra/agents.json").write_bytes(text.replace("\n", end).encode())


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_ends_of_lines_do_not_matter(project, end):
    """A checkout of Windows, or no end of the last line: no setting is overlooked (hooks.md 17)."""
    settings = [{"name": name, "kind": "address", "required": True} for name in ("A_URL", "B_URL")]
    write_settings(project, settings, end)
    path = project.root / "infra/main.parameters.json"
    path.write_bytes(path.read_text().replace("\n", end).encode())
    ran = project.run(HOOK, NETWORK_ISOLATION="no", MONTHLY_BUDGET="x")
    assert ran.faults == (
        fault("setting-missing", "A_URL", "B_URL")
        | fault("switch-invalid", "NETWORK_ISOLATION")
        | fault("number-invalid", "MONTHLY_BUDGET")
    )


@pytest.mark.parametrize("text", [None, "", "[]", '{"others": []}', "\xff"])
def test_a_list_that_cannot_be_read_is_a_fault(project, text):
    """Never a deployment of which nothing was checked (hooks.md 17)."""
    path = project.root / "infra/agents.json"
    path.unlink() if text is None else path.write_bytes(text.encode("latin-1"))
    ran = project.run(HOOK)
    assert (ran.code, ran.faults) == (1, fault("file-unreadable", "infra/agents.json"))


BANK = [
    {"name": "BANK_URL", "kind": "address", "required": True, "secret": False},
    {"name": "BANK_KEY", "kind": "value", "required": True, "secret": True},
]
BANK_GIVEN = {"BANK_URL": "https://bank.example.com/it's", "BANK_KEY": 'a"key\\with $signs!'}


@pytest.fixture
def bank(project):
    """A project whose one agent needs a key."""
    write_settings(project, BANK)
    return project


def stored(project):
    """What azd was told to keep, as the text of the variable; nothing if it was not called."""
    for call in project.calls:
        assert call[: len(STORE)] == STORE
        name, _, text = call[-1].partition("=")
        assert (name, text[0], text[-2:]) == ("SERVICE_SETTINGS", "'", "'\n")
        assert "'" not in text[1:-2]
    return text[1:-2] if project.calls else None


def test_the_settings_become_one_variable_and_are_not_in_the_arguments(bank):
    """azd passes them to the template as one object; a list of processes shows no secret."""
    ran = bank.run(HOOK, **BANK_GIVEN, OTHER="x")
    assert (ran.code, ran.faults) == (0, set())
    assert json.loads(stored(bank)) == BANK_GIVEN
    assert BANK_GIVEN["BANK_KEY"] not in ran.out + ran.err


def test_what_azd_keeps_already_is_not_stored_again(bank):
    """Nor is anything where nothing is set."""
    bank.run(HOOK, **BANK_GIVEN)
    kept_before = stored(bank)
    ran = bank.run(HOOK, **BANK_GIVEN, SERVICE_SETTINGS=kept_before)
    assert (ran.code, len(bank.calls)) == (0, 1)
    assert bank.run(HOOK, SIMULATED_SERVICES="true").code == 0
    assert len(bank.calls) == 1


@pytest.mark.parametrize("escaped", [False, True], ids=["as the hook wrote it", "escaped by azd"])
def test_a_workflow_has_one_variable_alone(bank, escaped):
    """`azd pipeline config` puts backslashes into it; the template gets it without them."""
    text = json.dumps(BANK_GIVEN, separators=(",", ":")).replace("'", "\\u0027")
    ran = bank.run(HOOK, SERVICE_SETTINGS=json.dumps(text)[1:-1] if escaped else text)
    assert (ran.code, ran.faults) == (0, set())
    assert stored(bank) == (text if escaped else None)


def test_a_variable_that_was_emptied_or_is_not_declared_is_left_out(bank):
    """The variables count, not what was made of them before."""
    before = json.dumps(BANK_GIVEN | {"GONE_URL": "https://gone"})
    given = {"SERVICE_SETTINGS": before, "SIMULATED_SERVICES": "true"}
    assert bank.run(HOOK, **given, BANK_URL="https://new", BANK_KEY="").code == 0
    assert stored(bank) == '{"BANK_URL":"https://new"}'
    assert bank.run(HOOK, **given, BANK_URL="").code == 0
    assert stored(bank) == "{}"
    assert bank.run(HOOK, **given).code == 0
    assert json.loads(stored(bank)) == BANK_GIVEN


@pytest.mark.parametrize("text", ["{", "[]", "hunter2", '{"BANK_KEY": 1}', '"hunter2"'])
def test_what_cannot_be_read_is_a_fault_and_not_shown(bank, text):
    """It may be a secret."""
    ran = bank.run(HOOK, SERVICE_SETTINGS=text)
    assert (ran.code, ran.faults) == (1, fault("settings-unreadable", "SERVICE_SETTINGS"))
    assert "hunter2" not in ran.out + ran.err


def test_an_azd_that_stores_nothing_is_a_fault_without_the_values(bank):
    """The template would get other settings."""
    bank.replies([["azd env set", [1, "ERROR: no environment", ""]]])
    ran = bank.run(HOOK, **BANK_GIVEN)
    assert (ran.code, ran.faults) == (1, fault("program-failed", "azd env set"))
    assert "key" not in ran.err


def test_the_log_of_a_workflow_hides_every_secret(bank):
    """Line by line, as GitHub wants it; nothing else is hidden."""
    text = json.dumps(BANK_GIVEN | {"BANK_KEY": "one\ntwo"})
    ran = bank.run("service_settings.py", SERVICE_SETTINGS=text)
    assert (ran.code, ran.out) == (0, "::add-mask::one\n::add-mask::two\n")
    assert bank.run("service_settings.py").out == ""


def at_terminal(project, typed, **given):
    """Run the hook at a terminal at which this was typed."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    try:
        ran = subprocess.run(
            project.command(HOOK),
            cwd=project.hooks,
            env=project.environment(**given),
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize("typed", [b"y\n", b"Y\n", b" y\n", b"yes\r\n", b"y\x04\x04"])
def test_a_first_try_may_become_a_demonstration(project, typed):
    """The person is asked, and azd keeps the answer: for the template, and for the next run (hooks.md 16)."""
    ran = at_terminal(project, typed)
    assert (ran.code, ran.faults, project.calls) == (0, set(), [SET])


@pytest.mark.parametrize("typed", [b"\n", b"n\n", b"no y\n", b"\x04", b"\xff\n"])
def test_any_other_answer_is_a_no(project, typed):
    """The empty line too, and Ctrl-D, after which nothing waits; what is missing is said (hooks.md 16)."""
    ran = at_terminal(project, typed)
    assert (ran.code, ran.faults, project.calls) == (1, MISSING, [])
    assert ran.out


@pytest.mark.parametrize("given", [{"SIMULATED_SERVICES": "false"}, {FIRST: "https://pay"}])
def test_there_is_no_question_where_a_choice_has_begun(project, given):
    """Something is set: the rest was forgotten."""
    assert at_terminal(project, b"y\n", **given).out == ""
    assert project.calls == []


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ([1, "\nERROR: no environment exists\n", ""], "program-failed"),
        ([3, "", "azd: broken\n"], "program-failed"),
    ],
)
def test_a_demonstration_that_azd_does_not_keep_is_not_deployed(project, reply, code):
    """azd would deploy without it, and without addresses; its own words are shown (hooks.md 3)."""
    project.replies([["azd env set", reply]])
    ran = at_terminal(project, b"y\n")
    assert (ran.code, ran.faults) == (1, fault(code, " ".join(SET)))
    assert (reply[1] + reply[2]).strip() in ran.err


def test_a_missing_azd_is_a_fault(project):
    """As where the hook is started by hand; and so is one for another machine."""
    (project.bin / "azd").write_text("#!/nowhere/azd\n")
    ran = at_terminal(project, b"y\n")
    assert (ran.code, ran.faults) == (1, fault("program-failed", " ".join(SET)))
    (project.bin / "azd").unlink()
    ran = at_terminal(project, b"y\n")
    assert (ran.code, ran.faults) == (1, fault("program-missing", "azd"))


def test_an_interrupt_ends_it(project):
    """Ctrl-C at the question, without a trace of the program (hooks.md 16)."""
    ours, theirs = pty.openpty()
    # Tests that run in the background of a shell ignore the signal, and so would the hook.
    heeds_it = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    with subprocess.Popen(
        project.command(HOOK, heeds_it),
        cwd=project.hooks,
        env=project.environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as hook:
        assert hook.stdout.read(1)
        hook.send_signal(signal.SIGINT)
        _, err = hook.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert (hook.returncode, err) == (130, b"")


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        ("203.0.113.7/32", True),
        ("203.0.113.7", True),
        ("2001:db8::/32", True),
        ("10.0.0.0/255.0.0.0", False),
        ("203.0.113.7/32,203.0.113.8/32", False),
        ("everywhere", False),
    ],
)
def test_new_versions_are_deployed_from_one_range(project, value, is_taken):
    """Azure would refuse anything else together with the site (deployment.md 15)."""
    project.options(deployFrom=value)
    expected = set() if is_taken else {("range-invalid", "infra/options/app.json")}
    assert project.run(HOOK, **REMOTE).faults == expected


def test_options_that_cannot_be_read_are_named(project):
    """The file and the command that brings it back."""
    (project.root / "infra/options/app.json").write_text("{")
    assert project.run(HOOK, **REMOTE).faults == {("file-unreadable", "infra/options/app.json")}
