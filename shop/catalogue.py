"""The products of the shop."""

from dataclasses import dataclass
from functools import partial
from typing import Literal


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one piece; `amount` is a decimal string such as "14.00"."""

    amount: str
    currency: Literal["EUR"]


EUR = partial(Price, currency="EUR")


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """One product of the shop."""

    sku: str
    name: str
    description: str
    price: Price


PRODUCTS = (
    Product(
        sku="TEA-EARL-GREY",
        name="Earl Grey",
        description="Black tea with bergamot, 100 g",
        price=EUR("12.50"),
    ),
    Product(
        sku="TEA-SENCHA",
        name="Sencha",
        description="Green tea from Shizuoka, 100 g",
        price=EUR("14.00"),
    ),
    Product(
        sku="TEA-ROOIBOS",
        name="Rooibos",
        description="Red bush tea, free of caffeine, 100 g",
        price=EUR("9.80"),
    ),
    Product(
        sku="POT-GLASS",
        name="Glass teapot",
        description="0.8 l, with a strainer",
        price=EUR("34.90"),
    ),
    Product(
        sku="CUP-PORCELAIN", name="Porcelain cup", description="0.2 l, white", price=EUR("11.20")
    ),
)

BY_SKU = {product.sku: product for product in PRODUCTS}
