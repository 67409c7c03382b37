"""Records and items: one node as stored, the changes of a commit with their conditions, and the records of a subtree
after a move of its top to another key.

An item is a mapping in canonical form, limited in size, with the attributes of its keys (`pk`, `sk`; of a node also
`parent`, `rank` and `tier`), `expires` (time to live, in seconds since 1970) unless it is permanent, and its content.
"""

import hashlib
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from msgspec import Struct
from msgspec import field as struct_field
from msgspec.structs import force_setattr, replace

from store.errors import BadInput, BadPath, BadValue, Rule, shorten, shown
from store.model.decoding import damaged, decoded
from store.model.hierarchy import Hierarchy
from store.model.keys import (
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    Key,
    Path,
    decode_segment,
    depth_of,
    first_rank,
    hierarchy_of,
    last_segment,
    level_partition,
    node_key,
    parent_partition,
    path_of,
)
from store.model.names import names_of
from store.model.paths import format_path, path_text
from store.model.ranks import is_manual
from store.model.values import INT64_BOUND, Value

Item = dict[str, Value]
# The values that attributes of the item at a change's key must have before the commit; None: the attribute is absent.
# An empty mapping requires nothing.
Condition = Mapping[str, Value]
MAX_ITEM_BYTES = 400 * 1024  # DynamoDB's limit for one item
MAX_BATCH_BYTES = 3_500_000  # DynamoDB's transactions end at 4 MB
MAX_CONTENT_BYTES = MAX_ITEM_BYTES - 16 * 1024  # of a node's own; its item also holds keys and counts
MAX_ID_CHARACTERS = 128
MAX_REVISION = 10**10 - 1  # the greatest that fits into the key of a former revision
ABSENT: Condition = {"pk": None}
UNCONDITIONAL: Condition = {}
Counts = dict[str, int]
_DERIVED = ("parent", "tier", "below", "changed_by")  # attributes of nodes' items that some have not


class Put(Struct, frozen=True):
    """Write an item, in the place of the one at its key."""

    item: Item
    when: Condition = UNCONDITIONAL

    @property
    def key(self) -> Key:
        return key_of(self.item)


class Delete(Struct, frozen=True):
    """Remove the item at a key, if there is one."""

    key: Key
    when: Condition = UNCONDITIONAL


class Check(Struct, frozen=True):
    """Require a condition of the item at a key, and change nothing."""

    key: Key
    when: Condition


Change = Put | Delete | Check


def key_of(item: Item) -> Key:
    """The primary key of an item."""
    return Key(cast(str, item["pk"]), cast(str, item["sk"]))


def condition_holds(condition: Condition, item: Item | None) -> bool:
    """Whether the item at the key of a change, None: no item, fulfils its condition."""
    found = item or {}
    return all(found.get(name) == value for name, value in condition.items())


def canonical_item(item: Item) -> Item:
    """The item as both stores store and return it; raises BadInput where DynamoDB cannot hold a value."""
    found = {**item}
    for name, value in cast(dict[str, Any], item).items():
        kind = type(value)  # comparing it is faster than a call, and every value that is written passes here
        if kind is str or (kind is int and -INT64_BOUND <= value < INT64_BOUND) or (kind is dict and not value):
            continue
        if value is None:
            del found[name]
        else:
            found[name] = canonical_value(value)
    return found


def canonical_value(value: Any) -> Any:
    """The value as both stores store and return it; raises BadInput where DynamoDB cannot hold it."""
    kind = type(value)  # see above; matching classes takes four times as long
    if kind is str or kind is bool or value is None:
        return value
    if kind is float and 1e-130 <= abs(value) < 1e126 and not value.is_integer():  # of most
        return value
    if kind is int or kind is float:
        return _number(value)
    if kind is dict:
        return {name: canonical_value(one) for name, one in value.items()}
    if kind is list:
        return [one if type(one) is str else canonical_value(one) for one in value]
    raise BadInput(f"{shown(value)} cannot be stored; use text, numbers, booleans, lists and objects.")


