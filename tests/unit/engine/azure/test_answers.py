"""Answers of services whose meaning is plain, though their encoding is unusual."""

import json
from pathlib import Path

import pytest

from engine.azure.answers import ServiceAnswer

ANSWERS = json.loads(Path("tests/data/inputs/service_answers.json").read_text())


def answered(row):
    body = bytes.fromhex(row["hex"]) if "hex" in row else row["text"].encode(row["codec"])
    return ServiceAnswer(status=200, body=body, retry_after="", charset=row.get("charset"))


@pytest.mark.parametrize("name", ANSWERS["read"])
def test_an_answer_whose_meaning_is_plain_is_read(name):
    """Bugs2 61: the work is done; a half of an emoji, or another alphabet, does not change that."""
    row = ANSWERS["read"][name]
    assert answered(row).content == row["content"]
    assert answered(row).is_text


@pytest.mark.parametrize("name", ANSWERS["not read"])
def test_an_answer_that_nobody_can_read_says_whether_it_is_text(name):
    """Bugs2 61: the reason of the failure names the encoding."""
    row = ANSWERS["not read"][name]
    assert answered(row).content is None
    assert answered(row).is_text == row["isText"]


def test_a_refusal_keeps_its_words_though_a_character_was_cut():
    """Bugs2 61."""
    body = rb'{"detail": "card declined \ud83d"}'
    answer = ServiceAnswer(status=422, body=body, retry_after="")
    assert answer.reason == "card declined \ufffd"
