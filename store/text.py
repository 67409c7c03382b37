"""Formatting for messages: quantities, shortened text, addresses, times."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches

MAX_SUGGESTED_CHARACTERS = 64  # of a name for which a similar one is looked for


def quantity(number: int, thing: str, things: str = "") -> str:
    """`1 node`, `2,500 nodes`; `things` where that is not the singular with an s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def shorten(text: str, limit: int = 60) -> str:
    """`text` for a message: at most `limit` characters, those that cannot be printed replaced."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:limit])
    return clean + ("…" if len(text) > limit else "")


def shown(value: object) -> str:
    """A value of any type and depth for a message."""
    try:
        return shorten(repr(value))
    except RecursionError:
        return "a value that is nested too deeply"


def shown_address(address: str) -> str:
    """A web address for a message, without what may be secret in it: credentials, query and fragment."""
    start, divider, rest = re.split("[?#]", address, maxsplit=1)[0].partition("//")
    host, slash, path = rest.partition("/")
    return shorten(f"{start}{divider}{host.rpartition('@')[2]}{slash}{path}", 200)


def suggestion(name: str, names: Iterable[str]) -> str:
    """` Did you mean COUNTRY?`, the most similar of the names in any case, or nothing."""
    by_lower = {one.lower(): one for one in names}
    near = get_close_matches(name[:MAX_SUGGESTED_CHARACTERS].lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]}?" if near else ""


def rfc3339(seconds: float) -> str:
    """A time as text in UTC (RFC 3339, milliseconds); `seconds` since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
