"""The messages to channels: what they say, within the limits of each service, and escaped for it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from engine.azure.channels import slack, teams
from engine.azure.channels.message_texts import html_text, plain_text, section_of, subject_of
from engine.azure.channels.slack import slack_body
from engine.azure.channels.teams import teams_body
from tests.support.digests import FAILED, HOSTILE, RESOLVED, STALLED, digest

MANY = tuple(replace(FAILED, about=f"order b03-{number}") for number in range(200))
LONG = "ä" * 3000
LONGEST = replace(
    FAILED,
    title=LONG, about=LONG, reason=LONG, advice=LONG,
    link=f"https://orders.example.com/{'a' * 370}", runbook=f"https://docs.example.com/{'a' * 370}",
)  # fmt: skip
AMPERSANDS = replace(LONGEST, **dict.fromkeys(("title", "about", "reason", "advice"), "&" * 3000))


def card_of(body):
    return json.loads(body)["attachments"][0]["content"]


def within(value, kind):
    """All objects of a type in a card."""
    if isinstance(value, list):
        return [found for element in value for found in within(element, kind)]
    if not isinstance(value, dict):
        return []
    own = [value] if value.get("type") == kind else []
    return own + [found for member in value.values() for found in within(member, kind)]


def of_teams(one):
    """All that a card says and links to."""
    card = card_of(teams_body(one))
    texts = [run["text"] for run in within(card, "TextRun")]
    return "\n".join(texts + [action["url"] for action in within(card, "Action.OpenUrl")])


def of_slack(one):
    """All that the blocks say."""
    return "\n".join(block["text"]["text"] for block in json.loads(slack_body(one))["blocks"])


@pytest.mark.parametrize("text_of", [plain_text, of_teams, of_slack])
def test_a_message_says_what_happened_what_to_do_and_where(text_of):
    """For each entry: the order or part, the cause, the advice, how many, since when, and the links."""
    text = text_of(digest(others=7)).replace("&amp;", "&")
    expected = [
        FAILED.title, FAILED.about, FAILED.reason, FAILED.advice, FAILED.link, FAILED.runbook,
        STALLED.title, STALLED.about, STALLED.reason, STALLED.advice, "600", RESOLVED.about,
        "2026-01-31 08:15 UTC", "https://orders.example.com/", "7 more",
    ]  # fmt: skip
    assert [words for words in expected if words not in text] == []


def test_what_is_resolved_needs_no_action():
    """Its heading says so; what has changed still does."""
    needs = [("action" in section_of(entry).heading) for entry in (FAILED, STALLED, RESOLVED)]
    assert needs == [True, True, False]
    assert "action" not in section_of(replace(FAILED, needs_action=False)).heading


def test_a_subject_fits_into_a_header():
    """Whatever the first entry says."""
    one = digest(replace(FAILED, title="a\r\nBcc: b@example.com\x00\u2028", about="c" * 500))
    assert subject_of(one).isprintable()
    assert len(subject_of(one)) == 200


@pytest.mark.parametrize("address", ["javascript:alert(1)", "https://a.example/" + "a" * 600, "https://a.example/ b"])  # fmt: skip
@pytest.mark.parametrize("text_of", [plain_text, html_text, of_teams, of_slack])
def test_what_is_no_short_address_is_no_link(text_of, address):
    """It could not be opened, or would do something else."""
    one = digest(replace(FAILED, link=address, runbook=address), link=address)
    assert address not in text_of(one)
    assert "a.example" not in text_of(one)


@pytest.mark.parametrize("entries", [MANY, (LONGEST,) * 200, (AMPERSANDS,) * 200, (LONGEST,)])
def test_a_card_keeps_below_the_size_at_which_teams_drops_it(entries):
    """As many entries as fit, and the number of the others: no alert is passed over in silence."""
    body = teams_body(digest(*entries, others=3))
    assert len(body) <= 20_000
    shown = len(within(card_of(body), "Container"))
    assert shown >= 1
    others = within(card_of(body), "TextRun")[-1]["text"]
    assert str(len(entries) + 3 - shown) in others


def test_a_card_lists_no_fewer_entries_than_fit():
    """One more would be too many bytes, which are counted as they are sent."""
    one = digest(*[replace(FAILED, reason="ä" * 400)] * 50)
    body = teams_body(one)
    shown = len(within(card_of(body), "Container"))
    assert 1 < shown < 50
    assert "ä".encode() in body  # an escape would take three times the bytes
    longer = replace(one, entries=one.entries[: shown + 1], others=50 - shown - 1)
    assert len(teams._encoded(longer)) > 20_000


@pytest.mark.parametrize("entries", [MANY, (LONGEST,) * 200, (AMPERSANDS,) * 200, (AMPERSANDS,)])
def test_blocks_keep_within_the_limits_of_slack(entries):
    """Of the number of blocks, the characters of one, and of all together."""
    blocks = json.loads(slack_body(digest(*entries, others=3)))["blocks"]
    texts = [block["text"]["text"] for block in blocks]
    assert len(texts) <= 50
    assert max(map(len, texts)) <= 3000
    assert sum(map(len, texts)) <= slack.MAX_CHARACTERS
    assert str(len(entries) + 3 - (len(texts) - 2)) in texts[-1]


def test_slack_takes_no_text_for_a_mention_or_a_link():
    """Only our own links are in angle brackets; nothing is cut inside of an entity."""
    link = "https://orders.example.com/a><!channel>|b"
    one = digest(replace(AMPERSANDS, title=HOSTILE, about=HOSTILE, link=link))
    message = json.loads(slack_body(one))
    texts = [message["text"], *(block["text"]["text"] for block in message["blocks"])]
    known = r"<https://(orders|docs)\.example\.com/|&amp;|&lt;|&gt;"
    assert [text for text in texts if re.search("[&<]", re.sub(known, "", text))] == []
    assert "&lt;!channel&gt;" in texts[1]
    assert all(block["text"]["verbatim"] for block in message["blocks"])


def test_teams_takes_no_text_for_markdown():
    """A `TextRun` is shown as it is; nothing else has a text that is not ours."""
    one = digest(*[replace(FAILED, title=HOSTILE, about=HOSTILE, reason=HOSTILE, advice=HOSTILE)])
    card = card_of(teams_body(one))
    runs = [run["text"] for run in within(card, "TextRun")]
    assert len([text for text in runs if "[x](https://evil.example)" in text]) >= 4
    titles = {action["title"] for action in within(card, "Action.OpenUrl")}
    assert titles == {"Open in the console", "Runbook", "All alerts"}
    assert [kind for kind in ("TextBlock", "FactSet") if within(card, kind)] == []
    assert "entities" not in card["msteams"]


class Tags(HTMLParser):
    """The tags and addresses of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.text = set(), [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data


def test_the_html_of_a_mail_has_no_tags_but_its_own():
    """Texts are shown as they are, links lead where the entries say."""
    page, link = Tags(), 'https://orders.example.com/"><script>'
    texts = dict.fromkeys(("title", "about", "reason"), HOSTILE)
    page.feed(html_text(digest(replace(FAILED, **texts, link=link))))
    assert page.tags == {"html", "head", "meta", "body", "h3", "p", "br", "b", "a"}
    assert page.text.count("<script>alert(1)</script>") == 3
    assert page.addresses == [link, FAILED.runbook, "https://orders.example.com/"]
