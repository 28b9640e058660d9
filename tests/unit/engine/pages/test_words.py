"""The words of the pages: each that they use is in the catalogue, and each there is used."""

import re
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from engine.alerts import events as alerts
from engine.alerts.channels import ChannelName
from engine.decisions.operator_actions import ACTIONS
from engine.domain.states import STATES, Waiting
from engine.domain.statuses import ORDER_FAILED, ORDER_UNDONE
from engine.domain.submitted_order import Priority
from engine.features.external_events import notifications
from engine.words import catalogue
from operations.api.explain import Actor
from samples.simulator.rules import SimulatedFault

ROOT = Path(__file__).parents[4]
FOLDERS = ("engine/pages/static", "operations/console/static")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in chain.from_iterable((ROOT / folder).rglob("*.*") for folder in FOLDERS)
    if path.suffix in (".js", ".html")
}
KEY = r"(?:console|page)\.[\w.-]+"
WHOLE = re.compile(rf'(?:"|words:)({KEY})["}}]')
"""A key as it stands in a module, or in HTML."""
GROUP = re.compile(rf'`({KEY}\.)\$\{{|named\("({KEY})",')
"""The beginning of keys whose end is a name of the API."""
FORMS = (".one", ".other")


def used():
    """All keys that stand in the files."""
    return set(chain.from_iterable(map(WHOLE.findall, SOURCES.values()))) - groups()


def groups():
    """The beginnings of keys that are put together, without the last dot."""
    found = chain.from_iterable(map(GROUP.findall, SOURCES.values()))
    return {(built or named).removesuffix(".") for built, named in found}


def known():
    """The keys of the pages in the catalogue, without the forms of plurals."""
    keys = (key for key in catalogue.texts() if key.startswith(("console.", "page.")))
    return {
        next((key.removesuffix(form) for form in FORMS if key.endswith(form)), key) for key in keys
    }


def test_each_key_that_a_page_uses_has_a_text():
    assert used() - known() == set()


def test_each_text_of_the_pages_is_used():
    assert {key for key in known() - used() if key.rpartition(".")[0] not in groups()} == set()


def test_each_plural_has_both_forms():
    texts = catalogue.texts()
    plurals = {key for key in known() if any(f"{key}{form}" in texts for form in FORMS)}
    assert [
        f"{key}{form}" for key in plurals for form in FORMS if f"{key}{form}" not in texts
    ] == []


NAMES = {
    "console.actor": [*Actor, "submission"],
    "console.alert": [
        type_.split(".")[-1]
        for type_ in (
            *(ORDER_FAILED, ORDER_UNDONE, alerts.SUBMISSION_REJECTED, alerts.NOTICE_GIVEN_UP),
            *(
                alerts.STALLED,
                notifications.EVENT_AWAITED,
                notifications.EVENT_REMINDED,
                alerts.WORKFLOW_CHANGED,
            ),
        )
    ],
    "console.bulk.verb": [action.name for action in ACTIONS if action.lists],
    "console.exact": [state.__name__ for state in STATES if state is not Waiting],
    "console.mode": get_args(SimulatedFault.model_fields["mode"].annotation),
    "console.notifications.channel": list(ChannelName),
    "console.order.priority": list(Priority),
}


@pytest.mark.parametrize("group", NAMES)
def test_each_name_of_the_api_has_a_word(group):
    assert [name for name in NAMES[group] if f"{group}.{name}" not in catalogue.texts()] == []
