"""GraphiQL for browsers, from files that lie beside this one: nothing is asked of any other host."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

FOLDER = files("graph.server") / "graphiql_assets"

MEDIA_TYPES = {
    "react.production.min.js": "text/javascript",
    "react-dom.production.min.js": "text/javascript",
    "graphiql.min.js": "text/javascript",
    "graphiql.min.css": "text/css",
    "boot.js": "text/javascript",
    "boot.css": "text/css",
    "examples.graphql": "text/plain",
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


async def page(request: Request) -> Response:
    """The page itself; it names the other files with their digest, so it is asked for anew each time."""
    return Response(
        html(),
        media_type="text/html",
        headers={"content-security-policy": POLICY, "cache-control": "no-cache", "vary": "accept"},
    )


async def static(request: Request) -> Response:
    """One of the page's files, to be kept for good under the address of its digest."""
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


@cache
def html() -> bytes:
    return content("index.html").replace(b"/static/", b"/static/" + digest().encode() + b"/")


@cache
def digest() -> str:
    """Of all files together: they fit each other only as one set."""
    return hashlib.sha256(b"".join(content(name) for name in MEDIA_TYPES)).hexdigest()[:16]


@cache
def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def zipped(name: str) -> bytes:
    return gzip.compress(content(name), mtime=0)
