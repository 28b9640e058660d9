"""The settings of channels: which channels are on, and all faults at once, without a secret."""

import pytest

from development.settings import app_settings
from engine.alerts.channels import ChannelName, ChannelRule, Severity
from engine.alerts.events import STALLED, TYPES
from engine.azure.channels.addresses import Encryption, SmtpServer, smtp_server
from engine.azure.channels.settings import EXPECTED
from engine.azure.settings import Settings, SettingsError
from engine.declarations.faults import Fault, FaultCode
from functions_alone.ports import Ports
from shop.business import SHOP

MAIL = {
    "MAIL_ENDPOINT": "https://n.communication.azure.com",
    "MAIL_SENDER": "DoNotReply@9f-c.azurecomm.net",
}
SMTP = {"SMTP_URL": "smtps://ops:p%40ss@smtp.example.com:465", "SMTP_SENDER": "orders@example.com"}
PEOPLE = {"ALERT_RECIPIENTS": "ada@example.com, grace@example.com"}
TEAMS = {
    "TEAMS_WEBHOOK_URL": "https://x.logic.azure.com:443/workflows/9?sp=%2Ftriggers&sig=very-secret"
}
SLACK = {"SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/very-secret"}
ALL = MAIL | SMTP | PEOPLE | TEAMS | SLACK
NAMES = {*ALL, "ALERT_RULES", "ALERT_INTERVAL_SECONDS"}
UNRESOLVED = "@Microsoft.KeyVault(VaultName=kv;SecretName=s)"


