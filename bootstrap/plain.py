"""The parts of a business that has neither its own routes nor a page."""

from collections.abc import Mapping, Sequence

from engine.http.openapi import Route
from engine.http.public_api.service import CustomerService
from engine.pages.triggers import BusinessPage


def routes(_: CustomerService) -> Sequence[Route]:
    """Return no routes. The workflows have the routes of their endpoints."""
    return ()


def page(_: Mapping[str, str]) -> BusinessPage | None:
    """Return no page. Visitors start at the console."""
    return None
