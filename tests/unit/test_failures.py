"""What the answers of Azure's services mean to us."""

import logging
from unittest.mock import patch

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.servicebus.exceptions import ServiceBusAuthorizationError

from adapters import failures
from adapters.failures import azure_errors
from core.errors import ConflictError, NoRightError, UnavailableError


def refused(status, code=None):
    error = HttpResponseError(message=code or "no")
    error.status_code, error.error_code = status, code
    return error


MEANINGS = {
    "the row is there": (refused(409, "EntityAlreadyExists"), ConflictError),
    "the row has changed": (refused(412, "UpdateConditionNotSatisfied"), ConflictError),
    "the row is gone": (refused(404, "ResourceNotFound"), ConflictError),
    "the table is not there yet": (refused(404, "TableNotFound"), UnavailableError),
    "the table is being removed": (refused(409, "TableBeingDeleted"), UnavailableError),
    "busy": (refused(503, "ServerBusy"), UnavailableError),
    "no access yet": (refused(403, "AuthorizationPermissionMismatch"), NoRightError),
    "no token that is taken": (refused(401, "InvalidAuthenticationInfo"), NoRightError),
    "no identity": (ClientAuthenticationError("no managed identity"), NoRightError),
    "no access to a queue": (ServiceBusAuthorizationError(message="Send claim"), NoRightError),
    "our own fault": (refused(400, "InvalidInput"), HttpResponseError),
}


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("label", MEANINGS)
def test_only_what_says_that_a_row_is_as_it_should_not_be_is_a_conflict(label):
    """For who writes what is to be there once takes a conflict for an answer: it is there."""
    error, meaning = MEANINGS[label]
    with pytest.raises(meaning), azure_errors("a row"):
        raise error


@pytest.mark.parametrize(
    ("what", "role"),
    [
        ("writing rows", "Storage Table Data Contributor"),
        ("storage queue", "Storage Queue Data Contributor"),
        ("queue payment-requests", "Azure Service Bus Data Sender"),
        ("leader election", "Storage Blob Data Contributor"),
        ("Event Grid", "EventGrid Data Sender"),
    ],
)
def test_a_missing_right_is_tried_again_like_an_outage_and_told_as_what_it_is(what, role, caplog):
    """As an error that names the role, once in a while; so nothing is lost, and nobody waits for it to pass."""
    caplog.set_level(logging.ERROR)
    with patch.dict(failures._told, clear=True):
        for _ in range(3):
            with pytest.raises(UnavailableError, match=role), azure_errors(what):
                raise refused(403, "AuthorizationPermissionMismatch")
        [line] = caplog.records
        assert (line.message, line.what, line.role.partition(" (")[0]) == ("right.missing", what, role)
        assert "AuthorizationPermissionMismatch" in line.why
        failures._told[what] -= failures.TELL_AGAIN_SECONDS
        with pytest.raises(NoRightError), azure_errors(what):
            raise refused(403)
    assert len(caplog.records) == 2
