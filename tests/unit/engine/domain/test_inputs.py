"""What a person types or a tool sends is taken as it is meant, or rejected (tests/data/inputs)."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.domain.errors import InvalidError
from engine.domain.messages import NotBefore, Submission, decode, faults_of
from engine.http.models import RequestBody
from engine.http.public_api.rules import Beginning

TABLES = Path("tests/data/inputs")
TIMES = json.loads((TABLES / "times.json").read_text())


class Delayed(RequestBody):
    """A body with a time, read as strictly as those of operators."""

    not_before: NotBefore


def in_query(time):
    try:
        return Beginning.model_validate_strings({"notBefore": time}).not_before
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None


def in_body(time):
    return decode(Delayed, json.dumps({"notBefore": time})).not_before


def in_submission(time):
    own = {"schemaVersion": 1, "orderId": "b00-01K0000000000000000000000A"}
    message = decode(Submission, json.dumps(own | {"placedAt": time, "notBefore": time}))
    assert message.placed_at == message.not_before
    return message.not_before


ENTRIES = pytest.mark.parametrize("entry", [in_query, in_body, in_submission])


@ENTRIES
@pytest.mark.parametrize(("time", "meant"), TIMES["accepted"].items())
def test_a_time_is_taken_as_it_is_meant(entry, time, meant):
    assert entry(time) == entry(meant)


def codes_of(error):
    return {fault.code for fault in error.value.faults}


@ENTRIES
@pytest.mark.parametrize(("time", "code"), TIMES["rejected"].items())
def test_a_time_that_is_nearly_right_is_rejected(entry, time, code):
    """Bugs 24: a `+` that a query made a blank is named; a number of seconds is no time."""
    with pytest.raises(InvalidError) as error:
        entry(time)
    assert codes_of(error) == {code}


@pytest.mark.parametrize("entry", [in_body, in_submission])
@pytest.mark.parametrize(("time", "code"), TIMES["rejected_in_json"].items())
def test_a_json_number_is_no_time(entry, time, code):
    """Bugs 24."""
    with pytest.raises(InvalidError) as error:
        entry(json.loads(time))
    assert codes_of(error) == {code}
