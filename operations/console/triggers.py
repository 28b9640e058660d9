"""Binds the operators' console to HTTP."""

import azure.functions as func

from engine.pages.triggers import INDEX, READS, Pages, send_page
from engine.runtime.functions import Functions

STATIC = "operations/console/static"
"""The folder of the console's files, relative to the app's folder."""


def console_functions(pages: Pages) -> func.Blueprint:
    """Make the function of the console, whose folder is one of the pages' folders."""
    triggers = Functions()

    @triggers.route("console", methods=READS, auth_level=func.AuthLevel.ANONYMOUS)
    async def web_console(req: func.HttpRequest) -> func.HttpResponse:
        return send_page(req, pages, f"{STATIC}/{INDEX}")

    return triggers
