"""GraphiQL for browsers, served from files of this package: nothing is loaded from another host."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.asset_files import AssetFiles
from graph.hierarchies.example_queries import Example

FILES = AssetFiles(Path(__file__).parent / "graphiql_assets")

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
        Route("/graphql/static/{digest}/{name}", FILES.serve),
        Route("/graphql/examples.json", partial(tabs, examples)),
    ]


async def page(request: Request) -> Response:
    """The page itself, never cached: it names the other files with their digest."""
    html = FILES.content("index.html").replace(b"/static/", b"/static/" + FILES.digest.encode() + b"/")
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache", "vary": "accept"}
    return Response(html, media_type="text/html", headers=headers)


async def tabs(examples: Examples, request: Request) -> Response:
    return JSONResponse([asdict(example) for example in await examples()], headers={"cache-control": "no-store"})
