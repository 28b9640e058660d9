"""The entry point of Azure Functions: the app of the business that is deployed."""

from engine.runtime import packed

packed.check()

from shop.function_app import app

__all__ = ["app"]
