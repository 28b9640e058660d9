#!/usr/bin/env bash
# pydantic 2.12.5: the JSON Schema of a datetime that has a bound.
#
# Expected: the same schema whether or not a validator stands between the type and the bound.
# Seen: without one the bound is left out, as JSON Schema has no word for it. With one the schema has the name `ge`,
# which JSON Schema 2020-12 and OpenAPI 3.1 do not know. Validators that allow unknown names pass over it, and
# Redocly's refuses the description.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check pydantic==2.12.5
"$folder/venv/bin/python" - <<'PYTHON'
from datetime import UTC, datetime
from typing import Annotated

from pydantic import VERSION, AfterValidator, Field, TypeAdapter

BOUND = Field(ge=datetime(2000, 1, 1, tzinfo=UTC))
plain = TypeAdapter(Annotated[datetime, BOUND]).json_schema()
behind = TypeAdapter(Annotated[datetime, AfterValidator(lambda time: time), BOUND]).json_schema()
print("pydantic", VERSION)
print("bound alone:             ", plain)
print("bound behind a validator:", behind)
assert plain == {"type": "string", "format": "date-time"}, "the bound of a plain datetime is in its schema now"
assert behind == plain | {"ge": "2000-01-01T00:00:00Z"}, "the bound behind a validator is in its schema otherwise now"
PYTHON
