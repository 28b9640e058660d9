"""The description of the calls over HTTP."""

import azure.functions as func

from engine.runtime.api import http_functions


async def test_its_text_is_made_once():
    """Another call costs no more than a look (http.md 3)."""
    app = func.FunctionApp()
    app.register_functions(http_functions([]))
    [described] = [function.get_user_function() for function in app.get_functions()]
    request = func.HttpRequest(method="GET", url="/api/openapi.json", body=b"")
    answers = [await described(request) for _ in range(2)]
    assert answers[0].get_body() is answers[1].get_body()
    assert answers[0].mimetype == "application/json"
