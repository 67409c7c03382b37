"""Server process: checks of settings, port and store before it listens, then uvicorn with one or several workers."""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import uvicorn
import uvicorn._subprocess
from uvicorn.supervisors import Multiprocess

from commands import interrupt
from commands.output import printable, say
from commands.protocol import HTTPProtocol
from graph.auth.authentication import tokens_of
from graph.hierarchies.examples import Example, Sample, example_queries, read_samples
from graph.hierarchies.node import Node
from graph.hierarchies.registry import served
from graph.hosts import is_loopback
from graph.observability.logs import config
from graph.server.handler import MAX_CONNECTIONS
from graph.settings import Settings, host_and_port
from store.connect import SQLiteUrl, open_store, parse_store_url
from store.engine import REQUEST_PATIENCE
from store.errors import BadInput, CladeError, Unavailable, WrongTable, quantity

STORE_CHECK_SECONDS = 5.0
IDLE_SECONDS = 75  # longer than proxies keep a connection: whoever closes it first may lose a request of the other
MAX_UNACKNOWLEDGED_MILLISECONDS = 30_000  # of a client that does not read its response
BACKLOG = 128  # connections that wait in the kernel, where no age is known; the clients of further ones try again
WORKERS_PER_PROCESSOR = 4
OTHER_DESCRIPTORS = 512  # for the store, the log and the port, in addition to client connections
COLLECT_AFTER = (50_000, 20, 100)
"""Thresholds of the garbage collector: a request makes many objects and hardly any cycles."""


def start(host: str, port: int, workers: int) -> None:
    """Serve until the process is stopped. Raises BadInput for settings that do not fit together."""
    settings = Settings()
    _check_workers(workers)
    classes = served(settings.hierarchies)  # errors in the settings are reported before the server listens
    tokens_of(settings)
    store = parse_store_url(settings.store)
    if isinstance(store, SQLiteUrl) and store.is_in_memory and workers > 1:
        raise BadInput(f"A store in memory needs one process; remove --workers {workers}, or set another CLADE_STORE.")
    if settings.writes == "on" and not is_loopback(f"[{host}]" if ":" in host else host):
        os.environ["CLADE_WRITES"] = "granted"  # read by the worker processes
        say(f"clade: {host} is not a loopback address, so CLADE_WRITES=on is changed to granted.", err=True)
    port = _available_port(host, port, "use another --port or --host")
    if settings.metrics:
        _available_port(*host_and_port(settings.metrics), "set another CLADE_METRICS")
    if settings.demo:
        from commands.demo import prepare_demo  # with the modules of imports, which a server does without

        interrupt.run(prepare_demo(settings.store))
    samples = interrupt.run(_check_store(settings.store, classes, writes=settings.writes != "off"))
    _print_examples(settings, host, port, example_queries(classes, samples))
    _raise_file_limit()
    exporting: AbstractContextManager[None] = nullcontext()
    if settings.metrics:
        from graph.server.metrics import exported  # with its library, which takes a while to import

        exporting = exported(settings.metrics, workers)
    with exporting:
        _run(uvicorn_config(settings, host, port, workers), settings.drain_seconds)


def uvicorn_config(settings: Settings, host: str, port: int, workers: int) -> uvicorn.Config:
    return uvicorn.Config(
        "commands.server:worker_app",
        http=HTTPProtocol,
        ws="none",
        timeout_keep_alive=IDLE_SECONDS,
        factory=True,
        host=host,
        port=port,
        backlog=BACKLOG,
        workers=workers,
        log_config=config(settings.log_level, settings.log_format),
        log_level="error",  # its warnings are about invalid HTTP, which the access log has
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.stop_seconds,
    )


def _run(config: uvicorn.Config, drain_seconds: float) -> None:
    """Serve until the process is stopped, with one or several worker processes."""
    listener = config.bind_socket()
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Connections inherit the option: those whose client acknowledges nothing are closed, and their memory is freed.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, MAX_UNACKNOWLEDGED_MILLISECONDS)
    with contextlib.suppress(interrupt.Interrupted, KeyboardInterrupt):
        if config.workers > 1:
            Workers(config, [listener], drain_seconds).run()
        else:
            uvicorn.Server(config).run([listener])