def _number(number: int | float) -> int | float:
    if isinstance(number, float):
        if not (number == 0 or 1e-130 <= abs(number) < 1e126):  # false of NaN, too
            raise BadInput(f"The number {number} cannot be stored; the range is 1E-130 to 1E+126.")
        return int(number) if number.is_integer() and -INT64_BOUND <= number < INT64_BOUND else number
    if not -INT64_BOUND <= number < INT64_BOUND:
        raise BadInput("An integer of more than 64 bits cannot be stored.")
    return number


def checked_item_size(item: Item) -> int:
    """The size of an item in bytes; raises BadValue past 400 KB."""
    if (size := size_of(item)) > MAX_ITEM_BYTES:
        name = shorten(str(item.get("name", item.get("id", item["sk"]))))
        text = f'"{name}" takes {size} bytes; at most {MAX_ITEM_BYTES} (400 KB) fit into one item.'
        raise BadValue(text, Rule.TOO_LARGE)
    return size


def check_content(node: object, name: str, values: Mapping[str, Value], encoded_bytes: int | None = None) -> None:
    """Raise BadValue for content that leaves no room in the item for keys and counts; `node` is for the message.

    It is measured exactly only where an estimate is near the limit, such as the bytes of the values when encoded.
    """
    estimate = len(repr(values)) if encoded_bytes is None else encoded_bytes
    if len(name) + estimate < MAX_CONTENT_BYTES // 4:
        return
    if (size := size_of({"name": name, **values})) > MAX_CONTENT_BYTES:
        text = f"The names and attributes of {node} take {size} bytes; at most {MAX_CONTENT_BYTES} fit."
        raise BadValue(text, Rule.TOO_LARGE)


