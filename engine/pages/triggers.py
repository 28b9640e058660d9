"""Binds the pages of the app to HTTP.

Their files are read once and hold no data. The pages get their data from the APIs.
"""

import gzip
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from itertools import chain
from pathlib import Path
from typing import Self

import azure.functions as func

from engine.http.responses import problem
from engine.runtime.functions import Functions
from engine.words import catalogue

APP = Path(__file__).parents[2]
STATIC = "engine/pages/static"
"""The folder of the start page and of the files that all pages share, relative to the app's folder.
"""
INDEX = "index.html"
MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

WORDS = "engine/words/en.json"
"""The path from which modules import their texts, in the language of the process."""
OF_PAGES = ("console.", "page.")
"""The prefixes of the keys of texts that pages need."""

WORD = re.compile(rb"\{\{words:([\w.-]+)\}\}")
"""The place of a text in HTML, with its key."""
SCRIPT = re.compile(rb'(\n *)<script type="module" src="/web/\{hash\}/([^"]+)">')
IMPORT = re.compile(
    r'^(?:import|\} from) .*?"(\.[^"]+)"(?: with \{ type: "json" \})?;', re.MULTILINE
)

READS = ["GET", "HEAD"]
"""The methods for pages. Monitors send HEAD."""

HOME = "{home:maxlength(0)?}"
"""The path `/`. Azure accepts no empty route, but matches an optional part without characters."""

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
"""The content security policy: no inline code, no foreign sources, and no text as markup."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with sign-in, Azure refuses a POST without a referrer
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BusinessPage:
    """The page of a business, beside the operators' console."""

    path: str
    """The path below the root, such as `buy` for `/buy`. The root redirects there."""
    title: str
    """The name of the page in the console."""
    folder: Path
    """The folder of the page's `index.html` and its own files. It must be inside the app's folder.
    """
    notice: str = ""
    """A sentence that the page always shows, such as that it charges no money. May be empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file as it is sent."""

    body: bytes
    gzipped: bytes
    media_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pages:
    """All files under one hash.

    Modules import each other by relative paths, so a page never mixes files of two versions.
    """

    hash: str
    files: Mapping[str, File]
    """The files by path inside the app's folder. Relative paths are the same in a browser and on
    disk."""
    page: str | None = None
    """The path of the business's page, if there is one."""
    index: str = ""
    """The file of the business's page."""

    @classmethod
    def read(
        cls, folders: Sequence[str], page: BusinessPage | None = None, app: Path = APP
    ) -> Self:
        """Read the shared files, the files in these folders, and the business's page."""
        below = [app / folder for folder in (STATIC, *folders)]
        paths = chain.from_iterable(map(_paths, [*below, page.folder] if page else below))
        found = {path.relative_to(app).as_posix(): path.read_bytes() for path in paths}
        found[WORDS] = _words()
        words = {"{page}": f"/{page.path}" if page else "", "{title}": page.title if page else ""}
        words["{notice}"] = page.notice if page else ""
        words["{no-page}"] = "" if page else "hidden"
        words["{hash}"] = sha256(repr((found, words)).encode()).hexdigest()[:16]
        pages = {name: _with_modules(body, found) for name, body in found.items()}
        files = {name: _file(name, body, words) for name, body in pages.items()}
        if page is None:
            return cls(hash=words["{hash}"], files=files)
        index = (page.folder / INDEX).relative_to(app).as_posix()
        return cls(hash=words["{hash}"], files=files, page=page.path, index=index)


def _words() -> bytes:
    texts = catalogue.texts()
    return json.dumps({key: texts[key] for key in texts if key.startswith(OF_PAGES)}).encode()


def _paths(folder: Path) -> Iterator[Path]:
    """Yield the pages' files in a folder, without other files such as an editor's copies."""
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in MEDIA_TYPES and path.name[0] != ".":
            yield path


def _with_modules(body: bytes, found: Mapping[str, bytes]) -> bytes:
    """Add links to all modules of a page's script to its head, so that they load together."""
    script = SCRIPT.search(body)
    if not script:
        return body
    names = sorted(_modules(script[2].decode(), found))
    links = b"".join(script[1] + _preload(name) for name in names)
    return body.replace(script[0], links + script[0], 1)


