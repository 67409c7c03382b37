"""Cache policy: what HTTP caches may do with a response, and the tags by which they and Apollo's router purge it.

A tag names a tree (`location/US`), or a hierarchy (`location`) where a response depends on the list of its roots. They
are the trees and hierarchies whose versions prove the response in `response_cache.py`: as long as nothing is written to
them, the response is current. A response that nothing proves is in no shared cache.

Sources: RFC 9111 and RFC 5861 for Cache-Control; `Cache-Tag` is Cloudflare's header, with tags between commas,
`Surrogate-Key` Fastly's, with tags between spaces. The router reads `extensions.apolloCacheTags`, or for `_entities`
`extensions.apolloEntityCacheTags`, with a list of tags for each entity.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from graphql import FieldNode, OperationDefinitionNode, VariableNode

from graph.errors import Header
from graph.execution.response import OperationResponse
from graph.execution.response_cache import etag_of
from resolvers.access.callers import Caller
from store.model.keys import path_of

MAX_TAGS = 500
MAX_TAG_BYTES = 4_000  # of all tags of a response, in each of the two headers; Cloudflare and Fastly take 16 KB

FIELD_TAGS, ENTITY_TAGS = "apolloCacheTags", "apolloEntityCacheTags"
TAGS = {FIELD_TAGS, ENTITY_TAGS}
UNQUOTED = "!'()*"  # by encodeURIComponent, beside letters, digits and `_.-~`


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