def size_of(item: Item) -> int:
    """The bytes that DynamoDB counts for an item: the names and the values of its attributes, in UTF-8.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Value) -> int:
    match value:
        case str():
            return len(value.encode())
        case bool() | None:
            return 1
        case int() | float():
            return min(len(repr(value)) // 2 + 2, 21)  # two digits a byte, sign and exponent
        case list():
            return 3 + sum(1 + _size(one) for one in value)
        case dict():
            return 3 + sum(1 + len(name.encode()) + _size(one) for name, one in value.items())


if TYPE_CHECKING:
    Attributes = dict[str, Value]
else:
    Attributes = dict[str, Any]  # msgspec has no recursive types; the kinds are checked where values are served


class Record(Struct, frozen=True, kw_only=True, dict=True):
    """One node, with the attributes of its item.

    `id` is as clients see it (`location:5074472`), `above` are the levels of its ancestors, the root's first, `kids`
    and `below` the numbers of its children and descendants by level, `rank` is its sort key among its siblings,
    `updated_at` a time in UTC (RFC 3339), `changed_by` the caller who wrote it, if known, and `attributes` those of its
    level and `names`, as stored. The item of a root has no `below`: it is None until `TreeVersion.with_counts` adds it.
    Requests share records, so lists and dictionaries must not be changed. Of two records of one node the one with the
    higher `revision` is newer; a change of counts or rank does not increment it.
    """

    pk: str
    sk: str
    rank: str
    id: str
    level: str
    name: str
    above: list[str]
    kids: Counts
    below: Counts | None = None
    revision: int
    updated_at: str
    # Not an attribute of the item; `of` takes all from there that are not above, as they are.
    attributes: Attributes = struct_field(name="#", default=cast(Attributes, None))
    changed_by: str | None = None

    fragments: ClassVar[dict[int, bytes] | None] = None
    """Serialized parts of this record by the numbers of their writers; None where the record is not cached."""

    @classmethod
    def new(
        cls,
        hierarchy: str,
        path: Path,
        level: str,
        name: str,
        node_id: str,
        at: str,
        attributes: dict[str, Value],
        *,
        above: list[str],
    ) -> "Record":
        """The first revision of a node without children; raises BadPath where its rank is too long for a key.

        `above` are the levels of its ancestors, the root's first: as many as the path has segments before its last.
        """
        key = node_key(hierarchy, path)
        rank = first_rank(level, last_segment(key.pk, key.sk))
        if (size := len(rank.encode())) > MAX_SORT_KEY_BYTES:
            raise BadPath(
                f'"{shorten(path[-1])}" and its level {level} take {size} bytes in a key; '
                f"at most {MAX_SORT_KEY_BYTES} fit.",
                Rule.MAX_LENGTH,
            )
        return cls(
            pk=key.pk, sk=key.sk, rank=rank, id=f"{hierarchy}:{node_id}", level=level, name=name, above=above,
            kids={}, below={}, revision=1, updated_at=at, attributes=attributes,
        )  # fmt: skip

    @classmethod
    def of(cls, item: Item) -> "Record":
        """The record in an item; raises DamagedItem."""
        record = decoded(item, cls)
        own = dict(item)  # emptied, which takes half the time of a comprehension
        del own["pk"], own["sk"], own["rank"], own["id"], own["level"], own["name"]
        del own["above"], own["kids"], own["revision"], own["updated_at"]
        for name in _DERIVED:
            own.pop(name, None)
        force_setattr(record, "attributes", own)
        if record.sk == "#":
            force_setattr(record, "below", None)
        elif record.below is None:
            raise damaged(item, "Object missing required field `below`")
        return record

    def item(self) -> Item:
        """The item of this record, with the keys of the table and of both indexes."""
        item: Item = {
            "pk": self.pk, "sk": self.sk, "parent": self.siblings, "rank": self.rank, "tier": self.tier,
            "id": self.id, "level": self.level, "name": self.name, "above": cast(Value, self.above),
            "kids": cast(Value, self.kids), "revision": self.revision, "updated_at": self.updated_at, **self.attributes,
        }  # fmt: skip
        if not self.is_root:
            item["below"] = cast(Value, self.descendant_counts)
        if self.changed_by is not None:
            item["changed_by"] = self.changed_by
        return item

    @property
    def key(self) -> Key:
        return Key(self.pk, self.sk)

    @cached_property
    def path(self) -> Path:
        return path_of(self.pk, self.sk)

    @property
    def path_text(self) -> str:
        """Its path as clients write it."""
        return path_text(self.pk, self.sk)

    def with_fragments(self) -> Self:
        """This record, to be cached: from now on its serialized fragments are cached with it."""
        self.__dict__.setdefault("fragments", {})
        return self

    @property
    def names(self) -> Mapping[str, str]:
        """Its names in other languages, by canonical language tag; raises BadData where they are damaged."""
        return names_of(self.attributes)

    @property
    def hierarchy(self) -> str:
        return hierarchy_of(self.pk)

    @property
    def depth(self) -> int:
        return depth_of(self.sk)

    @property
    def is_root(self) -> bool:
        return self.sk == "#"

    @property
    def descendant_counts(self) -> Counts:
        """`below`; raises LookupError for a root whose counts were not added."""
        if self.below is None:
            raise LookupError(f"The counts of {self.pk} are in its tree version, which was not read.")
        return self.below

    @property
    def subtree_size(self) -> int:
        """The number of its descendants and itself."""
        return 1 + sum(self.descendant_counts.values())

    @property
    def siblings(self) -> str:
        """The partition key in `by_parent` of the node and its siblings."""
        return parent_partition(self.pk, self.sk)

    @property
    def tier(self) -> str:
        """The partition key in `by_level` of the node."""
        return level_partition(self.pk, self.level, self.depth)


def checked_id(text: object) -> str:
    """An id from outside, without its hierarchy's prefix; raises BadValue for an invalid one."""
    if not isinstance(text, str):
        raise BadValue(f"The id is {shown(text)}, which is not a text; write a text.", Rule.TYPE)
    if not text:
        raise BadValue("The id is empty; give one, or leave it out.", Rule.EMPTY)
    if len(text) > MAX_ID_CHARACTERS:
        size = f"{len(text):,} characters; at most {MAX_ID_CHARACTERS} are allowed"
        raise BadValue(f'The id "{shorten(text)}" has {size}.', Rule.MAX_LENGTH)
    if not text.isprintable() or " " in text or "#" in text or ":" in text:
        wrong = "a blank, a control character, # or :; leave it out"
        raise BadValue(f'The id "{shorten(text)}" has {wrong}.', Rule.CHARACTERS)
    return text


