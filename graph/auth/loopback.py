"""Loopback addresses: hosts and sockets that only this machine can reach."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

MAX_HOST_BYTES = 300  # more than a host and its port have
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


@lru_cache(64)
def is_loopback(host: str) -> bool:
    """Whether a host, as in a Host header with or without a port, is a loopback address or localhost."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1] or match[2]
    if name.lower() in ("localhost", "localhost."):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None  # on a socket for IPv4 and IPv6
    return (mapped or address).is_loopback and (match[1] is not None) == isinstance(address, IPv6Address)


def has_loopback_host(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the Host header is a loopback address or localhost."""
    return is_loopback(headers.get(b"host", b"")[:MAX_HOST_BYTES].decode("latin-1"))


def listens_on_loopback(scope: Scope) -> bool:
    """Whether the connection came in at a loopback address; a server without an address is behind a Unix socket."""
    if (server := scope.get("server")) is None:
        return False
    return is_loopback(f"[{server[0]}]" if ":" in server[0] else server[0])
