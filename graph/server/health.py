"""Health checks for load balancers: liveness at `/healthz` and readiness at `/readyz`."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from graph.errors import STORE_MESSAGE, logger
from graph.server.graceful_shutdown import GracefulShutdown
from store.engine.protocol import Store
from store.errors import Unavailable

READY_SECONDS = 2.0
"""Maximum time of a store's health check."""


async def alive(request: Request) -> Response:
    """200 as long as the process serves requests; without I/O, so an unavailable store restarts no server."""
    return PlainTextResponse("ok")


class Readiness:
    """Checks the store on each request."""

    def __init__(self, store: Store, drain: GracefulShutdown) -> None:
        self._store = store
        self._drain = drain

    async def ready(self, request: Request) -> Response:
        """200 if the store can be read and the server is not stopping, else 503.

        The log has the store's error, since that names tables and files.
        """
        if self._drain.draining:
            return JSONResponse({"ready": False, "reason": "The server is stopping."}, 503)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._store.health()
        except Unavailable as error:
            logger.warning("%s", error)
            return JSONResponse({"ready": False, "reason": STORE_MESSAGE}, 503)
        except TimeoutError:
            return JSONResponse(
                {"ready": False, "reason": f"The store did not respond within {READY_SECONDS:g} seconds."}, 503
            )
        return JSONResponse({"ready": True})