def _preload(name: str) -> bytes:
    kind = b' as="json"' if name.endswith(".json") else b""
    return b'<link rel="modulepreload"%s href="/web/{hash}/%s">' % (kind, name.encode())


def _modules(entry: str, found: Mapping[str, bytes]) -> set[str]:
    """Return the module and all modules that it imports, directly or indirectly."""
    known, left = set[str](), [entry]
    while left:
        name = left.pop()
        if name in known or name not in found:
            continue
        known.add(name)
        imported = IMPORT.findall(found[name].decode())
        left += (
            posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for path in imported
        )
    return known


def _file(name: str, body: bytes, words: Mapping[str, str]) -> File:
    """Return a file as it is sent. In HTML, each placeholder is replaced by its text."""
    media_type = MEDIA_TYPES[Path(name).suffix]
    if media_type == "text/html":
        body = WORD.sub(lambda word: escape(catalogue.text(word[1].decode())).encode(), body)
        for word, meaning in words.items():
            body = body.replace(word.encode(), escape(meaning).encode())
    return File(body=body, gzipped=gzip.compress(body, mtime=0), media_type=media_type)


def page_functions(pages: Pages, *, start: bool = False) -> func.Blueprint:
    """Make the functions of the business's page and of the files of all pages.

    With `start`, the root is a page with links to all pages. Without it, the root redirects to the
    page of the business, whose customers need no link to the console.
    """
    triggers = Functions()

    @triggers.route("web/{hash}/{*file}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    async def web_file(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params.get("file", "")
        if name not in pages.files:
            return problem(404, catalogue.text("problem.unknown-file"))
        # During an upgrade, an app of another version may be asked: it sends its own, uncached.
        known = req.route_params["hash"] == pages.hash
        return _send(req, pages, name, IMMUTABLE if known else "no-store")

    if start or pages.page:
        _bind_home(triggers, pages, start=start)
    if pages.page:
        _bind_page(triggers, pages, pages.page)
    return triggers


def _bind_home(triggers: Functions, pages: Pages, *, start: bool) -> None:
    redirect = {"Location": f"/{pages.page}", "Cache-Control": ASK_AGAIN}

    @triggers.route(HOME, methods=READS, auth_level=func.AuthLevel.ANONYMOUS)
    async def web_home(req: func.HttpRequest) -> func.HttpResponse:
        if start:
            return send_page(req, pages, f"{STATIC}/start/{INDEX}")
        return func.HttpResponse(status_code=302, headers=redirect)


def _bind_page(triggers: Functions, pages: Pages, path: str) -> None:
    @triggers.route(path, methods=READS, auth_level=func.AuthLevel.ANONYMOUS)
    async def web_page(req: func.HttpRequest) -> func.HttpResponse:
        return send_page(req, pages, pages.index)


def send_page(req: func.HttpRequest, pages: Pages, name: str) -> func.HttpResponse:
    """Answer with a page, or with 304 if the browser has it. Its ETag is the hash of all files."""
    tag = f'"{pages.hash}"'
    if tag in req.headers.get("If-None-Match", ""):
        return func.HttpResponse(
            status_code=304, headers={"ETag": tag, "Cache-Control": ASK_AGAIN, **HEADERS}
        )
    return _send(req, pages, name, ASK_AGAIN, {"ETag": tag})


def _send(
    req: func.HttpRequest,
    pages: Pages,
    name: str,
    cache: str,
    more: Mapping[str, str] | None = None,
) -> func.HttpResponse:
    file = pages.files[name]
    headers = {"Cache-Control": cache, **HEADERS, **(more or {})}
    if "gzip" in req.headers.get("Accept-Encoding", ""):
        return func.HttpResponse(
            file.gzipped, headers=headers | {"Content-Encoding": "gzip"}, mimetype=file.media_type
        )
    return func.HttpResponse(file.body, headers=headers, mimetype=file.media_type)
