"""Callers: the authenticated senders of requests with their grants, those of API keys, and what a mutation may change.

Mutations are checked by the caller's grants and paths alone, before any node is read. A hidden path is NOT_FOUND, with
the same message as a path without a node; a path that may only be read is FORBIDDEN.
"""

from dataclasses import dataclass

from resolvers.access.grants import Grants
from store.api_keys import PREFIX, ApiKey, find_key, parse_key
from store.cache import ExpiringCache
from store.concurrency import within
from store.engine import ReadUsage, Store
from store.errors import Forbidden, Unavailable, shorten
from store.model.keys import Path
from store.model.paths import format_path
from store.writing.edit import not_found

CACHE_SECONDS = 10.0  # for so long a revoked key is still accepted on DynamoDB by a server that has cached it
MAX_CACHED_KEYS = 10_000
KEY_BYTES = 2_000  # memory of each
LOOKUP_SECONDS = 5.0


@dataclass(frozen=True)
class Caller:
    """A sender of requests, identified by `id`.

    `name` is stored as `changedBy`. `reads` is what it may read and `writes` what it may write, None for everything.
    """

    id: str = ""
    name: str | None = None
    reads: Grants | None = None
    writes: Grants | None = None


class InvalidCredential(Exception):
    """A credential that authenticates nobody; the message is the reason, for the log alone, without any secret."""


ANYONE = Caller()
"""An anonymous caller, where no credential is required."""


class ApiKeyAuthenticator:
    """Finds the caller of an API key.

    Results, unknown ids included, are cached for `cache_seconds`, and on SQLite until the next write.
    """

    def __init__(self, store: Store, *, cache_seconds: float = CACHE_SECONDS) -> None:
        self._store = store
        self._found: ExpiringCache[str, tuple[object, list[tuple[ApiKey, Caller]]]] = ExpiringCache(
            "api_keys", MAX_CACHED_KEYS, cache_seconds, entry_bytes=KEY_BYTES
        )
        self.reads = ReadUsage()
        """The read consumption of all lookups."""

    async def caller(self, text: str) -> Caller:
        """The caller of a key, with its grants. Raises InvalidCredential and Unavailable."""
        if (parts := parse_key(text)) is None:
            raise InvalidCredential("The API key is malformed.")
        key_id, secret = parts
        store_version = self._store.version()
        read_at, found = self._found.get(key_id) or (None, None)  # an empty list for an unknown id
        if found is None or read_at != store_version:
            try:
                key = await within(LOOKUP_SECONDS, find_key(self._store, key_id, self.reads))
            except TimeoutError:
                raise Unavailable(f"An API key could not be looked up within {LOOKUP_SECONDS:g} seconds.") from None
            found = []
            if key is not None:
                grants = Grants.parse(key.grants)
                found.append((key, Caller(f"key:{key.id}", key.name or key.id, grants, grants)))
            self._found.put(key_id, (store_version, found))
        for key, caller in found:
            if fault := key.fault(secret, self._store.now()):
                raise InvalidCredential(f"The API key {key_id} {fault}.")
            return caller
        raise InvalidCredential(f"There is no API key {key_id}.")


def is_key(text: str) -> bool:
    """Whether a credential is an API key, by its prefix."""
    return text.startswith(PREFIX)


def check_visible(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound for a hidden path."""
    if caller.reads is not None and not caller.reads.may_read(hierarchy, path):
        raise not_found(path)


def check_writable(caller: Caller, hierarchy: str, path: Path, action: str) -> None:
    """Raise Forbidden unless the caller may write the subtree at a path; the empty path is the whole hierarchy.

    `action` is what it may not do, with `{}` for the path.
    """
    writes = caller.writes
    if writes is not None and not writes.may_write(hierarchy, path):
        refused = action.format(shorten(format_path(path)))
        raise Forbidden(f"You may not {refused}; that takes the grant {_grant('write', hierarchy, path)}.")


def check_change(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise NotFound or Forbidden unless the caller may change the node at a path."""
    check_visible(caller, hierarchy, path)
    check_writable(caller, hierarchy, path, "change {}")


def check_reorder(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise Forbidden unless the caller may read all siblings of a node: its position discloses each of them."""
    parent = path[:-1]
    if caller.reads is not None and not caller.reads.may_read(hierarchy, parent):
        raise Forbidden(
            "You may not reorder a node among hidden siblings; that takes the grant "
            f"{_grant('read', hierarchy, parent)}."
        )


def check_put(caller: Caller, hierarchy: str, path: Path) -> None:
    """Raise Forbidden unless the caller may write what is put at a path."""
    check_writable(caller, hierarchy, path, "put a node at {}")


def check_put_child(caller: Caller, hierarchy: str, parent: Path) -> None:
    """Raise Forbidden unless the caller may write a child of the node at a path, or a root, whichever key that has."""
    if caller.writes is not None and not caller.writes.may_write_child(hierarchy, parent):
        check_writable(caller, hierarchy, parent, "put a node below {}" if parent else "make a root")


def check_writes(caller: Caller, hierarchy: str) -> None:
    """Raise Forbidden unless the caller may write some node of a hierarchy, whichever that is."""
    if caller.writes is not None and not caller.writes.may_write_some(hierarchy):
        check_writable(caller, hierarchy, (), "change nodes")


def _grant(verb: str, hierarchy: str, path: Path) -> str:
    return shorten(f"{verb}:{hierarchy}/{format_path(path)}" if path else f"{verb}:{hierarchy}")
