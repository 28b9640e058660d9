"""An app in this process that answers a browser: its clock is the test's, and all that it does is counted."""

from azure.functions import FunctionApp, HttpRequest
from playwright.async_api import Request, Route
from yarl import URL

from functions_alone.host.routes import compile_route, order_of_name


class Answering:
    """Gives a page's requests to the functions of an app, as a host does; it asks nobody for a key."""

    def __init__(self, app: FunctionApp) -> None:
        # The first route that fits answers, in the order of the functions' names.
        triggers = [
            (function.get_trigger().get_dict_repr(), function.get_user_function())
            for function in sorted(
                app.get_functions(),
                key=lambda function: order_of_name(function.get_function_name()),
            )
        ]
        self._bound = [
            (
                compile_route("", trigger["route"]),
                {str(method) for method in trigger["methods"]},
                function,
            )
            for trigger, function in triggers
            if trigger["type"] == "httpTrigger"
        ]

    async def __call__(self, route: Route) -> None:
        """Answer a request; 404 if no function takes it."""
        request, url = route.request, URL(route.request.url)
        for path, methods, function in self._bound:
            if request.method in methods and (parameters := path.match(url.path)) is not None:
                answer = await function(_as_azure_gives_it(request, url, parameters))
                headers = {**answer.headers, "Content-Type": answer.mimetype}
                return await route.fulfill(
                    status=answer.status_code, headers=headers, body=answer.get_body()
                )
        return await route.fulfill(status=404)


def _as_azure_gives_it(request: Request, url: URL, parameters) -> HttpRequest:
    body = request.post_data_buffer or b""
    headers = {**request.headers, "content-length": str(len(body))}
    return HttpRequest(
        method=request.method,
        url=request.url,
        headers=headers,
        params=dict(url.query),
        route_params=parameters,
        body=body,
    )