@pytest.fixture
def read(monkeypatch):
    """Reads the settings of an app that has these besides."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    usual = app_settings(Ports(), "k", "k", SHOP.agents)
    others = {name: value for name, value in usual.items() if name not in NAMES}

    def read(**values):
        for name, value in (others | values).items():
            monkeypatch.setenv(name, value)
        return Settings.read(SHOP.agents).channels

    return read


@pytest.mark.parametrize(
    ("values", "on"),
    [
        ({}, []),
        (PEOPLE, []),
        (MAIL | PEOPLE, [ChannelName.MAIL]),
        (SMTP | PEOPLE, [ChannelName.SMTP]),
        (SLACK, [ChannelName.SLACK]),
        (TEAMS, [ChannelName.TEAMS]),
        (ALL, [ChannelName.MAIL, ChannelName.TEAMS, ChannelName.SLACK, ChannelName.SMTP]),
        (ALL | dict.fromkeys(SMTP, ""), [ChannelName.MAIL, ChannelName.TEAMS, ChannelName.SLACK]),
    ],
)  # fmt: skip
def test_a_channel_is_on_if_its_settings_are_there(read, values, on):
    """What is empty is not set; recipients alone put nothing on."""
    assert read(**values).on == on


def test_recipients_are_the_addresses_between_the_commas(read):
    """Spaces and repeats do not count."""
    found = read(**SMTP, ALERT_RECIPIENTS=" ada@example.com,b@example.com,, ada@example.com")
    assert found.recipients == ["ada@example.com", "b@example.com"]


def test_rules_are_read_from_json(read):
    """Each with the usual conditions where it has none."""
    rules = f'[{{"channel": "slack", "severity": "info", "types": ["{STALLED}"]}}, {{"channel": "smtp"}}]'
    found = read(**ALL, ALERT_RULES=rules)
    assert found.alert_rules == [
        ChannelRule(channel=ChannelName.SLACK, severity=Severity.INFO, types=(STALLED,)),
        ChannelRule(channel=ChannelName.SMTP),
    ]
    assert read(ALERT_RULES="").alert_rules == read(ALERT_RULES="[]").alert_rules == []
    assert found.alert_interval_seconds == 600


def incomplete(name, channel):
    return Fault(FaultCode.CHANNEL_INCOMPLETE, name, channel=channel, expected=EXPECTED[name])


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        (MAIL, [incomplete("ALERT_RECIPIENTS", "mail")]),
        ({"MAIL_ENDPOINT": MAIL["MAIL_ENDPOINT"]} | PEOPLE, [incomplete("MAIL_SENDER", "mail")]),
        ({"MAIL_SENDER": MAIL["MAIL_SENDER"]} | PEOPLE, [incomplete("MAIL_ENDPOINT", "mail")]),
        ({"SMTP_URL": SMTP["SMTP_URL"]} | PEOPLE, [incomplete("SMTP_SENDER", "smtp")]),
        ({"SMTP_SENDER": SMTP["SMTP_SENDER"]} | PEOPLE, [incomplete("SMTP_URL", "smtp")]),
        (MAIL | SMTP, [incomplete("ALERT_RECIPIENTS", "mail")]),
        ({"TEAMS_WEBHOOK_URL": "http://teams.example.com/very-secret"}, [Fault(FaultCode.NOT_HTTPS, "TEAMS_WEBHOOK_URL")]),
        ({"SLACK_WEBHOOK_URL": "hooks.slack.com/very-secret"}, [Fault(FaultCode.NOT_HTTPS, "SLACK_WEBHOOK_URL")]),
        ({"SLACK_WEBHOOK_URL": UNRESOLVED}, [Fault(FaultCode.KEY_VAULT_UNRESOLVED, "SLACK_WEBHOOK_URL")]),
        (SMTP | {"ALERT_RECIPIENTS": UNRESOLVED}, [Fault(FaultCode.KEY_VAULT_UNRESOLVED, "ALERT_RECIPIENTS")]),
        (SMTP | PEOPLE | {"SMTP_URL": UNRESOLVED}, [Fault(FaultCode.KEY_VAULT_UNRESOLVED, "SMTP_URL")]),
        (SMTP | PEOPLE | {"SMTP_URL": "https://smtp.example.com"}, [Fault(FaultCode.SMTP_URL_INVALID, "SMTP_URL")]),
        (
            SMTP | {"ALERT_RECIPIENTS": "ada@example.com, Grace <grace@example.com>"},
            [Fault(FaultCode.MAIL_ADDRESS_INVALID, "ALERT_RECIPIENTS", position=2)],
        ),
        (SMTP | {"ALERT_RECIPIENTS": ", "}, [Fault(FaultCode.MAIL_ADDRESS_INVALID, "ALERT_RECIPIENTS", position=1)]),
        (
            SMTP | {"ALERT_RECIPIENTS": ",".join(f"a{number}@example.com" for number in range(51))},
            [Fault(FaultCode.TOO_MANY_RECIPIENTS, "ALERT_RECIPIENTS", count=51, limit=50)],
        ),
        (SLACK | {"ALERT_RULES": '[{"channel": "slack"}, {"channel": "teams"}]'}, [Fault(FaultCode.RULE_CHANNEL_OFF, "ALERT_RULES", channel="teams")]),
        (PEOPLE | {"ALERT_RULES": '[{"channel": "smtp"}]'}, [Fault(FaultCode.RULE_CHANNEL_OFF, "ALERT_RULES", channel="smtp")]),
        (
            SLACK | {"ALERT_RULES": '[{"channel": "slack", "types": ["OrderProcessing.Staled"]}]'},
            [Fault(FaultCode.RULE_UNKNOWN_TYPE, "ALERT_RULES", type="OrderProcessing.Staled", types=TYPES)],
        ),
        (
            SLACK | {"ALERT_RULES": '[{"channel": "slack", "causes": ["refused", "refuse"]}]'},
            [Fault(FaultCode.RULE_UNKNOWN_CAUSE, "ALERT_RULES", cause="refuse")],
        ),
        (SMTP | PEOPLE | {"SMTP_SENDER": "a@b.c\nBcc: d@e.f"}, [Fault(FaultCode.MAIL_ADDRESS_INVALID, "SMTP_SENDER", position=1)]),
    ],
)  # fmt: skip
def test_every_wrong_setting_is_named_and_no_secret_is(read, values, faults):
    """A channel that lacks a setting does not stay silently off."""
    with pytest.raises(SettingsError) as caught:
        read(**values)
    assert caught.value.faults == faults
    text = str(caught.value)
    assert [
        secret for secret in ("very-secret", "p%40ss", "ada@", "grace@") if secret in text
    ] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALERT_RULES", '[{"channel": "pager"}]'),
        ("ALERT_RULES", '[{"channel": "slack", "severity": "warning"}]'),
        ("ALERT_RULES", '[{"channel": "slack", "workflow": ["order"]}]'),
        ("ALERT_RULES", '[{"severity": "info"}]'),
        ("ALERT_RULES", '{"channel": "slack"}'),
        ("ALERT_RULES", "slack"),
        ("ALERT_INTERVAL_SECONDS", "0"),
        ("ALERT_INTERVAL_SECONDS", "100000"),
        ("MAIL_ENDPOINT", "http://n.communication.azure.com"),
        ("MAIL_ENDPOINT", "https://n.communication.azure.com/emails:send"),
    ],
)
def test_a_malformed_setting_is_named(read, name, value):
    """A misspelt condition of a rule would else send too much, and a misspelt channel nothing."""
    with pytest.raises(SettingsError) as caught:
        read(**{name: value})
    assert [(fault.code, fault.place) for fault in caught.value.faults] == [
        (FaultCode.SETTING_MALFORMED, name)
    ]


def test_all_faults_come_in_one_error(read):
    """Those of channels beside those of other settings."""
    wrong = {
        "SLACK_WEBHOOK_URL": "http://slack.example.com",
        "SMTP_SENDER": "nobody",
        "EVENT_GRID_KEY": "",
    }
    with pytest.raises(SettingsError) as caught:
        read(**wrong)
    assert {fault.place for fault in caught.value.faults} == {
        *wrong,
        "SMTP_URL",
        "ALERT_RECIPIENTS",
    }


@pytest.mark.parametrize(
    ("url", "host", "port", "encryption", "login"),
    [
        ("smtps://ops:p%40ss%2F@smtp.example.com", "smtp.example.com", 465, Encryption.TLS, ("ops", "p@ss/")),
        ("smtps://ops:p@smtp.example.com:2465", "smtp.example.com", 2465, Encryption.TLS, ("ops", "p")),
        ("smtp://ops:p@smtp.example.com", "smtp.example.com", 587, Encryption.STARTTLS, ("ops", "p")),
        ("smtp://ops:p@smtp.example.com:25/", "smtp.example.com", 25, Encryption.STARTTLS, ("ops", "p")),
        ("smtp://ops:p@smtp.example.com:465", "smtp.example.com", 465, Encryption.TLS, ("ops", "p")),
        ("smtp://10.0.0.1:25", "10.0.0.1", 25, Encryption.STARTTLS, ("", "")),
        ("smtp://127.0.0.1:1025", "127.0.0.1", 1025, Encryption.NONE, ("", "")),
        ("smtp://LOCALHOST:1025", "localhost", 1025, Encryption.NONE, ("", "")),
        ("smtp://[::1]:1025", "::1", 1025, Encryption.NONE, ("", "")),
        ("smtps://127.0.0.1:1465", "127.0.0.1", 1465, Encryption.TLS, ("", "")),
    ],
)  # fmt: skip
def test_only_a_server_on_this_machine_is_used_without_encryption(
    url, host, port, encryption, login
):
    """Any other server has to encrypt before it gets a password or a mail, whatever its port."""
    user, password = login
    wanted = SmtpServer(host=host, port=port, encryption=encryption, user=user, password=password)
    assert smtp_server(url) == wanted


def test_no_server_elsewhere_can_be_made_without_encryption():
    """Not even by code."""
    with pytest.raises(ValueError, match="encryption"):
        SmtpServer(host="smtp.example.com", port=25, encryption=Encryption.NONE)


@pytest.mark.parametrize(
    "url",
    [
        "smtp.example.com", "http://smtp.example.com", "smtp://", "smtp://ops@h.example", "smtp://:p@h.example",
        "smtp://ops:p@h.example:0", "smtp://ops:p@h.example:70000", "smtp://ops:p/x@h.example", "smtp://ops:p#x@h.example",
        "smtp://ops:p@h.example/path", "smtp://ops:p@h.example?tls=no", "smtp://ops:p@h.example\r\nQUIT", "smtp://ö:p@h.example",
        "smtp://[::1", "smtp://ops:p@h_.example",
    ],
)  # fmt: skip
def test_another_address_is_no_mail_server(url):
    """A password whose special characters are not encoded would else end in a wrong host."""
    with pytest.raises(ValueError, match=r"mail server|password|smtps") as caught:
        smtp_server(url)
    assert "ops" not in str(caught.value)
