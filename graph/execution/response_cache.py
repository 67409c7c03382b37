"""Response cache: JSON responses, sent again while the data that they were read from is known to be unchanged.

A response has the validator of all data (`resolvers/session/cache.py`): the token of the whole store on SQLite, on
DynamoDB those of all trees and hierarchies that it was read from, in one strong read.

HTTP caches get a policy, and tags by which they and Apollo's router purge the response. A tag names a tree
(`location/US`), or a hierarchy (`location`) where a response depends on the list of its roots: those of the validator.
A response without a validator is in no shared cache.

Sources: RFC 9111 and RFC 5861 for Cache-Control; `Cache-Tag` is Cloudflare's header, with tags between commas,
`Surrogate-Key` Fastly's, with tags between spaces. The router reads `extensions.apolloCacheTags`, or for `_entities`
`extensions.apolloEntityCacheTags`, with a list of tags for each entity.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from graphql import FieldNode, OperationDefinitionNode, VariableNode

from graph.errors import BAD_USER_INPUT
from graph.execution.response import OperationResponse
from resolvers.access.grants import Caller, Grants
from resolvers.session.cache import Tokens
from resolvers.session.read_state import ReadState
from store.bounded_cache import BoundedCache
from store.errors import WrongLevel
from store.model.keys import path_of

ENTRY_BYTES = 1_000  # of memory for an entry besides its body
CACHED_ERRORS = frozenset((BAD_USER_INPUT, WrongLevel.code))
"""The codes of errors that a request meets again as long as the data is the same."""
PARTITION_BYTES = 200
"""Memory of each partition with its token."""


@dataclass(frozen=True)
class Entry:
    """A response as JSON, the validator of all that it was read from, the trees and hierarchies that it depends on, and
    the codes of its errors. Where it `is_current`, no version that was read for an earlier request proves it.
    """

    body: bytes
    tokens: Tokens
    etag: str = field(default="")
    partitions: frozenset[str] = frozenset()
    codes: Sequence[str] = ()
    is_current: bool = False


class ResponseCache:
    """The most recently used responses, up to `max_bytes`; 0 disables the cache."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: BoundedCache[Hashable, Entry] = BoundedCache("responses", max_bytes, weigh=_size)

    def __bool__(self) -> bool:
        return self._max_bytes > 0

    def at_once(self, key: Hashable, state: ReadState) -> Entry | None:
        """The entry if it is known to be current without any read."""
        entry = self._found(key, state)
        return None if entry is None or not state.hold(entry.tokens) else entry

    async def get(self, key: Hashable, state: ReadState) -> Entry | None:
        """The entry if it is current; on DynamoDB this is one read of its tree versions."""
        entry = self._found(key, state)
        if entry is None or await state.confirm(entry.tokens):
            return entry
        if self._entries.get(key) is entry:  # otherwise another request replaced it meanwhile
            self._entries.drop(key)
        return None

    def _found(self, key: Hashable, state: ReadState) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None and entry.is_current:
            state.accepts_stale = False
        return entry

    def put(
        self, key: Hashable, body: bytes, state: ReadState, codes: Sequence[str] = (), *, is_current: bool = False
    ) -> None:
        """Cache a response that was made of what `state` has read, if that can be validated. `codes` are those of its
        errors, each of which the request alone has caused.
        """
        if len(body) + ENTRY_BYTES > self._max_bytes or not state.is_cacheable:
            return
        if (tokens := state.tokens()) is not None:
            self._entries.put(key, Entry(body, tokens, etag_of(body), state.tagged, codes, is_current))


def _size(key: Hashable, entry: Entry) -> int:
    return len(entry.body) + ENTRY_BYTES + PARTITION_BYTES * len(entry.partitions)


def etag_of(body: bytes, grants: Grants | None = None) -> str:
    """The entity tag of a response; it differs for callers who may see other nodes."""
    return '"' + blake2b(body, digest_size=16, key=visibility_key(grants)).hexdigest() + '"'


