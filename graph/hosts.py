"""Hosts: loopback addresses, which only this machine can reach, and the origins that CLADE_CORS_ORIGINS lists."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from store.errors import BadInput, shown_address

MAX_HOST_BYTES = 300  # more than a host and its port have; a longer one is no host
MAX_ORIGIN_BYTES = 300  # of one that a message names; no host has more
ANY = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}
WITHOUT_PAGES = frozenset({"file", "ftp", "ws", "wss"})  # no page has them in its origin; that of a file is "null"
MAX_PORT = 65_535

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_URI_HOST = re.compile(rb"(?:\[[0-9a-fA-F:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2})+)(?::[0-9]*)?")
_LABEL = r"[a-z0-9_-]{1,63}"
_ORIGIN = re.compile(
    rf"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[0-9a-f:.]+\]|{_LABEL}(?:\.{_LABEL})*\.?)(?::(?P<port>[0-9]{{1,5}}))?/?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # as the last label of a host: browsers read the host as an IPv4 address


def is_host(value: bytes) -> bool:
    """Whether a Host header is valid for http: RFC 9112, 3.2, with a host that is not empty (RFC 9110, 4.2.1)."""
    return _URI_HOST.fullmatch(value) is not None


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


def listens_on_loopback(server: str) -> bool:
    """Whether this address of a connection is a loopback address."""
    return is_loopback(f"[{server}]" if ":" in server else server)


def cors_origins(words: str) -> list[str]:
    """The origins of a list with commas or blanks, as browsers serialize them, each once; `*` alone stands for any.

    Raises BadInput for a word that equals no origin: it would be compared with those of browsers and never match.
    """
    found = list(dict.fromkeys(map(_origin, words.replace(",", " ").split())))
    if ANY in found and len(found) > 1:
        raise BadInput(f'CLADE_CORS_ORIGINS has "{ANY}" for any origin beside others; leave out "{ANY}" or the others.')
    return found


def nameable_origin(header: bytes) -> str | None:
    """The origin in an Origin header, if CLADE_CORS_ORIGINS can name it; None for `null`, and for what is no origin."""
    try:
        origin = _origin(header[: MAX_ORIGIN_BYTES + 1].decode("latin-1"))
    except BadInput:
        return None
    return origin if origin != ANY and len(header) <= MAX_ORIGIN_BYTES else None


def _origin(word: str) -> str:
    """One origin in lower case, without the default port and the slash behind it. Raises BadInput."""
    if word == ANY:
        return ANY
    match = _ORIGIN.fullmatch(word.lower()) if word.isascii() else None
    try:
        if match is None or match["scheme"] in WITHOUT_PAGES:
            raise ValueError(word)
        scheme, host, usual = match["scheme"], _host(match["host"]), DEFAULT_PORTS.get(match["scheme"])
        port = usual if match["port"] is None else int(match["port"])
        if port is not None and not 0 < port <= MAX_PORT:
            raise ValueError(word)
    except ValueError:
        raise BadInput(f'CLADE_CORS_ORIGINS has "{shown_address(word)}", {_reason(word)}.') from None
    return f"{scheme}://{host}" if port == usual else f"{scheme}://{host}:{port}"


def _host(host: str) -> str:
    """A host in lower case with its address normalised. Raises ValueError."""
    if host.startswith("["):
        address = IPv6Address(host[1:-1])
        if address.ipv4_mapped is None:
            return f"[{address.compressed}]"
        low = int(address.ipv4_mapped)  # which Python 3.13 would write with dots
        return f"[::ffff:{low >> 16:x}:{low & 0xFFFF:x}]"
    if _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        return str(IPv4Address(host))
    return host


def _reason(word: str) -> str:
    """What is wrong with a word that is no origin, and the way out."""
    if word == "null":
        return "the origin of files and sandboxed frames of any site; serve the page at an address of its own"
    if ANY in word:
        return f'which is a pattern; name each origin, or "{ANY}" alone for any'
    if not word.isascii():
        return "which is not ASCII; write its host as browsers send it, with xn--"
    if "://" not in word and _ORIGIN.fullmatch(f"https://{word.lower()}"):
        return f"which has no scheme; write http://{word} or https://{word}"
    if "@" in word:
        return "which has credentials; write scheme, host and port only"
    return "which is not an origin; write scheme, host and port only, such as https://shop.example"
