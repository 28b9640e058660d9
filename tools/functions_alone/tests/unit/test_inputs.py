"""Inputs of people and callers that look wrong, and are not."""

import pytest

from functions_alone.alone import settings_of
from functions_alone.host.routes import percent_decoded


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("M%EF%BF%BDller", "M\ufffdller"),
        ("M%ef%bf%bdller", "M\ufffdller"),
        ("M%C3%BCller", "Müller"),
        ("%F0%9F%8D%B5", "🍵"),
        ("%FC", "%FC"),
        ("%C0%AF", "%C0%AF"),
        ("%ED%A0%80", "%ED%A0%80"),
        ("%F4%90%80%80", "%F4%90%80%80"),
        ("%2", "%2"),
        ("100%", "100%"),
        ("\ufffd", "\ufffd"),
    ],
)
def test_what_is_utf_8_is_decoded_and_nothing_else(text, meant):
    """bugs2 43: the character that stands for what is invalid is a character too."""
    assert percent_decoded(text) == meant


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_settings_may_have_a_byte_order_mark(tmp_path, mark):
    """bugs2 45, bugs 23: some editors write one."""
    text = mark + '{"Values": {"GREETING": "Grüße"}}'
    (tmp_path / "local.settings.json").write_text(text, encoding="utf-8")
    assert settings_of(tmp_path) == {"GREETING": "Grüße"}
