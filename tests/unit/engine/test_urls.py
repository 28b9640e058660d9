"""What is taken for the URL of a service."""

import pytest

from engine.urls import is_private, takes_paths
from tests.support.service_urls import NOT_PRIVATE, PRIVATE


@pytest.mark.parametrize("url", PRIVATE)
def test_requests_to_it_are_protected(url):
    """With https, or on this machine."""
    assert is_private(url)


@pytest.mark.parametrize("url", NOT_PRIVATE)
def test_it_is_no_url_of_a_service(url):
    """Blanks, users, passwords, hosts that are none, and http elsewhere (hooks.md 6)."""
    assert not is_private(url)


@pytest.mark.parametrize("end", ["?code=k", "?", "#", "/a?b", "/a#b", "/?a#b"])
def test_a_path_cannot_be_appended_behind_a_query_or_a_fragment(end):
    """The operation would be a part of the key, or never be sent (bugs 18)."""
    assert takes_paths("https://pay.example/api%3Fcode%23/")
    assert not takes_paths(f"https://pay.example{end}")
