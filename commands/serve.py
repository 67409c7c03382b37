"""`clade serve`: start the server."""

import os
from typing import Annotated

import typer

from commands.common import StoreUrl


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all addresses.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Number of processes that share the port.", min=1)] = 1,
    store: StoreUrl = None,
) -> None:
    """Start the server: the explorer at http://HOST:PORT/, GraphQL at http://HOST:PORT/graphql.

    Example: clade serve --port 8080 --workers 2
    """
    from commands.server import start  # with uvicorn and the whole server, which the help does without

    if store is not None:
        os.environ["CLADE_STORE"] = store  # read by the worker processes
    start(host, port, workers)
