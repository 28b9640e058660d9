"""Binds the pages to HTTP, files that are read once. They hold no data: what they show, they ask the APIs for."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import azure.functions as func

from entrypoints.functions import Functions
from entrypoints.http import problem

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
HASH_IN_PAGES = b"{hash}"
"""Stands for the hash where a page names its files."""

HOME = "{home:maxlength(0)?}"
"""The path `/`: Azure gives no function an empty route, but matches an optional part that may have no characters."""

IMMUTABLE = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing inline, nothing from elsewhere, and no text that becomes markup: the pages need no exception."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with sign-in, Azure refuses a POST that does not say where it comes from
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """What is sent of a file."""

    body: bytes
    gzipped: bytes
    media_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """All files under one hash: modules import each other by relative paths, so none is of another version."""

    hash: str
    files: Mapping[str, File]
    """By path below the folder, such as `console/main.js`."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a folder; what is no page's file, such as an editor's copy, is left out."""
        paths = [path for path in sorted(folder.rglob("*.*")) if path.suffix in MEDIA_TYPES and path.name[0] != "."]
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        together = sha256(repr(found).encode()).hexdigest()[:16]
        return cls(hash=together, files={name: _file(name, body, together) for name, body in found.items()})


def _file(name: str, body: bytes, together: str) -> File:
    media_type = MEDIA_TYPES[Path(name).suffix]
    if media_type == "text/html":
        body = body.replace(HASH_IN_PAGES, together.encode())
    return File(body=body, gzipped=gzip.compress(body, mtime=0), media_type=media_type)


def blueprint(site: Site) -> func.Blueprint:
    """Return the functions of the operators' console, which every business has, and of the files of all pages."""
    triggers = Functions()

    @triggers.route("console", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def web_console(req: func.HttpRequest) -> func.HttpResponse:
        return _page(req, site, "console/index.html")

    @triggers.route("web/{hash}/{*file}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def web_file(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params.get("file", "")
        if name not in site.files:
            return problem(404, "There is no such file")
        # During an upgrade a page may ask an app of another version: that gives what it has, for this time only.
        known = req.route_params["hash"] == site.hash
        return _send(req, site, name, IMMUTABLE if known else "no-store")

    return triggers


def shop(site: Site) -> func.Blueprint:
    """Return the functions of the shop's page."""
    triggers = Functions()

    @triggers.route(HOME, methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def web_home(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse(status_code=302, headers={"Location": "/shop", "Cache-Control": ASK_AGAIN})

    @triggers.route("shop", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def web_shop(req: func.HttpRequest) -> func.HttpResponse:
        return _page(req, site, "shop/index.html")

    return triggers


def _page(req: func.HttpRequest, site: Site, name: str) -> func.HttpResponse:
    """Answer with a page, or that it is still the same: it names its files by the hash, which so tells all of them."""
    tag = f'"{site.hash}"'
    if tag in req.headers.get("If-None-Match", ""):
        return func.HttpResponse(status_code=304, headers={"ETag": tag, "Cache-Control": ASK_AGAIN, **HEADERS})
    return _send(req, site, name, ASK_AGAIN, {"ETag": tag})


def _send(
    req: func.HttpRequest, site: Site, name: str, cache: str, more: Mapping[str, str] | None = None
) -> func.HttpResponse:
    file = site.files[name]
    headers = {"Cache-Control": cache, **HEADERS, **(more or {})}
    if "gzip" in req.headers.get("Accept-Encoding", ""):
        return func.HttpResponse(file.gzipped, headers=headers | {"Content-Encoding": "gzip"}, mimetype=file.media_type)
    return func.HttpResponse(file.body, headers=headers, mimetype=file.media_type)
