"""Edit request: one or several edits that a client waits for, with options, the result, and what a dry run says of it.

The result of a request with an idempotency key is stored in the same transaction and kept for 24 hours: the keys and
revisions of the nodes after the write, not their content, which their histories have.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as with_faults
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import BadValue, CladeError, DamagedItem, NotFound, Rule, rfc3339, shorten
from store.kinds.marker import Marker, made_of, marker_key
from store.kinds.registry import KINDS
from store.kinds.unique import UniqueKind, UniqueValue
from store.metadata.moves import Move, move_key
from store.metadata.tree_version import TreeVersion
from store.model.attributes import Value
from store.model.decoding import decoded
from store.model.keys import Key, id_key, path_of, tree_version_key
from store.model.records import ABSENT, Change, Counts, Delete, Item, Put, Record, canonical_item, size_of
from store.writing.edit import Edit, Places
from store.writing.edit_many import Batch, EditMany
from store.writing.reads import ALL_RIGHTS, Reader, Rights, WriteContext, WriteOverlay
from store.writing.transaction import EditedNode as EditedNode
from store.writing.transaction import TransactionBuilder

RESULTS = "once"  # begins the partitions of stored results
RESULT_SECONDS = 24 * 3600
MAX_KEY_CHARACTERS = 128

WRITE_UNIT_BYTES = 1024
INDEXES = 2  # besides the table, each of which a node's item is written to as well
MOVED_CHANGES = (2, 2)  # per node of a large move: its copy and redirect; its old item and its id's record
CASCADE_CHANGES = (3,)  # per node of a large deletion: its old item, its last state, its id's record
RESTORED_CHANGES = (2,)  # per node of a large restore: itself and its id's record
REDIRECT_CHANGES = (1,)  # per node of a large deletion in a tree with redirects
UNITS_A_NODE = 10  # of 1 KB, for one write to the table and two indexes, and its removal from them, or a deletion
UNITS_A_REDIRECT = 2
UNITS_A_TRANSACTION = 2
SEARCH_UNITS_A_NODE = 8  # to remove the search items of a node with two words


@dataclass(frozen=True)
class EditOptions:
    """`dry_run`: commit nothing. `key`: the idempotency key of the `caller`, which `asked` for this, as JSON: the same
    for the same request. `by`: the author that the node gets. `rights`: what the caller may do. Indexes may be
    `settle_seconds` behind the table.
    """

    dry_run: bool = False
    key: str | None = None
    asked: Any = None
    by: str | None = None
    caller: str = ""
    rights: Rights = ALL_RIGHTS
    settle_seconds: float = 0.0


@dataclass(frozen=True)
class DryRun:
    """The number of nodes written, of transactions, and of DynamoDB write units (approximate)."""

    nodes: int
    transactions: int
    write_units: int


@dataclass(frozen=True)
class EditResult:
    """The `nodes` as they were written, one for each edit, or with a `dry_run` as they would be.

    With a `move` the edit takes more than one transaction: its node is as it will be when the move is committed. It
    `is_repeated` where it is that of the same request before; with a `refusal` the caller may not have it now, and its
    nodes have no content. `written` is the number of nodes that this request wrote.
    """

    nodes: Sequence[EditedNode]
    dry_run: DryRun | None = None
    move: Move | None = None
    is_repeated: bool = False
    refusal: CladeError | None = None
    written: int = 0

    @property
    def record(self) -> Record:
        """The node of the only edit."""
        return self.nodes[0].record


class _Below(Struct):
    below: Counts  # in the item of a node that of a root is absent


class StoredNode(Struct):
    """A node without name and attributes, its path before, None where that is the same, and its parent's id there."""

    node: dict[str, Any]
    before: list[str] | None = None
    parent: str | None = None

    def __post_init__(self) -> None:
        try:
            self.edited  # noqa: B018
        except DamagedItem as error:
            raise ValueError(f"In `node`: {error.problem}") from None

    @classmethod
    def of(cls, edited: EditedNode) -> Self:
        record = edited.record
        node = replace(record, name="", attributes={}).item() | {"below": cast(Value, record.descendant_counts)}
        before = None if edited.before == record.path else [*edited.before]
        return cls(node, before, edited.parent_before)

    @property
    def edited(self) -> EditedNode:
        record = replace(Record.of(self.node), below=decoded(self.node, _Below).below)
        return EditedNode(record, record.path if self.before is None else tuple(self.before), self.parent)


