"""`clade serve`: the server."""

import asyncio
import contextlib
import os
import socket
import sys
from typing import Annotated

import typer
import uvicorn

from commands.serving.http_protocol import ServerConfig
from commands.serving.workers import Workers
from graph.auth.authentication import tokens_of
from graph.auth.loopback import is_loopback
from graph.hierarchies.registry import served
from graph.observability import log_handler
from graph.observability.metrics_server import exported
from graph.settings import Settings, host_and_port
from store.connect import opened
from store.errors import BadInput, Unavailable, WrongLayout
from store.store_url import SQLiteUrl, parse_store_url

READY_SECONDS = 2.0
SILENT_MILLISECONDS = 30_000
OTHER_DESCRIPTORS = 512  # of the store, the log and the port, beside those of clients

EXAMPLES = (
    '{ city(path: "US/NE/Omaha") { name population ancestors { name level } } }',
    '{ location(path: "US/NE") { descendants(level: STORE) { nodes { path ... on Store { street } } } } }',
    "{ categories { nodes { name children { nodes { name children { nodes { name } } } } } } }",
)


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="How many processes share the port.", min=1)] = 1,
) -> None:
    """Serve the hierarchies at http://HOST:PORT/graphql, with GraphiQL for browsers.

    Example: clade serve --port 8080 --workers 2
    """
    settings = Settings()
    served(settings.hierarchies)  # a mistake in the settings is told before anything listens
    tokens_of(settings)
    store = parse_store_url(settings.store)
    if isinstance(store, SQLiteUrl) and store.is_in_memory and workers > 1:
        raise BadInput(f"A store in memory is one process's own, and these would be {workers}; leave --workers out.")
    if settings.writes == "on" and not is_loopback(f"[{host}]" if ":" in host else host):
        os.environ["CLADE_WRITES"] = "granted"  # for the processes that serve: others than this machine can reach them
        print(f"clade: {host} can be reached by others, so CLADE_WRITES=on is taken as granted.", file=sys.stderr)
    _check_free(host, port, "choose another --port or --host")
    if settings.metrics:
        _check_free(*host_and_port(settings.metrics), "set another CLADE_METRICS")
    asyncio.run(_check_store(settings.store))
    _greet(settings.store, host, port)
    _allow_descriptors(settings.max_connections)
    config = ServerConfig(
        "commands.serving.workers:worker_app",
        max_connections=settings.max_connections,
        max_body_bytes=settings.max_body_bytes,
        head_seconds=settings.request_seconds,
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_config=log_handler.config(settings.log_level, settings.log_format),
        log_level="error",  # its warnings are of requests that are no HTTP, which have lines of their own
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    with exported(settings.metrics, workers):
        _run(config, settings.drain_seconds)


def _run(config: uvicorn.Config, drain_seconds: float) -> None:
    """Listen until the process is told to stop, in one process or in many."""
    listener = config.bind_socket()
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Who takes no byte of an answer for so long holds its memory no longer; its connections inherit this.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MILLISECONDS)
    with contextlib.suppress(KeyboardInterrupt):
        if config.workers > 1:
            Workers(config, [listener], drain_seconds).run()
        else:
            uvicorn.Server(config).run([listener])


def _allow_descriptors(connections: int) -> None:
    """Raise the limit on open files as far as the system lets us, so that the one on connections is met first."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_free(host: str, port: int, way_out: str) -> None:
    """End with one sentence where the port cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            reason = error.strerror or str(error)
            sys.exit(f"clade: {host}:{port} cannot be listened on ({reason.lower()}); {way_out}.")


async def _check_store(url: str) -> None:
    """Say so where the store cannot be read yet: an engine may start later than its server. Raises WrongLayout."""
    try:
        async with asyncio.timeout(READY_SECONDS), opened(url):
            pass
    except WrongLayout:
        raise
    except Unavailable as error:
        print(f"clade: {error}\nQueries get errors until then.\n", file=sys.stderr)
    except TimeoutError:
        print(f"clade: {url} is silent.\nQueries get errors until it answers.\n", file=sys.stderr)


def _greet(store: str, host: str, port: int) -> None:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  # compared, not bound
    print(f"Clade serves {store} at http://{shown}:{port}/graphql\n\nQueries to try:\n")
    for example in EXAMPLES:
        print(f"  {example}")
    print("\nCtrl-C ends it.", flush=True)
