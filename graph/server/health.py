"""What a load balancer asks: whether the process lives, and whether it can answer."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from graph.errors import STORE_MESSAGE, logger
from graph.server.graceful_shutdown import GracefulShutdown
from store.engine.protocol import Store
from store.errors import Unavailable

READY_SECONDS = 2.0
"""A store that takes longer to say that it is well is not."""


async def alive(request: Request) -> Response:
    """200 as long as the process takes requests; no I/O, so a store that is down restarts nothing."""
    return PlainTextResponse("ok")


class Readiness:
    """Asks the store on each request, so that it recovers as the store does."""

    def __init__(self, store: Store, drain: GracefulShutdown) -> None:
        self._store = store
        self._drain = drain

    async def ready(self, request: Request) -> Response:
        """200 when the store can be read now and the server is to stay, else 503.

        The log says what is amiss with the store, since that names tables and files.
        """
        if self._drain.draining:
            return JSONResponse({"ready": False, "reason": "The server stops."}, 503)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._store.health()
        except Unavailable as error:
            logger.warning("%s", error)
            return JSONResponse({"ready": False, "reason": STORE_MESSAGE}, 503)
        except TimeoutError:
            return JSONResponse({"ready": False, "reason": f"The store is silent for {READY_SECONDS:g} seconds."}, 503)
        return JSONResponse({"ready": True})
