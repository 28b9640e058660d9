"""`python outside.py PORT`: a service in a process of its own, which does at once what it is called for."""

import sys

from aiohttp import web


async def answer(_: web.Request) -> web.Response:
    return web.json_response({"reference": "r-1"})


if __name__ == "__main__":
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None)
