"""The pages' files, read, hashed and compressed once."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
HASH_IN_PAGES = b"{hash}"
"""Stands for the hash where a page names its files."""


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
