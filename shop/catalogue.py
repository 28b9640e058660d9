"""The products of the shop."""

from dataclasses import dataclass

from engine.workflow import Money


def eur(amount: str) -> Money:
    return Money(amount=amount, currency="EUR")


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """One product of the shop."""

    sku: str
    name: str
    description: str
    price: Money


PRODUCTS = (
    Product(
        sku="TEA-EARL-GREY",
        name="Earl Grey",
        description="Black tea with bergamot, 100 g",
        price=eur("12.50"),
    ),
    Product(
        sku="TEA-SENCHA",
        name="Sencha",
        description="Green tea from Shizuoka, 100 g",
        price=eur("14.00"),
    ),
    Product(
        sku="TEA-ROOIBOS",
        name="Rooibos",
        description="Red bush tea, free of caffeine, 100 g",
        price=eur("9.80"),
    ),
    Product(
        sku="POT-GLASS",
        name="Glass teapot",
        description="0.8 l, with a strainer",
        price=eur("34.90"),
    ),
    Product(
        sku="CUP-PORCELAIN", name="Porcelain cup", description="0.2 l, white", price=eur("11.20")
    ),
)

BY_SKU = {product.sku: product for product in PRODUCTS}