def derived_id(hierarchy: str, path: Path) -> str:
    """The id of a node without one of its own: a hash of its path, so that a second import creates nothing new."""
    digest = hashlib.blake2b(f"{hierarchy}:{format_path(path)}".encode(), digest_size=10).digest()
    return b32encode(digest).decode().lower()


def is_id(hierarchy: Hierarchy, value: object) -> bool:
    """Whether a value is a valid id of the hierarchy, prefix included; the rules of `checked_id`, but faster."""
    if not isinstance(value, str) or not value.startswith(f"{hierarchy.name}:"):
        return False
    bare = value[len(hierarchy.name) + 1 :]
    return 0 < len(bare) <= MAX_ID_CHARACTERS and bare.isprintable() and not any(c in bare for c in " #:")


def is_revision(value: object) -> bool:
    """Whether a value is a valid revision."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_REVISION


def nonzero_counts(value: object) -> Counts | None:
    """Counts without those that are 0, which equal absent ones; None where the value is no mapping of counts."""
    if not isinstance(value, dict) or not all(type(count) is int for count in value.values()):
        return None
    return {name: count for name, count in value.items() if count}


@dataclass(frozen=True)
class SubtreeRewrite:
    """The move of the subtree at `source` to `target`, below ancestors of the levels `above`, the root's first.

    `rank` is the new rank of the top; a manual one is kept where its siblings stay the same.
    """

    source: Key
    target: Key
    above: list[str]
    rank: str

    @classmethod
    def of(cls, top: Record, target: Key, above: list[str]) -> Self:
        keeps = is_manual(top.rank) and parent_partition(*target) == top.siblings
        rank = top.rank if keeps else first_rank(top.level, last_segment(*target))
        return cls(top.key, target, above, rank)

    @property
    def may_not_fit(self) -> bool:
        """Whether nodes could get deeper, or get longer keys, than they have."""
        deeper = depth_of(self.target.sk) > depth_of(self.source.sk)
        return deeper or len(self.target.sk.encode()) > len(self.source.sk.encode())

    def moved(self, record: Record) -> Record:
        """A node of the subtree after the move; raises BadPath where it is too deep, or its key too long."""
        key = record.key.moved(self.source, self.target)
        rank = self.rank if record.key == self.source else record.rank
        segments, size = depth_of(key.sk) + 1, len(key.sk.encode())
        if segments > MAX_SEGMENTS or size > MAX_SORT_KEY_BYTES:
            place = f'The path of "{shorten(decode_segment(last_segment(*key)))}" would'
            if segments > MAX_SEGMENTS:
                raise BadPath(f"{place} have {segments} keys; at most {MAX_SEGMENTS} are allowed.", Rule.DEPTH)
            limit = f"at most {MAX_SORT_KEY_BYTES} fit"
            raise BadPath(f"{place} take {size} bytes below its root; {limit}.", Rule.MAX_LENGTH)
        if (size := len(rank.encode())) > MAX_SORT_KEY_BYTES:
            limit = f"at most {MAX_SORT_KEY_BYTES} fit"
            raise BadPath(f"The key and its level take {size} bytes; {limit}.", Rule.MAX_LENGTH)
        above = self.above + record.above[depth_of(self.source.sk) :]
        return replace(record, pk=key.pk, sk=key.sk, above=above, rank=rank)
