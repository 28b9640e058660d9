"""The catalogue of words: one text for each key, in one language."""

from collections.abc import Iterator

import pytest

from engine.words import catalogue


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Leave other tests in English."""
    yield
    catalogue.use(catalogue.ENGLISH)


def test_a_text_has_its_values() -> None:
    text = catalogue.text("cause.external-event-missing", step="inspect", failures=3)
    assert "inspect" in text
    assert "3" in text


def test_a_key_without_a_text_is_a_fault() -> None:
    with pytest.raises(KeyError):
        catalogue.text("cause.no-such-cause")


def test_a_language_without_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="tlh"):
        catalogue.use("tlh")


def test_the_pseudo_language_has_no_plain_word_and_keeps_the_values() -> None:
    catalogue.use(catalogue.PSEUDO)
    text = catalogue.text("cause.external-event-missing", step="inspect", failures=3)
    assert "inspect" in text
    assert "3" in text
    assert "answer" not in text
    assert len(text) > len("inspect got no answer in time")


@pytest.mark.parametrize("key", sorted(catalogue.texts()))
def test_the_pseudo_language_names_the_same_values(key: str) -> None:
    words = catalogue.texts()[key]
    values = set(catalogue._VALUE.findall(words))
    assert set(catalogue._VALUE.findall(catalogue.pseudo(words))) == values
