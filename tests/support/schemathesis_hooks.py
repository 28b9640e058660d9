"""What schemathesis changes of what it makes: it reads no words, and no host takes every request line."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import uuid4

import schemathesis

LONGEST = 4000
TIMES = {"notBefore", "since", "until"}


@schemathesis.hook
def filter_query(context, query):
    return fits(query)


@schemathesis.hook
def filter_path_parameters(context, path_parameters):
    return fits(path_parameters)


def fits(parameters):
    """Whether a host takes a request line with these: a longer one never reaches the app."""
    return len(urlencode(parameters or {}, doseq=True)) < LONGEST


@schemathesis.hook
def map_headers(context, headers):
    key = {"Idempotency-Key": str(uuid4())}
    return {**headers, **key} if headers and headers.keys() & key.keys() else headers


@schemathesis.hook
def map_query(context, query):
    return as_described(query)


@schemathesis.hook
def map_body(context, body):
    return as_described(body)


def as_described(values):
    """What was made, as the words of the description want it: pages, times, products and rows that are there.

    Without this such values would have to be refused, and hide what is refused for no reason.
    """
    if not isinstance(values, dict):
        return values
    meant = dict(values)
    meant.pop("continuation", None)
    later = timedelta(hours=-1 if "action" in meant else 1)  # a bulk action is about what was
    for name in TIMES & meant.keys():
        meant[name] = (datetime.now(UTC) + later).isoformat()
    if isinstance(meant.get("where"), dict):
        meant["where"] = as_described(meant["where"])
    if "action" in meant:  # of a step, and it asks more than that
        meant |= {"action": "hold", "arguments": {}}
    if "lines" in meant:
        meant["lines"] = []
    if isinstance(meant.get("items"), list):
        meant["items"] = [as_sold(item) for item in meant["items"]]
    return meant


def as_sold(item):
    """The item with a product of the shop, and a quantity of it that may be bought."""
    sold = {"sku": "TEA-SENCHA", "quantity": 1}
    return (
        item | {name: sold[name] for name in sold.keys() & item.keys()}
        if isinstance(item, dict)
        else item
    )
