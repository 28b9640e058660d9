"""What the answers of Azure's services mean to us."""

import logging
from unittest.mock import patch

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.servicebus.exceptions import ServiceBusAuthorizationError

from engine.azure import failures
from engine.azure.failures import azure_errors
from engine.azure.messaging.event_grid import EventGrid
from engine.azure.messaging.queues import StorageQueue
from engine.domain.errors import AccessDeniedError, AppError, ConflictError, UnavailableError


def refused(status, code=None):
    error = HttpResponseError(message=code or "no")
    error.status_code, error.error_code = status, code
    return error


ERRORS = {
    "the row is there": (refused(409, "EntityAlreadyExists"), ConflictError),
    "the row has changed": (refused(412, "UpdateConditionNotSatisfied"), ConflictError),
    "the row is gone": (refused(404, "ResourceNotFound"), ConflictError),
    "the table is not there yet": (refused(404, "TableNotFound"), UnavailableError),
    "the table is being removed": (refused(409, "TableBeingDeleted"), UnavailableError),
    "busy": (refused(503, "ServerBusy"), UnavailableError),
    "no access yet": (refused(403, "AuthorizationPermissionMismatch"), AccessDeniedError),
    "no token that is taken": (refused(401, "InvalidAuthenticationInfo"), AccessDeniedError),
    "no identity": (ClientAuthenticationError("no managed identity"), AccessDeniedError),
    "no access to a queue": (ServiceBusAuthorizationError(message="Send claim"), AccessDeniedError),
    "our own fault": (refused(400, "InvalidInput"), HttpResponseError),
}


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("label", ERRORS)
def test_only_what_says_that_a_row_is_as_it_should_not_be_is_a_conflict(label):
    """For who writes what is to be there once takes a conflict for an answer: it is there."""
    error, meaning = ERRORS[label]
    with pytest.raises(meaning), azure_errors("a row"):
        raise error


CONFLICT, NO_RIGHT, BUSY = (404, 409, 412), (401, 403), (408, 429, *range(500, 600))


def meaning_of(status):
    """What an answer with this status is raised as."""
    try:
        with azure_errors("a row"):
            raise refused(status)
    except (AppError, HttpResponseError) as error:
        return type(error)


@pytest.mark.proves("FLT-7")
def test_every_status_has_one_meaning():
    """What is busy is waited for; only our own fault is raised as it came."""
    meanings = dict.fromkeys(range(400, 600), HttpResponseError)
    meanings |= dict.fromkeys(CONFLICT, ConflictError)
    meanings |= dict.fromkeys(NO_RIGHT, AccessDeniedError)
    meanings |= dict.fromkeys(BUSY, UnavailableError)
    assert {status: meaning_of(status) for status in meanings} == meanings


class Refusing:
    """The client of a topic or a queue that answers everything with a status."""

    def __init__(self, status):
        self._status = status

    async def _refuse(self, *_, **__):
        raise refused(self._status)

    send = send_message = get_queue_properties = peek_messages = _refuse


PLACES = {
    "publishing events": lambda client: EventGrid(client).publish([]),
    "putting a message": lambda client: StorageQueue(client).put("x"),
    "counting messages": lambda client: StorageQueue(client).waiting(),
    "looking at the head": lambda client: StorageQueue(client).oldest(),
}


@pytest.mark.proves("FLT-11")
@pytest.mark.parametrize("status", CONFLICT)
@pytest.mark.parametrize("place", PLACES)
async def test_a_topic_or_a_queue_that_is_not_there_is_away(place, status):
    """Nothing is wrong with what was to be sent: it waits until the place is there again."""
    with pytest.raises(UnavailableError):
        await PLACES[place](lambda: Refusing(status))


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
def test_a_missing_right_is_tried_again_like_an_outage_and_reported_as_what_it_is(
    what, role, caplog
):
    """An error names the role once in a while; nothing is lost, and nobody waits for it."""
    caplog.set_level(logging.ERROR)
    with patch.dict(failures._next_log_at, clear=True):
        for _ in range(3):
            with pytest.raises(UnavailableError, match=role), azure_errors(what):
                raise refused(403, "AuthorizationPermissionMismatch")
        [line] = caplog.records
        assert line.message == "right.missing"
        assert line.what == what
        assert line.role.partition(" (")[0] == role
        assert "AuthorizationPermissionMismatch" in line.why
        failures._next_log_at[what] -= failures.TELL_AGAIN_SECONDS
        with pytest.raises(AccessDeniedError), azure_errors(what):
            raise refused(403)
    assert len(caplog.records) == 2