def visibility_key(grants: Grants | None) -> bytes:
    """Bytes that differ for callers who may see other nodes; empty for all nodes."""
    return b"" if grants is None else grants.digest


MAX_TAGS = 500
MAX_TAG_BYTES = 4_000  # of all tags of a response, in each of the two headers; Cloudflare and Fastly take 16 KB

FIELD_TAGS, ENTITY_TAGS = "apolloCacheTags", "apolloEntityCacheTags"
TAGS = {FIELD_TAGS, ENTITY_TAGS}
UNQUOTED = "!'()*"  # by encodeURIComponent, beside letters, digits and `_.-~`

Header = tuple[bytes, bytes]


@dataclass(frozen=True)
class CachePolicy:
    """The policy of a server. Shared caches may use a response for `max_age` seconds, and for as many more while they
    fetch a new one; 0 for no shared caches.
    """

    max_age: int = 0

    @property
    def is_public(self) -> bool:
        return self.max_age > 0

    def headers(self, response: OperationResponse, caller: Caller, *, anonymous: bool) -> list[Header]:
        """The headers of the response to a GET, the entity tag first; none for one with errors or reported reads.

        It is for shared caches only if the request had no credential (`anonymous`) and its caller may read everything.
        """
        if response.json is None or response.body or response.codes:
            return []
        etag = (b"etag", (response.etag or etag_of(response.json, caller.reads)).encode())
        if not (self.is_public and anonymous and caller.reads is None and (tags := tags_of(response.partitions))):
            return [etag, (b"cache-control", b"private, no-cache")]
        cache_tag, surrogate_key = ",".join(tags).encode(), " ".join(tags).encode()
        return [etag, self._public, (b"cache-tag", cache_tag), (b"surrogate-key", surrogate_key)]

    def gateway_headers(self, response: OperationResponse) -> list[Header]:
        """The headers of the response to a POST of a gateway that requested tags; none if it has no tags."""
        return [self._public] if TAGS & response.body.get("extensions", {}).keys() else []

    @cached_property
    def _public(self) -> Header:
        return b"cache-control", f"public, max-age={self.max_age}, stale-while-revalidate={self.max_age}".encode()


def tags_of(partitions: Collection[str]) -> list[str]:
    """The tags of trees (`location#US`) and hierarchies (`location`), sorted; none if they are too many or too long.

    The root's key is percent-encoded as `encodeURIComponent` does it, so a tag has neither comma nor space.
    """
    if not partitions or len(partitions) > MAX_TAGS:
        return []
    tags = sorted(map(_tag, partitions))
    return tags if sum(map(len, tags)) + len(tags) <= MAX_TAG_BYTES else []


def _tag(partition: str) -> str:
    hierarchy, is_tree, _ = partition.partition("#")
    return f"{hierarchy}/{quote(path_of(partition, '#')[0], safe=UNQUOTED)}" if is_tree else hierarchy


def apollo_cache_tags(
    partitions: Collection[str], operation: OperationDefinitionNode, variables: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The extensions that Apollo's router indexes a response by; empty where it has no tags.

    The router sends `_entities` as the only field, with a variable. Each entity gets the tags of the whole response.
    """
    tags = tags_of(partitions)
    if not tags:
        return {}
    fields = operation.selection_set.selections
    if not any(not isinstance(field, FieldNode) or field.name.value == "_entities" for field in fields):
        return {FIELD_TAGS: tags}
    count = _representations(fields[0], variables or {}) if len(fields) == 1 else 0
    return {ENTITY_TAGS: [tags] * count} if count else {}


def _representations(field: object, variables: Mapping[str, Any]) -> int:
    """The number of representations in the variable of a field `_entities`; 0 where it has none."""
    arguments = (isinstance(field, FieldNode) and field.arguments) or ()
    given = [variables.get(one.value.name.value) for one in arguments if isinstance(one.value, VariableNode)]
    return len(given[0]) if len(given) == 1 and isinstance(given[0], list) else 0
