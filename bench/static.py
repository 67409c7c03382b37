"""Baseline server: fixed bytes through the same server, framework and headers as Clade's responses.

Each file of the directory that BENCH_ANSWERS names is served at /NAME.
"""

import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from graph.server.handler import RequestHandler
from graph.server.lifecycle import GracefulShutdown


def app() -> ASGIApp:
    answers = {file.name: file.read_bytes() for file in Path(os.environ["BENCH_ANSWERS"]).iterdir()}

    async def answer(request: Request) -> Response:
        return Response(answers[request.path_params["name"]], media_type="application/json")

    drain = GracefulShutdown()
    drain.has_started = True
    served = Starlette(routes=[Route("/{name}", answer, methods=["POST"])])
    return RequestHandler(served, served, (), drain)
