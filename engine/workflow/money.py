"""Exact amounts of money for payloads, requests and answers."""

import json
from decimal import Context, Decimal, Inexact, InvalidOperation
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from engine.workflow.model import Model

TABLE = json.loads(Path(__file__).with_name("currencies.json").read_text("utf-8"))
DECIMALS: dict[str, int] = {
    code: int(decimals) for decimals, codes in TABLE["decimals"].items() for code in codes.split()
}
"""The number of decimals of each currency, by its ISO 4217 code.

Codes that ISO has withdrawn stay, because old orders use them. We keep our own table, because
libraries differ: some give the decimals that people use in practice, and others drop old codes.
"""


class Money(Model):
    """An amount of money, such as 14.00 EUR.

    The amount may have fewer decimals than its currency.

        Money.of(Decimal("14"), "EUR").amount  # "14.00"
    """

    amount: Annotated[str, Field(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,4})?$", examples=["14.00"])]
    """The amount as text, because many programs read JSON numbers as floats."""
    currency: Annotated[
        str,
        Field(pattern=r"^[A-Z]{3}$", examples=["EUR"], json_schema_extra={"enum": [*DECIMALS]}),
    ]

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = DECIMALS.get(self.currency)
        if known is None:
            raise PydanticCustomError("unknown-currency", "The currency is unknown")
        if len(self.amount.partition(".")[2]) > known:
            message = "The currency has fewer decimals"
            raise PydanticCustomError("too-many-decimals", message, {"decimals": known})
        return self

    @property
    def value(self) -> Decimal:
        """The amount as a Decimal, for calculations."""
        return Decimal(self.amount)

    @classmethod
    def of(cls, value: Decimal, currency: str) -> Self:
        """Make an amount with all decimals of its currency.

        Raises ValueError for an unknown currency, and if the value has more decimals than the
        currency: the caller decides how to round.
        """
        decimals = DECIMALS.get(currency, 0)
        try:
            exact = value.quantize(Decimal(1).scaleb(-decimals), context=NEVER_ROUNDED)
        except ArithmeticError:
            raise ValueError(f"{value} is not an amount with {decimals} decimals") from None
        return cls(amount=f"{exact + 0:f}", currency=currency)


NEVER_ROUNDED = Context(prec=40, traps=[Inexact, InvalidOperation])
"""Enough precision for 15 digits and four decimals."""
