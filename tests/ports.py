"""Ports of the servers that tests start, which nobody else takes between the choice and the start, and closed ports."""

import itertools
import socket
import threading
from collections.abc import Iterator

# Linux gives 32,768 and more to clients, and to servers that ask for any port.
FIRST, LAST, BLOCK = 20_000, 32_700, 100


def free_port() -> int:
    """A port of 127.0.0.1 that this process is given only once, as long as there are others."""
    with _asking:  # servers are started by several threads, and a generator runs in one of them at a time
        return next(_free)


def closed_port() -> int:
    """A port of 127.0.0.1 that refuses connections until this process ends: it is taken, and nobody listens."""
    taken = _taken(0)
    assert taken is not None
    _held.append(taken)
    return int(taken.getsockname()[1])


def _ports() -> Iterator[int]:
    """Free ports of blocks that belong to this process: it holds the first port of each, so that others skip it."""
    own: list[range] = []
    for first in range(FIRST, LAST, BLOCK):
        if (taken := _taken(first)) is not None:
            _held.append(taken)
            own.append(range(first + 1, first + BLOCK))
            yield from filter(_is_free, own[-1])
    while own:
        yield from filter(_is_free, itertools.chain(*own))
    raise AssertionError(f"no block of {BLOCK} ports from {FIRST} to {LAST} is free")


def _is_free(port: int) -> bool:
    taken = _taken(port)
    if taken is not None:
        taken.close()
    return taken is not None


def _taken(port: int) -> socket.socket | None:
    """A socket that is bound to a port, so that nobody else can be; None where somebody is."""
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", port))
    except OSError:
        one.close()
        return None
    return one


_asking = threading.Lock()
_held: list[socket.socket] = []
_free = _ports()
