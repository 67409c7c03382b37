"""Type-ahead page: a search field over the places of Clade, which is mounted beside it, so that both have one origin.

Start it with: uvicorn --factory examples.type_ahead:make_app
"""

import base64
import hashlib
import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from clade import Settings, create_app

PAGE = Path(__file__).with_name("type_ahead.html").read_text("utf-8")


def source(tag: str) -> str:
    """The source of the page's only element of this name for a content security policy: the hash of its text."""
    (text,) = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The page runs its own script and style, asks its own origin, and loads nothing else.
HEADERS = {
    "content-security-policy": f"default-src 'none'; script-src {source('script')}; style-src {source('style')}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


async def page(request: Request) -> Response:
    return HTMLResponse(PAGE, headers=HEADERS)


def make_app(settings: Settings | None = None) -> Starlette:
    """The application: the page at /, Clade with its /graphql at all other addresses. Without settings those of the
    environment count, such as CLADE_STORE.
    """
    places = create_app(settings or Settings())
    return Starlette(
        routes=[Route("/", page), Mount("/", places)],
        lifespan=places.lifespan,  # opens the store and closes it: Starlette starts no application that is mounted
    )