class StoredResult(Struct):
    """The fingerprint of a request, the nodes of its edits, and the id of the move that it started."""

    wanted: str
    nodes: list[StoredNode]
    move: str | None = None


class EditRequest:
    """`result` is awaited by the client; it is cancelled, and so done as well, when the client has gone.

    `result_key` is the key of the stored result, None without an idempotency key. Each caller has its own, so that none
    can read by them what another has written. One that is not valid is a fault of the edit. `ahead` are
    the edits as they will be built, as far as is known, `found` are items that were read for that, and `leading` the
    keys of all that leads to nodes by ids and unique values.
    """

    def __init__(self, edit: Edit | EditMany, reads: ReadUsage, options: EditOptions) -> None:
        self.edit = edit
        self.reads = reads
        self.options = options
        self.result_key: Key | None = None
        self.ahead: Sequence[Edit] = ()
        self.found: dict[Key, Item | None] = {}
        self.leading: Sequence[Key] = ()
        if (key := options.key) is not None:
            if (fault := _fault_of(key)) is not None:
                self.edit = with_faults(edit, faults=[*edit.faults, fault])
            else:
                sort_key = f"v0#{_digest(options.caller)}" if options.caller else "v0"
                self.result_key = Key(f"{RESULTS}#{edit.hierarchy.name}:{key}", sort_key)
        self.result: asyncio.Future[EditResult] = asyncio.get_running_loop().create_future()

    async def look_ahead(self, store: Store) -> None:
        """Find out what the edit will read; what leads to the nodes that it names by ids or unique values is read for
        that, and what is stored of the same request with it. Raises Forbidden and NotIndexed.
        """
        places, values, ids = Places(), self.edit.named_values, self.edit.named_ids
        if values or ids:
            overlay, keys = WriteOverlay(store), dict[UniqueValue, Key]()
            stored = [self.result_key] if self.result_key and not self.options.dry_run else []
            if values:
                keys = await self._value_keys(overlay, values, stored)
                self.edit = self.edit.keyed(keys)
            else:
                await overlay.read([*map(id_key, ids), *stored], self.reads)
            places = await self.edit.places(Reader(store, self.reads, overlay), self.options.rights)
            # What leads to other nodes is read again by the build: some may come to these ids and values meanwhile.
            readable = {one for one, key in places.keys.items() if self._may_read(key)}
            led = [keys[value] for value, one in places.ids.items() if one in readable]
            self.found = {key: overlay.item(key) for key in [*stored, *map(id_key, readable), *led]}
            self.leading = [*map(id_key, places.keys), *keys.values()]
        elif isinstance(self.edit, Edit):
            self.edit = self.edit.placed(places, self.options.rights)
        self.ahead = self.edit.ahead(places, self.options.rights)

    async def _value_keys(
        self, overlay: WriteOverlay, values: Sequence[UniqueValue], others: Sequence[Key]
    ) -> dict[UniqueValue, Key]:
        """The keys of the items of unique values, which are read with `others`. Raises NotIndexed."""
        hierarchy = self.edit.hierarchy
        keys = marker_key(hierarchy.name), tree_version_key(hierarchy.name)
        await overlay.read([*keys, *[key for value in values for key in value.keys], *others], self.reads)
        marker, version = Marker.of(hierarchy.name, overlay.item(keys[0])), overlay.item(keys[1])
        had_nodes = TreeVersion.of(hierarchy.name, version).number > 0
        made = made_of(hierarchy.name, marker, KINDS[UniqueKind.name], had_nodes=had_nodes)
        return {value: value.key(hierarchy, made) for value in values}

    @property
    def partitions(self) -> set[str]:
        """The trees, and the hierarchy of roots, that it writes to, as far as is known."""
        return {name for edit in self.ahead for name in edit.partitions()}

    def _may_read(self, key: Key | None) -> bool:
        """Whether the caller may read a node, None where there is none; both are read as often."""
        if key is not None:
            with suppress(NotFound):
                self.options.rights.check_visible(self.edit.hierarchy.name, path_of(*key))
                return True
        return False

    def context(self, now: float) -> WriteContext:
        """The context of a build at a time."""
        options, is_stored = self.options, self.result_key is not None and not self.options.dry_run
        return WriteContext(
            rfc3339(now), now, options.by, options.dry_run, is_stored, options.rights, options.settle_seconds
        )

    def settle(self, result: EditResult | BaseException) -> None:
        """Set the result, unless nobody waits for it."""
        if self.result.done():
            return
        if isinstance(result, EditResult):
            self.result.set_result(result)
        else:
            self.result.set_exception(result)

    def changes(self, transaction: TransactionBuilder | Batch, max_changes: int | None) -> list[Change]:
        """The changes to commit, with the stored result. Raises TooLarge for too many changes, also of a dry run."""
        changes, move = transaction.changes(), transaction.move
        if (key := self.result_key) is not None:
            item: Item = {
                "pk": key.pk, "sk": key.sk, "wanted": self._fingerprint, "move": None if move is None else move.id,
                "nodes": cast(Value, [asdict(StoredNode.of(one)) for one in transaction.edited]),
                "expires": int(transaction.context.now) + RESULT_SECONDS,
            }  # fmt: skip
            changes.append(Put(item, ABSENT))
        if max_changes is not None and len(changes) > max_changes:
            raise transaction.too_large(len(changes), max_changes)
        return changes

    def stored(self, item: Item) -> tuple[EditResult, Key | None]:
        """A stored result, without the names and attributes of its nodes, and the key of the move that it started.

        Raises BadValue where it is the result of another edit, DamagedItem for an item of another shape.
        """
        found = decoded(item, StoredResult)
        if found.wanted != self._fingerprint:
            text = "This idempotencyKey was used for another change within the last 24 hours; choose a new one."
            raise BadValue(text, Rule.TAKEN)
        nodes = [one.edited for one in found.nodes]
        ways = [(one.before or one.record.path, one.record.path) for one in nodes]
        result = EditResult(nodes, is_repeated=True, refusal=self.edit.refusal(ways, self.options.rights))
        return result, None if found.move is None else move_key(found.move)

    @cached_property
    def _fingerprint(self) -> str:
        return _digest(json.dumps(self.options.asked, sort_keys=True))


