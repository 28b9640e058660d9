"""What the answers of Azure's services mean to us."""

import pytest
from azure.core.exceptions import HttpResponseError

from adapters.failures import azure_errors
from core.errors import ConflictError, UnavailableError


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
    "no access yet": (refused(403, "AuthorizationPermissionMismatch"), UnavailableError),
    "our own fault": (refused(400, "InvalidInput"), HttpResponseError),
}


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("label", MEANINGS)
def test_only_what_says_that_a_row_is_as_it_should_not_be_is_a_conflict(label):
    """For who writes what is to be there once takes a conflict for an answer: it is there."""
    error, meaning = MEANINGS[label]
    with pytest.raises(meaning), azure_errors("a row"):
        raise error
