"""Response of one operation: the JSON that clients receive, the cache of it, and what HTTP caches may do with it.

A cached response is served again while the versions that validate it are current. They are those of the page cache
(`resolvers/session/cache.py`): the version of the whole store on SQLite, on DynamoDB the versions of all trees and
hierarchies that the response was read from, in one strong read. The key of an entry holds what its caller may read, so
callers with the same grants share it, whatever else they are.

HTTP caches and Apollo's router purge a response by tags. A tag names a tree (`location/US`), or a hierarchy
(`location`) where a response depends on the list of its roots. They are the trees and hierarchies whose versions
validate the response: as long as nothing is written to them, it is current. A response without such versions is in no
shared cache.

Sources: RFC 9111 and RFC 5861 for Cache-Control; `Cache-Tag` is Cloudflare's header, with tags between commas,
`Surrogate-Key` Fastly's, with tags between spaces. The router reads `extensions.apolloCacheTags`, or for `_entities`
`extensions.apolloEntityCacheTags`, with a list of tags for each entity.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from graphql import FieldNode, GraphQLError, OperationDefinitionNode, VariableNode
from orjson import dumps

from graph.errors import (
    TIMEOUT,
    UNCERTAIN,
    UNCERTAIN_HINT,
    Header,
    format_errors,
)
from resolvers.access.callers import Caller
from resolvers.access.grants import Grants
from resolvers.session.reads import ReadState
from store.cache import BoundedCache
from store.errors import BudgetExceeded
from store.model.keys import path_of

ENTRY_BYTES = 1_000  # of memory for an entry besides its body
PARTITION_BYTES = 200  # of memory for each partition, with its proof

MAX_TAGS = 500
MAX_TAG_BYTES = 4_000  # of all tags of a response, in each of the two headers; Cloudflare and Fastly take 16 KB

FIELD_TAGS, ENTITY_TAGS = "apolloCacheTags", "apolloEntityCacheTags"
TAGS = {FIELD_TAGS, ENTITY_TAGS}
UNQUOTED = "!'()*"  # by encodeURIComponent, beside letters, digits and `_.-~`


@dataclass(slots=True)
class OperationResponse:
    """The response of an operation, or of a request that was rejected before its operation ran."""

    body: dict[str, Any]
    """GraphQL's response map without `data`: `errors` if there are any, and requested `extensions`; of an operation
    that was stopped with `data`.
    """
    executed: bool
    """Whether the operation was executed; false for a request error, whose response has no `data`."""
    json: bytes | None = None
    """The response map of an executed operation without `body`, as JSON."""
    etag: str = ""
    """The entity tag of `json`, if it is known already."""
    partitions: Collection[str] = ()
    """The trees and hierarchies whose versions validate `json`; empty if none do."""

    def content(self) -> bytes:
        """The whole response as JSON."""
        if self.json is None:
            return dumps(self.body)
        if not self.body:
            return self.json
        others = {**self.body}
        errors = others.pop("errors", None)
        start = b"{" if errors is None else dumps({"errors": errors})[:-1] + b","
        return start + self.json[1:-1] + (b"," + dumps(others)[1:] if others else b"}")


def executed(
    json: bytes, errors: Sequence[Any], extensions: Mapping[str, Any], partitions: Collection[str] = (), etag: str = ""
) -> OperationResponse:
    """The response of an executed operation: its `data` in a response map as JSON, and all else that it has."""
    body = {"errors": errors, **extensions} if errors else {**extensions}
    return OperationResponse(body, True, json, etag, partitions)


def rejected(errors: Iterable[GraphQLError]) -> OperationResponse:
    """The response of a request whose operation was not executed."""
    return OperationResponse({"errors": format_errors(errors)}, executed=False)


def failed(message: str, code: str, *, may_be_made: bool = False, **extensions: Any) -> OperationResponse:
    """The response of an operation that was stopped; `may_be_made` is for a mutation that the store may have made."""
    if may_be_made:
        message = f"{message} {UNCERTAIN_HINT}"
    error = GraphQLError(message, extensions={"code": code, **(UNCERTAIN if may_be_made else {})})
    return OperationResponse({"errors": format_errors([error]), "data": None, **extensions}, executed=True)


def timed_out(seconds: float, *, may_be_made: bool) -> OperationResponse:
    message = f"The request took longer than {seconds:g} seconds and was stopped"
    if may_be_made:
        return failed(f"{message}.", TIMEOUT, may_be_made=True)
    return failed(f"{message}; request less, or raise CLADE_REQUEST_SECONDS.", TIMEOUT)


def too_large(error: BudgetExceeded, extensions: dict[str, Any], *, may_be_made: bool) -> OperationResponse:
    """The response if the budget of fields, bytes or read units is exceeded."""
    return failed(str(error), error.code, may_be_made=may_be_made, **extensions)


@dataclass(frozen=True)
class Entry:
    """A response as JSON, and its errors, the validator of all that it was read from, and the trees and hierarchies
    that it depends on, if their versions show that it is current.
    """

    body: bytes
    errors: Sequence[Any]
    validator: object
    etag: str
    partitions: frozenset[str]


class ResponseCache:
    """The most recently used responses, up to `max_bytes`; 0 disables the cache.

    `store_version` returns the version of the store, None where it has none.
    """

    def __init__(self, max_bytes: int, store_version: Callable[[], object] = lambda: None) -> None:
        self._entries: BoundedCache[Hashable, Entry] = BoundedCache("responses", max_bytes, weigh=_weight)
        self._store_version = store_version

    def __bool__(self) -> bool:
        return self._entries.max_weight > 0

    def at_store_version(self, key: Hashable) -> Entry | None:
        """The entry if the version of the whole store validates it."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.validator == self._store_version() else None

    async def get(self, key: Hashable, state: ReadState) -> Entry | None:
        """The entry if it is current; on DynamoDB this is one read of its tree versions."""
        entry = self._entries.get(key)
        if entry is None or await state.validate(entry.partitions, entry.validator):
            return entry
        if self._entries.get(key) is entry:  # otherwise another request replaced it meanwhile
            self._entries.drop(key)
        return None

    def put(self, key: Hashable, body: bytes, errors: Sequence[Any], state: ReadState) -> None:
        """Cache a response, which was made of what `state` has read, if that has a validator; for callers with grants
        only where no move runs in what was read.
        """
        partitions, grants = state.validating_partitions, state.grants
        validator = state.validators.of(partitions)
        if validator is not None and (grants is None or state.moves is None):
            self._entries.put(key, Entry(body, errors, validator, _etag(body, grants), partitions))


def _weight(key: Hashable, entry: Entry) -> int:
    return len(entry.body) + len(dumps(entry.errors)) + ENTRY_BYTES + PARTITION_BYTES * len(entry.partitions)


def _etag(body: bytes, grants: Grants | None = None) -> str:
    """The entity tag of a response; it differs for callers who may see other nodes.

    It is weak, as servers with different versions of zlib compress to other bytes, and proxies may compress as well.
    """
    return 'W/"' + blake2b(body, digest_size=16, key=b"" if grants is None else grants.digest).hexdigest() + '"'


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
        if response.json is None or response.body:
            return []
        etag = (b"etag", (response.etag or _etag(response.json, caller.reads)).encode())
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
    if all(isinstance(field, FieldNode) and field.name.value != "_entities" for field in fields):
        return {FIELD_TAGS: tags}
    only = fields[0] if len(fields) == 1 else None
    arguments = (isinstance(only, FieldNode) and only.arguments) or ()
    names = [argument.value.name.value for argument in arguments if isinstance(argument.value, VariableNode)]
    entities = (variables or {}).get(names[0]) if len(names) == 1 else None
    return {ENTITY_TAGS: [tags] * len(entities)} if isinstance(entities, list) and entities else {}