def _fault_of(key: str) -> BadValue | None:
    """What is wrong with an idempotency key."""
    if not key:
        return BadValue("The idempotencyKey is empty; give one, or leave it out.", Rule.EMPTY)
    if len(key) > MAX_KEY_CHARACTERS:
        text = f"The idempotencyKey has {len(key):,} characters; at most {MAX_KEY_CHARACTERS} are allowed."
        return BadValue(text, Rule.MAX_LENGTH)
    if not key.isprintable():
        text = f'The idempotencyKey "{shorten(key)}" has characters that nobody sees; leave them out.'
        return BadValue(text, Rule.CHARACTERS)
    return None


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


async def dry_run(transaction: TransactionBuilder | Batch, changes: Sequence[Change], store: Store) -> DryRun:
    """The result of a dry run of a transaction of these changes."""
    if transaction.is_empty:
        return DryRun(0, 0, 0)
    if isinstance(transaction, TransactionBuilder) and (move := transaction.move) is not None:
        has_redirects = transaction.read_set.version(move.source.pk).has_redirects
        has_redirects = move.redirects if move.target is not None else has_redirects
        numbers = MOVED_CHANGES if move.target is not None else CASCADE_CHANGES + REDIRECT_CHANGES * has_redirects
        if move.gone is not None:
            numbers = RESTORED_CHANGES + REDIRECT_CHANGES * has_redirects
        units_a_node = UNITS_A_NODE + UNITS_A_REDIRECT * has_redirects
        # Each transaction also writes the record of the move; there are three more for its begin, commit and end.
        max_changes = (store.max_commit_changes or store.max_changes) - 1
        transactions = 3 + sum(-(-move.nodes // (max_changes // number)) for number in numbers)
        return DryRun(move.nodes, transactions, units_a_node * move.nodes + UNITS_A_TRANSACTION * transactions)
    hierarchy, units = transaction.hierarchy, SEARCH_UNITS_A_NODE * transaction.nodes_left_out
    async for some in in_chunks(changes):
        units += sum([_write_units(change, hierarchy) for change in some])
    return DryRun(transaction.written, 1, units)


def _write_units(change: Change, hierarchy: str) -> int:
    """About the write units of a change: two for each KB of an item in a transaction, and its indexes'."""
    size = size_of(canonical_item(change.item)) if isinstance(change, Put) else 1
    is_node = isinstance(change, Put) and "tier" in change.item
    is_node = is_node or (isinstance(change, Delete) and change.key.pk.startswith(f"{hierarchy}#"))
    is_gone = isinstance(change, Put) and "deleted" in change.item and "rank" in change.item  # and so in one index
    return -(-size // WRITE_UNIT_BYTES) * (2 + (INDEXES if is_node else is_gone))
