"""GraphiQL for browsers, served from the files beside this one: nothing is loaded from another host."""

import gzip
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.hierarchies.example_queries import Example

FOLDER = files("graph.server") / "graphiql_assets"
STATIC = sorted(file.name for file in FOLDER.iterdir() if file.name.endswith((".css", ".js")))

# graphiql 4 is the last to run under this policy: 5 needs inline styles and workers made of text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self' data:; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Examples = Callable[[], Awaitable[Sequence[Example]]]
"""Makes the example queries, of what the store holds now."""


def routes(examples: Examples) -> list[Route]:
    """The files of the page, and the queries of the tabs that it opens with."""
    return [
        Route("/graphql/static/{digest}/{name}", static),
        Route("/graphql/examples.json", partial(tabs, examples)),
    ]


async def page(request: Request) -> Response:
    """The page itself, never cached: it names the other files with their digest."""
    html = content("index.html").replace(b"/static/", b"/static/" + digest().encode() + b"/")
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache", "vary": "accept"}
    return Response(html, media_type="text/html", headers=headers)


async def static(request: Request) -> Response:
    """One of the page's files; under the address of the current digest it may be cached for good."""
    name, requested = request.path_params["name"], request.path_params["digest"]
    if name not in STATIC:
        raise HTTPException(404)
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if requested == digest() else "no-cache",
        "vary": "accept-encoding",
    }
    if is_zipped := "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
    media_type = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(zipped(name) if is_zipped else content(name), media_type=media_type, headers=headers)


async def tabs(examples: Examples, request: Request) -> Response:
    return JSONResponse([asdict(example) for example in await examples()], headers={"cache-control": "no-store"})


@cache
def digest() -> str:
    """The digest of all files together: they fit each other only as one set."""
    return hashlib.sha256(b"".join(content(name) for name in STATIC)).hexdigest()[:16]


@cache
def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def zipped(name: str) -> bytes:
    return gzip.compress(content(name), mtime=0)
