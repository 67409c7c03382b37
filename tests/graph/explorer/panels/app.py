"""The page of the panels beside Clade, for tests in a browser; no test."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from clade import Settings, create_app
from graph.explorer.page import POLICY

HERE = Path(__file__).parent
ASSETS = HERE.parents[3] / "graph" / "explorer" / "assets"


def make_app(settings: Settings) -> Starlette:
    """The page at /panels, its files below, and Clade at all other addresses."""
    clade = create_app(settings)

    async def page(request: Request) -> Response:
        return FileResponse(HERE / "page.html", headers={"content-security-policy": POLICY})

    routes = [
        Route("/panels", page),
        Mount("/panels/test", StaticFiles(directory=HERE)),
        Mount("/panels", StaticFiles(directory=ASSETS)),
        Mount("/", clade),
    ]
    return Starlette(routes=routes, lifespan=clade.lifespan)
