"""What a business brings that has neither routes nor a page of its own."""

from collections.abc import Mapping, Sequence

from engine.http.openapi import Route
from engine.http.public_api.service import CustomerService
from engine.pages.triggers import BusinessPage


def routes(_: CustomerService) -> Sequence[Route]:
    """Return no routes: its workflows have those of their endpoints."""
    return ()


def page(_: Mapping[str, str]) -> BusinessPage | None:
    """Return no page: visitors begin at the console."""
    return None
