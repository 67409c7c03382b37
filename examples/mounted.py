"""Application that mounts Clade: file drives at /drives/graphql, next to its own page.

Start it with: uvicorn --factory examples.mounted:make_app
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from clade import Settings, create_app


async def home(request: Request) -> Response:
    return PlainTextResponse("The drives are at /drives/graphql.")


def make_app(store: str = "sqlite:///drives.db") -> Starlette:
    """The application over a store, whose table `clade table create` has made."""
    drives = create_app(Settings(store=store, hierarchies="examples.drive"))
    return Starlette(
        routes=[Route("/", home), Mount("/drives", drives)],
        lifespan=drives.lifespan,  # opens the store and closes it: Starlette starts no application that is mounted
    )
