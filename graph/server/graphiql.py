"""GraphiQL for browsers, served from the files beside this one: nothing is loaded from another host."""

import gzip
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from graph.hierarchies.example_queries import Example

FOLDER = files("graph.server") / "graphiql_assets"

MEDIA_TYPES = {
    "react.production.min.js": "text/javascript",
    "react-dom.production.min.js": "text/javascript",
    "graphiql.min.js": "text/javascript",
    "graphiql.min.css": "text/css",
    "boot.js": "text/javascript",
    "boot.css": "text/css",
}

# graphiql 4 is the last to run under this policy: 5 needs inline styles and workers made of text.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self' data:",
        "img-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

Examples = Callable[[], Awaitable[Sequence[Example]]]
"""Makes the example queries, of what the store holds now."""


async def page(request: Request) -> Response:
    """The page itself, never cached: it names the other files with their digest."""
    return Response(
        html(),
        media_type="text/html",
        headers={"content-security-policy": POLICY, "cache-control": "no-cache", "vary": "accept"},
    )


async def static(request: Request) -> Response:
    """One of the page's files; under the address of the current digest it may be cached for good."""
    name, asked = request.path_params["name"], request.path_params["digest"]
    if name not in MEDIA_TYPES:
        raise HTTPException(404)
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if asked == digest() else "no-cache",
        "vary": "accept-encoding",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(zipped(name), media_type=MEDIA_TYPES[name], headers={**headers, "content-encoding": "gzip"})
    return Response(content(name), media_type=MEDIA_TYPES[name], headers=headers)


async def no_examples() -> Sequence[Example]:
    return []


def examples_page(examples: Examples) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of the tabs that GraphiQL opens with: a list of name, query and variables."""

    async def answer(request: Request) -> Response:
        tabs = [{"name": one.name, "query": one.query, "variables": one.variables} for one in await examples()]
        return JSONResponse(tabs, headers={"cache-control": "no-store"})

    return answer


@cache
def html() -> bytes:
    return content("index.html").replace(b"/static/", b"/static/" + digest().encode() + b"/")


@cache
def digest() -> str:
    """The digest of all files together: they fit each other only as one set."""
    return hashlib.sha256(b"".join(content(name) for name in MEDIA_TYPES)).hexdigest()[:16]


@cache
def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def zipped(name: str) -> bytes:
    return gzip.compress(content(name), mtime=0)
