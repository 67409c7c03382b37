"""Server process: checks of settings, port and store before it listens, then uvicorn with one or several workers."""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import re
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
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from commands import interrupt
from commands.output import printable, say
from graph.auth.authentication import tokens_of
from graph.errors import RequestRejected
from graph.hierarchies.examples import Example, Sample, example_queries, read_samples
from graph.hierarchies.node import Node
from graph.hierarchies.registry import served
from graph.hosts import is_loopback
from graph.observability.logs import config
from graph.server.middleware import (
    HEAD_TOO_LARGE,
    MAX_CONNECTIONS,
    MAX_HEAD_BYTES,
    MAX_IGNORED_BYTES,
    MAX_PIPELINED,
    NOT_HTTP,
    PIPELINED,
    REJECTED,
    TOO_MANY,
)
from graph.settings import Settings, host_and_port
from store.connect import SQLiteUrl, open_store, parse_store_url
from store.engine import REQUEST_PATIENCE
from store.errors import BadInput, CladeError, Unavailable, WrongTable, quantity

ABSOLUTE_FORM = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")
"""A request target with an authority, which counts instead of the Host header (RFC 9112, 3.2.2)."""
PARSER = httptools_impl.httptools  # type: ignore[attr-defined]  # uvicorn's, for its errors
STORE_CHECK_SECONDS = 5.0
IDLE_SECONDS = 75  # longer than proxies keep a connection: whoever closes it first may lose a request of the other
MAX_UNACKNOWLEDGED_MILLISECONDS = 30_000  # of a client that does not read its response
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


class HTTPProtocol(HttpToolsProtocol):
    """One HTTP/1.1 connection, with limits on their number and on the bytes of a request head.

    The application rejects what cannot be read, in the form of an empty request. Of uvicorn's private state this uses
    `connections`, `cycle`, `headers`, `parser`, `pipeline`, `scope`, `transport`, `url`, `timeout_keep_alive_task`,
    `_unset_keepalive_if_required`, `send_400_response` and `on_response_complete`, whose count of responses nothing
    reads without `limit_max_requests`. The versions that `pyproject.toml` allows have them; CI tests the oldest and
    the newest.
    """

    connections: set[Any]
    _rejection: RequestRejected | None = None  # after which nothing is read
    _running: Any = None  # the cycle (request and response) that is being answered, where `cycle` is the newest one
    _unread = 0  # bytes since a head or a piece of a body ended: of the next head, or of trailers
    _ignored = 0  # bytes of bodies whose response was complete before them

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.on_response_complete()  # starts the time that a connection may be idle
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [one for one in self.connections - {self} if one.timeout_keep_alive_task is not None]
            if not idle:
                return self.reject(TOO_MANY)
            idle.sort(key=lambda one: one.timeout_keep_alive_task.when())
            for one in idle[: MAX_CONNECTIONS // 16 + 1]:  # several, since finding them takes a while
                self.connections.discard(one)
                one.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # whose timer would keep the connection in memory
        self.cycle = self._running  # which uvicorn then tells that its client has gone, instead of a pipelined one
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rejection is None:
            self._unread += len(data)
            self._unset_keepalive_if_required()
            self._parse(data)
            if self._unread > MAX_HEAD_BYTES:
                self.reject(HEAD_TOO_LARGE)
            if self._running is None:
                self.on_response_complete()

    def _parse(self, data: bytes) -> None:
        """Parse what was received. A request to upgrade the protocol, as curl sends it for h2c, is answered without.

        RFC 9110, 7.8, allows that. A parser would take the body for the new protocol, so another gets the head without.
        """
        try:
            while True:
                try:
                    return self.parser.feed_data(data)
                except PARSER.HttpParserUpgrade as upgrade:
                    method, version = self.parser.get_method(), self.parser.get_http_version().encode()
                    if method == b"CONNECT":
                        return self.send_400_response("")
                    lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
                    lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
                    data = b"\r\n".join([*lines, b"", data[upgrade.args[0] :]])
                    self.parser = type(self.parser)(self)  # the old one may wait for the end of the connection
                    with contextlib.suppress(AttributeError):  # before httptools 0.6.3; as uvicorn sets it
                        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        except PARSER.HttpParserError:
            self.send_400_response("")

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if len(self.pipeline) >= MAX_PIPELINED and self._rejection is None:
            raise OverflowError  # stops the parser, and uvicorn calls `send_400_response`
        self._unread = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            self._rejection = HEAD_TOO_LARGE
            self.url = b"/"  # uvicorn cannot parse one of 65,536 bytes or more
        if (absolute := ABSOLUTE_FORM.match(self.url)) is not None:
            self.headers[:] = [(name, absolute[1] if name == b"host" else value) for name, value in self.headers]
        self.scope[REJECTED] = self._rejection  # type: ignore[literal-required]
        super().on_headers_complete()
        self._running = self._running or self.cycle
        self.headers = []  # for trailers, which are ignored; the request keeps its own list

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if self.cycle.response_complete:
            self._ignored += len(body)
            if self._ignored > MAX_IGNORED_BYTES:
                self.transport.close()
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        if self._rejection is None:
            is_full = len(self.pipeline) >= MAX_PIPELINED
            self.reject(PIPELINED if is_full else NOT_HTTP)

    def reject(self, rejection: RequestRejected) -> None:
        """Answer with an error; within a body or after it, where a response may have begun, only close."""
        self._unset_keepalive_if_required()
        if self.cycle is not None and self.scope is self.cycle.scope:
            return self.transport.close()
        self._rejection = rejection
        self.parser = type(self.parser)(self)
        self.parser.feed_data(b"GET * HTTP/1.1\r\n\r\n")
