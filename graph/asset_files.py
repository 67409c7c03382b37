"""Asset files: the files of a page for browsers, compressed and cached by their digest.

Starlette's StaticFiles with GZipMiddleware is not used: it would compress a file for each request, on the event loop,
and would serve every file of the folder.
"""

import gzip
import hashlib
from functools import cached_property
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER, EACH_TIME = "public, max-age=31536000, immutable", "no-cache"


class AssetFiles:
    """The scripts, styles and pictures in a folder and the folders below it; no other file of it is served.

    They fit each other only as one set, so the address of each has the digest of all.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._zipped: dict[str, bytes] = {}

    @cached_property
    def names(self) -> list[str]:
        """The paths of the files relative to the folder, sorted."""
        files = [file for file in self.folder.rglob("*") if file.suffix in MEDIA_TYPES]
        return sorted(file.relative_to(self.folder).as_posix() for file in files)

    @cached_property
    def digest(self) -> str:
        """The digest of all files together."""
        return hashlib.sha256(b"".join(self._contents.values())).hexdigest()[:16]

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        return {name: self.content(name) for name in self.names}

    def content(self, name: str) -> bytes:
        """The bytes of a file of the folder, also of one that is not served."""
        return (self.folder / name).read_bytes()

    def zipped(self, name: str) -> bytes:
        """The bytes of a served file, compressed by gzip once."""
        if name not in self._zipped:
            self._zipped[name] = gzip.compress(self._contents[name], mtime=0)
        return self._zipped[name]

    async def serve(self, request: Request) -> Response:
        """The file at `{digest}/{name}` of the route; under the current digest it may be cached for good."""
        name, requested = request.path_params["name"], request.path_params["digest"]
        if name not in self._contents:
            raise HTTPException(404)
        headers = {
            "cache-control": FOREVER if requested == self.digest else EACH_TIME,
            "vary": "accept-encoding",
        }
        is_zipped = "gzip" in request.headers.get("accept-encoding", "")
        if is_zipped:
            headers["content-encoding"] = "gzip"
        media_type = MEDIA_TYPES[Path(name).suffix]
        content = self.zipped(name) if is_zipped else self._contents[name]
        return tagged(request, Response(content, media_type=media_type, headers=headers))


def tagged(request: Request, response: Response) -> Response:
    """A response with the entity tag of its body, or 304 where the client has it already."""
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:16]}"'
    response.headers["etag"] = tag
    if not matches(request.headers.get("if-none-match", "").encode("latin-1"), tag.encode()):
        return response
    kept = {name: value for name, value in response.headers.items() if not name.startswith("content-l")}
    return Response(status_code=304, headers=kept)


def matches(tags: bytes, tag: bytes) -> bool:
    """Whether If-None-Match has this entity tag, also as a weak one, as compressing proxies send it; `*` has all."""
    return any(listed.strip().removeprefix(b"W/") in (tag, b"*") for listed in tags.split(b","))