def _fork_workers() -> None:
    """Let uvicorn fork workers from a process that has made the application. Exits where it cannot be made."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["uvicorn.lifespan.on", "uvicorn.loops.uvloop", "commands.forkserver"])
    # Python hands `sys.path` on to that process from 3.12.4 on only.
    os.environ.update(PYTHONPATH=os.pathsep.join(sys.path), PYTHONSAFEPATH="1")
    first = context.Process(target=_check_app)  # uvicorn would start a worker that fails again and again
    first.start()
    first.join()
    if first.exitcode:
        sys.exit(first.exitcode)
    uvicorn._subprocess.spawn = context  # type: ignore[assignment]


def _check_app() -> None:
    try:
        make_app()
    except CladeError as error:
        sys.exit(f"clade: {printable(error)}")


def _raise_file_limit() -> None:
    """Raise the limit of open files, as far as allowed, so that the limit of connections is reached first."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_workers(workers: int) -> None:
    """Raise BadInput for more processes than the machine could start: each has a memory and caches of its own."""
    processors = os.cpu_count() or 1
    if workers > (most := max(WORKERS_PER_PROCESSOR * processors, 16)):
        raise BadInput(
            f"--workers {workers:,} is too many for {quantity(processors, 'processor')}; use at most {most}, best as "
            "many as processors."
        )


def _available_port(host: str, port: int, way_out: str) -> int:
    """The port, or a free one for 0. Raises BadInput where it is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            return int(probe.getsockname()[1])
        except OSError as error:
            reason = error.strerror or str(error)
            raise BadInput(f"{host}:{port} is not available ({reason.lower()}); {way_out}.") from None


async def _check_store(url: str, classes: Sequence[type[Node]], *, writes: bool) -> dict[str, Sample]:
    """Sample nodes of the store. Print a warning if it is unavailable, as it may start later than the server.

    Raises WrongTable, with `writes` also for a table that cannot be written.
    """
    try:
        async with open_store(url, patience=REQUEST_PATIENCE) as store, asyncio.timeout(STORE_CHECK_SECONDS):
            await store.health()
            if writes:
                await store.check_transactions()
            return await read_samples(store, classes)
    except WrongTable:
        raise
    except (Unavailable, TimeoutError) as error:
        reason = error if isinstance(error, Unavailable) else f"{url} does not respond."
        say(f"clade: {reason}", "Until the store is available, queries return errors.", "", err=True)
    return {}


def _print_examples(settings: Settings, host: str, port: int, examples: Sequence[Example]) -> None:
    reachable = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  # compared, not bound
    url = f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
    if settings.shows("explorer"):
        say(f"Explorer: {url}/", "")
    say(f"Clade serves {settings.store} at {url}/graphql", "", "Queries to try:", "")
    say(*[f"  {example.one_line()}" for example in examples], "", "Press Ctrl-C to stop.")


class Workers(Multiprocess):
    """uvicorn's supervisor of workers, which also closes the parent's listening socket when the workers stop.

    Each worker closes its own copy of the socket. The kernel would still accept connections for the parent's copy, and
    nobody would answer them.
    """

    def __init__(self, config: uvicorn.Config, sockets: Sequence[socket.socket], drain_seconds: float) -> None:
        super().__init__(config, list(sockets))
        self._drain_seconds = drain_seconds

    def run(self) -> None:
        if sys.platform == "linux":  # macOS kills forked processes that use its frameworks, Windows has no fork
            _fork_workers()
        super().run()

    def terminate_all(self) -> None:
        super().terminate_all()
        threading.Timer(self._drain_seconds, self._close_sockets).start()

    def _close_sockets(self) -> None:
        for listener in self.sockets:
            listener.close()


def worker_app() -> Any:
    """The ASGI application of one worker; the worker stops when its parent ends, also when that was killed."""
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_stop_with, args=(parent,), daemon=True).start()
    return make_app()


@cache
def make_app() -> Any:
    """The ASGI application of this process, made once: in a fork it is there already."""
    from graph.app import create_app  # not in the parent of workers: importing the metrics fixes their directory

    app = create_app()
    gc.freeze()  # objects of the start live until the end
    gc.set_threshold(*COLLECT_AFTER)
    return app.asgi


def _stop_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
