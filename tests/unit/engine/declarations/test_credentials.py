"""How a service is shown who calls: the settings that hold it, and what no call could show."""

from dataclasses import replace

import pytest

from engine.declarations.business import AgentDefinition
from engine.declarations.credentials import (
    CERTIFICATE,
    KEY,
    OAUTH_CLIENT,
    OAUTH_KEY,
    OAUTH_SCOPE,
    OAUTH_SERVER,
    SETTING,
    ApiKey,
    ClientCertificate,
    ClientCredentials,
    EntraToken,
    Setting,
)
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import HEADER
from engine.declarations.workflow import DeclarationError
from shop.business import SHOP

SETTINGS = {
    "a key": (ApiKey("K"), [Setting(name="K", secret=True, meaning=KEY)]),
    "a token": (EntraToken(), [Setting(name="BANK_URL_SCOPE", meaning=OAUTH_SCOPE)]),
    "a token for a scope": (EntraToken("S"), [Setting(name="S", meaning=OAUTH_SCOPE)]),
    "a token of a server": (
        ClientCredentials("U", "I", "K"),
        [
            Setting(name="U", meaning=OAUTH_SERVER),
            Setting(name="I", meaning=OAUTH_CLIENT),
            Setting(name="K", secret=True, meaning=OAUTH_KEY),
        ],
    ),
    "a token of a server for a scope": (
        ClientCredentials("U", "I", "K", scope="S"),
        [
            Setting(name="U", meaning=OAUTH_SERVER),
            Setting(name="I", meaning=OAUTH_CLIENT),
            Setting(name="K", secret=True, meaning=OAUTH_KEY),
            Setting(name="S", meaning=OAUTH_SCOPE),
        ],
    ),
    "a certificate": (
        ClientCertificate("C"),
        [Setting(name="C", secret=True, meaning=CERTIFICATE)],
    ),
}


@pytest.mark.parametrize("label", SETTINGS)
def test_each_way_names_its_settings_and_which_of_them_are_secret(label):
    """A secret is a reference to a Key Vault on Azure; each has a meaning that messages say."""
    auth, expected = SETTINGS[label]
    assert list(auth.settings("BANK_URL")) == expected


A_HEADER = {"field": "header", "pattern": HEADER.pattern}
FAULTS = {
    "a key alone": (ApiKey("K"), []),
    "a key behind a word": (ApiKey("K", prefix="Bearer "), []),
    "a header with a space": (
        ApiKey("K", "A b"),
        [Fault(FaultCode.PATTERN_MISMATCH, **A_HEADER, value="A b")],
    ),
    "a prefix of two lines": (
        ApiKey("K", prefix="x\r\nB: "),
        [Fault(FaultCode.NOT_PRINTABLE, field="prefix")],
    ),
    "both": (
        ApiKey("K", "", "\x00"),
        [
            Fault(FaultCode.PATTERN_MISMATCH, **A_HEADER, value=""),
            Fault(FaultCode.NOT_PRINTABLE, field="prefix"),
        ],
    ),
    "a token": (EntraToken("a b"), []),
    "a token of a server": (ClientCredentials("U", "I", "K"), []),
    "a certificate": (ClientCertificate("a b"), []),
}


@pytest.mark.parametrize("label", FAULTS)
def test_what_no_call_could_show_is_a_fault(label):
    """Only of a key is more declared than settings, which are checked with all others."""
    auth, expected = FAULTS[label]
    assert list(auth.faults()) == expected


def post(auth):
    return AgentDefinition(name="post", offers="post", address="POST_URL", auth=auth)


def mismatch(place, field, value, pattern):
    return Fault(
        FaultCode.PATTERN_MISMATCH, place, field=field, value=value, pattern=pattern.pattern
    )


@pytest.mark.parametrize(
    ("auth", "fault"),
    [
        (ApiKey("POST KEY"), mismatch("agent post", "setting", "POST KEY", SETTING)),
        (
            ApiKey("POST_KEY", header="X Key"),
            mismatch("agent post: auth", "header", "X Key", HEADER),
        ),
        (
            ApiKey("POST_KEY", prefix="é "),
            Fault(FaultCode.NOT_PRINTABLE, "agent post: auth", field="prefix"),
        ),
        (EntraToken("A-SCOPE"), mismatch("agent post", "setting", "A-SCOPE", SETTING)),
    ],
)
def test_a_credential_that_no_call_could_show_is_reported_at_the_start(auth, fault):
    """With the name of the agent."""
    business = replace(SHOP, agents=[*SHOP.agents, post(auth)])
    with pytest.raises(DeclarationError) as raised:
        business.check(SHOP.agents)
    assert raised.value.faults == [fault]
    replace(SHOP, agents=[*SHOP.agents, post(ApiKey("POST_KEY"))]).check(SHOP.agents)
