"""Compression of HTTP bodies: requests in gzip or deflate, decoded within a limit, and responses in gzip.

Sources: RFC 9110, sections 8.4.1 (codings), 12.5.3 (Accept-Encoding) and 15.5.16 (415); RFC 1950 to 1952 (formats).

Starlette's GZipMiddleware is not used: it compresses for `gzip;q=0`, leaves strong entity tags as they are, and
compresses a cached response anew for each request. Event streams are not compressed: each event would be flushed, which
saves little, and a compressor takes 256 KB of memory for each open stream.
"""

import asyncio
import zlib
from functools import lru_cache

from starlette.types import Receive

from graph.errors import Header, RequestRejected
from graph.server.parsing import parse_media_type, quality_of
from graph.server.sending import ClientDisconnected
from store.cache import BoundedCache

GZIP, DEFLATE = "gzip", "deflate"
CODINGS = {GZIP: GZIP, "x-gzip": GZIP, DEFLATE: DEFLATE}
UNSUPPORTED = f"Unsupported Content-Encoding; send {GZIP} or {DEFLATE}, or the body as it is without that header."
GZIPPED: Header = (b"content-encoding", GZIP.encode())
GZIP_FORMAT, ZLIB_FORMAT, RAW_FORMAT = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS  # zlib's `wbits`
MAX_HEADER_BYTES = 1_000  # of a header with codings, since parsing 64 KB takes 30 ms; the rest is ignored

# Measured with lists of nodes, whose gzip is a seventh of their JSON: level 3 takes 0.4 ms for 76 KB. Level 1 takes a
# tenth less and makes 9 % more bytes, level 6 takes 1.4 ms and makes 13 % less.
LEVEL = 3
MIN_BYTES = 4_000  # of a response that is compressed; a smaller one takes three packets at most
THREAD_BYTES = 100_000  # from here on a thread compresses, so that the event loop is not blocked for longer than 0.6 ms
MAX_THREADS = 4  # compressing at a time; above that responses are sent as they are, so that none wait in memory


async def read_body(receive: Receive, limit: int, content_encoding: bytes) -> bytes:
    """The decoded bytes of a body. Raises RequestRejected, as soon as it is above the limit, and ClientDisconnected.

    `content_encoding` lists at most one coding, beside `identity`.
    """
    coding = coding_of(content_encoding) if content_encoding else None
    stream = zlib.decompressobj(GZIP_FORMAT) if coding == GZIP else None
    body, received, more = b"", 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        piece: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        received += len(piece)
        if stream is None and coding and piece:
            # RFC 9110 means zlib's format, which begins with 8 in these bits; some clients send deflate without it.
            stream = zlib.decompressobj(ZLIB_FORMAT if piece[0] & 15 == 8 else RAW_FORMAT)
        if stream is not None:
            try:
                piece = stream.decompress(piece, limit + 1 - len(body))
            except zlib.error:
                raise RequestRejected(400, f"The body is not {coding}; encode it, or omit the header.") from None
            if stream.unused_data:
                raise RequestRejected(400, f"The body goes on after the end of its {coding}; send one stream alone.")
        body += piece
        # What is received is limited as well, since a stream may go on for ever without decoded bytes.
        if len(body) > limit or received > max_received(limit):
            raise too_large(limit)
    if coding and (stream is None or not stream.eof):
        raise RequestRejected(400, f"The body ends within its {coding}; send the whole stream.")
    return body


def coding_of(content_encoding: bytes) -> str | None:
    """The one coding of a body, None for none. Raises RequestRejected."""
    listed = [name.strip().lower() for name in content_encoding[:MAX_HEADER_BYTES].decode("latin-1").split(",")]
    codings = [name for name in listed if name not in ("", "identity")]
    coding = CODINGS.get(codings[0]) if len(codings) == 1 else None
    if codings and coding is None:
        raise RequestRejected(415, UNSUPPORTED, (b"accept-encoding", f"{GZIP}, {DEFLATE}".encode()))
    return coding


def max_received(limit: int) -> int:
    """The maximum bytes of a compressed body that is decoded to `limit` bytes."""
    return 2 * limit + 1_000


def too_large(limit: int, *headers: Header) -> RequestRejected:
    return RequestRejected(413, f"The body is larger than {limit} bytes; split it into several requests.", *headers)


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether Accept-Encoding allows gzip, and does not prefer the bytes as they are."""
    return accept_encoding != b"" and _accepts_gzip(accept_encoding[:MAX_HEADER_BYTES])


@lru_cache(256)
def _accepts_gzip(accept_encoding: bytes) -> bool:
    codings = map(parse_media_type, accept_encoding.decode("latin-1").split(","))
    qualities = {name.removeprefix("x-"): quality_of(parameters) for name, parameters in codings}
    others = qualities.get("*", 0.0)
    quality = qualities.get(GZIP, others)
    return quality > 0 and quality >= qualities.get("identity", others)


class Compressor:
    """Compresses responses; of cached ones it keeps the compressed form, up to `max_bytes` with 200 for each."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: BoundedCache[str, bytes] = BoundedCache("compressed", max_bytes, weigh=lambda _, it: len(it) + 200)
        self._threads = 0

    async def compressed(self, content: bytes, etag: str) -> bytes | None:
        """The response in gzip, None while too many are compressed; `etag` is that of a cached one, else empty."""
        packed = self._kept.get(etag) if etag else None
        if packed is None:
            if len(content) < THREAD_BYTES:
                packed = zlib.compress(content, LEVEL, GZIP_FORMAT)
            elif self._threads < MAX_THREADS:
                self._threads += 1
                try:
                    packed = await asyncio.to_thread(zlib.compress, content, LEVEL, GZIP_FORMAT)
                finally:
                    self._threads -= 1
            if etag and packed is not None:
                self._kept.put(etag, packed)
        return packed
