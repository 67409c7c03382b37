"""Pages for browsers: the explorer and GraphiQL, whose files are compressed, and cached by their digest.

Each is under a policy that allows only scripts and styles of this server: nothing is loaded from another host. Both are
clients of the API like any other.

Starlette's StaticFiles with GZipMiddleware is not used: it would compress a file for each request, and would serve
every file of the folder.
"""

import gzip
import hashlib
import posixpath
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import cache, cached_property, partial
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.hierarchies.examples import Example
from graph.server.compression import accepts_gzip
from graph.server.sending import VARY

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOREVER, EACH_TIME = "public, max-age=31536000, immutable", "no-cache"

# Trusted Types: a browser that knows them refuses to make HTML or scripts of text, wherever the text comes from.
EXPLORER_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_OPAQUE_TAG = re.compile(rb'(?:^|,)[ \t]*(?:W/)?("[^"]*")[ \t]*(?=,|$)')
_PRELOAD = '    <link rel="modulepreload" href="explorer/static/{}">\n'
_SCRIPT = re.compile(r'<script type="module"[^>]* src="explorer/static/([^"]+)">')
_IMPORT = re.compile(r'^import [^;"]*"(\.[^"]+)";$', re.MULTILINE)

# graphiql 4 is the last to run under this policy: 5 needs inline styles and workers made of text.
GRAPHIQL_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self' data:; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Examples = Callable[[], Awaitable[Sequence[Example]]]
"""Makes the example queries, of what the store holds now."""


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
        is_zipped = accepts_gzip(request.headers.get("accept-encoding", "").encode("latin-1"))
        headers = {
            "cache-control": FOREVER if requested == self.digest else EACH_TIME,
            "vary": "accept-encoding",
            "etag": tag_of_form(f'W/"{self.digest}"'.encode(), is_zipped=is_zipped).decode(),
        }
        if is_zipped:
            headers["content-encoding"] = "gzip"
        media_type = MEDIA_TYPES[Path(name).suffix]
        content = self.zipped(name) if is_zipped else self._contents[name]
        return unless_known(request, Response(content, media_type=media_type, headers=headers))


def unless_known(request: Request, response: Response) -> Response:
    """The response, or 304 where the client has it already by its entity tag."""
    known, tag = request.headers.get("if-none-match", ""), response.headers["etag"]
    if not matches(known.encode("latin-1"), tag.encode()):
        return response
    kept = {name: value for name, value in response.headers.items() if not name.startswith("content-l")}
    return Response(status_code=304, headers=kept)


def matches(tags: bytes, tag: bytes) -> bool:
    """Whether If-None-Match has this entity tag; it compares without `W/`, by RFC 9110, 13.1.2. `*` alone has all."""
    return tags.strip() == b"*" or tag.removeprefix(b"W/") in _OPAQUE_TAG.findall(tags)


def tag_of_form(tag: bytes, *, is_graphql: bool = False, is_zipped: bool) -> bytes:
    """The entity tag of one form of a resource, by its media type and coding: RFC 9110, 8.8.3.

    With one tag for all, a cache would revalidate the form that it has for a client that asks for another.
    """
    return tag[:-1] + b"-graphql" * is_graphql + b"-gzip" * is_zipped + b'"'


EXPLORER_FILES = AssetFiles(Path(__file__).parents[1] / "explorer" / "assets")
GRAPHIQL_FILES = AssetFiles(Path(__file__).parent / "graphiql_assets")


def explorer_routes(*, graphiql: bool) -> list[Route]:
    """The page at `/`, and its files; with `graphiql` its queries have links to GraphiQL."""
    return [
        Route("/", partial(explorer_page, graphiql)),
        Route("/explorer/static/{digest}/{name:path}", EXPLORER_FILES.serve),
    ]


async def explorer_page(graphiql: bool, request: Request) -> Response:
    """The page: it names the other files with their digest, so that a browser asks for it each time."""
    html, tag = _explorer_html(graphiql)
    headers = {"content-security-policy": EXPLORER_POLICY, "cache-control": EACH_TIME, "etag": tag}
    return unless_known(request, Response(html, media_type="text/html", headers=headers))


@cache
def _explorer_html(graphiql: bool) -> tuple[str, str]:
    """The text of the page, and its entity tag; it names the first modules, so that they load at the same time."""
    text = EXPLORER_FILES.content("index.html").decode()
    modules = "".join(_PRELOAD.format(name) for name in _first_modules(text))
    text = text.replace("    <!-- modules -->\n", modules)
    text = text.replace("/static/", f"/static/{EXPLORER_FILES.digest}/")
    text = text.replace('data-graphiql=""', f'data-graphiql="{"graphql" if graphiql else ""}"')
    return text, f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'


def _first_modules(page: str) -> list[str]:
    """The modules of a page and what they import before they run, without what `import()` loads later.

    The order is that in which a browser finds them.
    """
    found = _SCRIPT.findall(page)
    for module in found:
        for path in _IMPORT.findall(EXPLORER_FILES.content(module).decode()):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(module), path))
            if imported not in found:
                found.append(imported)
    return found


def graphiql_routes(examples: Examples) -> list[Route]:
    """The files of the page, and the queries of the tabs that it opens with."""
    return [
        Route("/graphql/static/{digest}/{name}", GRAPHIQL_FILES.serve),
        Route("/graphql/examples.json", partial(graphiql_tabs, examples)),
    ]


async def graphiql_page(request: Request) -> Response:
    """The page itself, never cached: it names the other files with their digest."""
    html = GRAPHIQL_FILES.content("index.html").replace(b"/static/", f"/static/{GRAPHIQL_FILES.digest}/".encode())
    headers = {"content-security-policy": GRAPHIQL_POLICY, "cache-control": EACH_TIME, "vary": VARY[1].decode()}
    return Response(html, media_type="text/html", headers=headers)


async def graphiql_tabs(examples: Examples, request: Request) -> Response:
    return JSONResponse([asdict(example) for example in await examples()], headers={"cache-control": "no-store"})
