"""Numbers in JSON, for the tests of everything that takes, keeps or shows them."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

NUMBERS = json.loads((Path(__file__).parents[1] / "data/numbers.json").read_text())
EXACT, REFUSED = NUMBERS["exact"], NUMBERS["refused"]


def exact(text: str | bytes) -> Any:
    """Return the value of a JSON text whose numbers are all decimals."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)
