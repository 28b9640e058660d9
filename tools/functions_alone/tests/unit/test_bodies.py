"""What a trigger hands over: bytes, or texts that Azure's host has read (host.md 2 and 3, webjobs.md 6)."""

import json
from pathlib import Path

import azure.functions as func
import pytest
from azure.functions.meta import Datum

from functions_alone.host.bodies import of_many, of_one

FACTS = json.loads((Path(__file__).parents[4] / "tests/data/azure_host/bodies.json").read_text())
METADATA = {
    "Id": Datum("m", "string"),
    "PopReceipt": Datum("r", "string"),
    "DequeueCount": Datum(7, "int"),
}
ANYTHING = [b"hello", b"", b"\xff\xfe", b'{"id": 5, "amount": 1.50}']


def decoded(datum):
    """Return the bodies that Azure's library makes of a batch of one."""
    metadata = {"UserPropertiesArray": Datum("[{}]", "json")}
    decode = func.get_binding_registry().get("serviceBusTrigger").decode
    return [message.get_body() for message in decode(datum, trigger_metadata=metadata)]


def test_bytes_come_as_they_were_sent():
    """Whatever they are, and with the message's own metadata."""
    for body in ANYTHING:
        datum, metadata = of_one(body, METADATA, binary=True)
        assert (datum.value, metadata) == (body, METADATA)
    assert of_many(ANYTHING, binary=True).value.bytes == ANYTHING


@pytest.mark.parametrize("case", FACTS["batch as text"], ids=lambda case: case["sent"])
def test_texts_of_a_batch_are_written_anew(case):
    """So amounts and times come changed."""
    assert decoded(of_many([case["sent"].encode()], binary=False)) == [case["given"].encode()]


@pytest.mark.parametrize("body", FACTS["batch as text that fails"])
def test_a_text_that_is_no_json_fails_its_batch(body):
    """Nothing of the batch reaches the function."""
    with pytest.raises(ValueError):  # noqa: PT011 - any
        of_many([b"1", body.encode()], binary=False)


@pytest.mark.parametrize("case", FACTS["overridden"], ids=lambda case: case["body"])
def test_a_json_object_replaces_metadata(case):
    """Names match in any case."""
    _, metadata = of_one(case["body"].encode(), METADATA, binary=False)
    changed = {name: datum.value for name, datum in metadata.items() if datum != METADATA.get(name)}
    assert changed == {case["name"]: case["value"]}


@pytest.mark.parametrize("body", FACTS["not overridden"])
def test_other_texts_replace_nothing(body):
    """Neither what is no object, nor an empty value or a list in one."""
    assert of_one(body.encode(), METADATA, binary=False)[1] == METADATA
