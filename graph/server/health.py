"""Health checks for load balancers: liveness at `/healthz` and readiness at `/readyz`."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from graph.errors import STORE_MESSAGE, log_unavailable
from graph.server.graceful_shutdown import GracefulShutdown
from store.engine import Store
from store.errors import Unavailable

READY_SECONDS = 2.0
"""Maximum time of a store's health check."""

NOT_STARTED = (
    "The application runs without its lifespan, so its store is not open; enter `lifespan` of the application "
    "in the lifespan of its host, as docs/mounting.md shows."
)


async def alive(request: Request) -> Response:
    """200 as long as the process serves requests; without I/O, so an unavailable store restarts no server."""
    return PlainTextResponse("ok")


async def ready(store: Store, drain: GracefulShutdown, request: Request) -> Response:
    """200 if the store can be read and the server is not stopping, else 503 with the reason."""
    if not drain.has_started:
        reason: str | None = NOT_STARTED
    else:
        reason = "The server is stopping." if drain.draining else await _store_failure(store)
    return JSONResponse({"ready": False, "reason": reason}, 503) if reason else JSONResponse({"ready": True})


async def _store_failure(store: Store) -> str | None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await store.health()
    except Unavailable as error:
        log_unavailable(error)
        return STORE_MESSAGE
    except TimeoutError:
        return f"The store did not respond within {READY_SECONDS:g} seconds."
    return None
