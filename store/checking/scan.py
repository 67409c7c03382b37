"""Scan: all items of the table, each once, stated as facts; what cannot be matched is a suspect.

The first pass adds up digests. Only where these differ does another pass gather the facts that do. Others may write
meanwhile: what is read before a write does not match what is read after it, so every suspect has to be confirmed.

Both sides state each fact, in whichever order a scan finds them:

| fact | stated by nodes | stated by |
| --- | --- | --- |
| an id is at a key | the node | its id record |
| an id has n former revisions, with a sum of their numbers | the node or a tombstone | each revision |
| a node, with these levels above, has a child of a level | the child | the node's `kids` |
| a node has a descendant of a level below its children | the children's `below` | the node's `below` and `kids` |
| a tree has a node of a level at a depth | the node | the tree's version; for roots that of the hierarchy, too |
| a tree has a redirect | the redirect | the tree's version |

Of n different numbers from 1 on the sum is least for 1 to n, so number and sum of revisions say which there are. An
item whose attributes are wrong by themselves is a suspect at once. Both engines return a log in the order of its
numbers; in another order it is a suspect.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from store.checking.derived_items import DerivedFacts, is_moved_node
from store.checking.findings import path_text
from store.checking.ids import is_whole_revision, is_whole_tombstone
from store.checking.suspects import Digests, GatheredFacts, Relation, Statements, Suspects
from store.checking.trees import (
    VERSION_NAMES,
    is_time,
    key_problem,
    log_number,
    log_problem,
    may_be_expired,
    number_of,
    redirect_problem,
    voted_level,
)
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.kinds.kinds import checked_kinds
from store.kinds.node_kind import NodeKind, NodeKinds
from store.metadata.history import id_record_key
from store.metadata.move_record import Move
from store.metadata.redirects import departures, placed_in
from store.metadata.tree_version import decode_moves, level_at_depth
from store.model.attributes import Attribute, Value
from store.model.hierarchy import Hierarchy, Level, may_stand
from store.model.items import Item, key_of
from store.model.key_rewrite import are_tokens
from store.model.keys import MAX_SEGMENTS, Key, depth_of, parent_sort_key, tree_version_key
from store.model.names import are_names
from store.model.ranks import is_valid
from store.model.records import MAX_ID_CHARACTERS, MAX_REVISION, is_id, is_revision, nonzero_counts
from store.model.undefined_values import Undefined
from store.model.values.kinds import VALID
from store.model.values.rules import NO_RULES
from store.reading.active_moves import ActiveMoves, recent_moves
from store.reading.pages import Pages
from store.search.lineage import MovedNode, moved_id, moved_nodes

RANK_BITS = 1 << 26
"""Of a set of ranks that were set, 8 MB; two ranks that share a bit are compared."""

MAX_NUMBER = 10**12  # of a log item, whose key has twelve digits

_OWN = 12  # attributes that every node has, besides `below`
PASSES = 20  # to gather facts where there is no room for all at once


class NodeFacts:
    """States the facts of the nodes of one hierarchy; those that `moves` hide are left out.

    Siblings of one level are stated together, since they follow one another: `flush` states the last ones.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.moves = ActiveMoves()
        self._hierarchy = hierarchy
        self._levels = {name: _LevelChecks(hierarchy, level) for name, level in hierarchy.levels.items()}
        self._id_prefix = f"{hierarchy.name}:"
        self._id_start = len(self._id_prefix)
        self._updated_at: object = None  # the last valid one, which many nodes share
        self._ranks = bytearray()
        self._run: tuple[str, str, list[str]] = ("", "", [])  # parent, level and levels above of the last siblings
        self._run_key = Key("", "")
        self._run_length = 0

    def state(self, item: Item, statements: Statements, suspects: Suspects | None, undefined: Undefined) -> bool:
        """State the facts of a node; whether it is one that is checked.

        Without `suspects` only facts are stated, and each sibling by itself.
        """
        pk, sk = cast(str, item["pk"]), cast(str, item["sk"])
        get, key = cast(dict[str, Any], item).get, Key(pk, sk)
        if self.moves.hidden and self.moves.hide(key):
            return False
        cut = sk.rfind("#", 0, -1)
        own = sk[cut + 1 : -1] if cut >= 0 else pk[self._id_start :]
        depth = sk.count("#") - 1
        if not (own.isascii() and own.isalnum() and depth < MAX_SEGMENTS and len(sk) < 256) and key_problem(pk, sk):
            if suspects is not None:
                suspects.add_node(key)
            return False
        parent = pk + sk[: cut + 1] if depth else self._hierarchy.name
        level, above, kids, below, revision = get("level"), get("above"), get("kids"), get("below"), get("revision")
        if type(level) is not str or type(above) is not list:
            level, above = str(level), []
        if suspects is not None:
            self._check(item, key, own, depth, parent, suspects, undefined)

        state = statements.state
        state(f"i{get('id')}\n{pk}\n{sk}", 1, key)
        if revision != 1 and is_revision(revision):
            earlier = cast(int, revision) - 1
            state(f"r{get('id')}", earlier, key)
            state(f"r+{get('id')}", (earlier + 1) * earlier // 2, key)
        if depth and suspects is not None and self._run == (parent, level, above):
            self._run_length += 1
        else:
            self.flush(statements)
            self._run, self._run_key, self._run_length = (parent, level, above), key, 1
        if kids or below:
            self._state_counts(
                key, f"{'/'.join(map(str, above))}{'/' if above else ''}{level}", kids, below, statements
            )
        return True

    def _state_counts(self, key: Key, levels: str, kids: object, below: object, statements: Statements) -> None:
        """State what a node says of its children, whose levels above are `levels`, and of its descendants."""
        (pk, sk), state = key, statements.state
        children = cast(dict[str, int], kids) if type(kids) is dict else {}
        for name, count in children.items():
            if type(count) is int and count:
                state(f"k{pk}{sk}\n{levels}\n{name}", -count, key)
        if sk == "#" or type(below) is not dict:
            return
        parent = parent_sort_key(sk)
        for name, total in {**dict.fromkeys(children, 0), **below}.items():
            if type(total) is int:
                own = children.get(name, 0)
                if type(own) is int and total != own:
                    state(f"b{pk}{sk}\n{name}", own - total, key)
                if parent != "#" and total:
                    state(f"b{pk}{parent}\n{name}", total, key)

    def flush(self, statements: Statements) -> None:
        """State that the last siblings are there."""
        if self._run_length:
            parent, level, above = self._run
            key, count = self._run_key, self._run_length
            version = tree_version_key(key.pk)
            statements.state(f"t{key.pk}@{level_at_depth(level, depth_of(key.sk))}", count, version)
            if key.sk == "#":
                statements.state(f"t{parent}@{level_at_depth(level, 0)}", count, tree_version_key(parent))
            else:
                statements.state(f"k{parent}\n{'/'.join(map(str, above))}\n{level}", count, key)
            self._run_length = 0

    def _check(
        self, item: Item, key: Key, own: str, depth: int, parent: str, suspects: Suspects, undefined: Undefined
    ) -> None:
        """Check what the item of a node says by itself."""
        get = cast(dict[str, Any], item).get
        level, above, rank, node_id = get("level"), get("above"), get("rank"), get("id")
        name, names, at, revision = get("name"), get("names"), get("updated_at"), get("revision")
        checks = self._levels.get(level) if type(level) is str else None
        if checks is None:
            checks = self._levels.get(voted_level(self._hierarchy, item))
            suspects.add_node(key)
            undefined.see(str(level), item) if checks is None else checks.see(item, key, undefined)
            return
        if rank != f"{level}#{own}#":
            self._check_rank(key, parent, str(level), rank, suspects)
        is_right = (
            get("parent") == parent
            and get("tier") == f"{key.pk}@{level}@{depth}"
            and type(above) is list
            and len(above) == depth
            and (above[-1] if above else None) in checks.may_be_under
            and type(name) is str
            and name != ""
            and (names is None or are_names(names))
            and type(revision) is int
            and 1 <= revision <= MAX_REVISION
            and (at == self._updated_at or is_time(at))
            and self._is_id(node_id)
            and isinstance(get("changed_by"), str | None)
            and ("came_by" not in item or are_tokens(get("came_by")))
            and "expires" not in item
        )
        self._updated_at = at
        counts_are_right = _are_counts(get("kids")) and (_are_counts(get("below")) if depth else "below" not in item)
        if not (checks.see(item, key, undefined) and is_right and counts_are_right):
            suspects.add_node(key, with_counts=not counts_are_right)

    def _is_id(self, value: object) -> bool:
        """As `is_id`, but faster for most."""
        if type(value) is str and value[self._id_start :].isalnum() and len(value) <= MAX_ID_CHARACTERS:
            return value.startswith(self._id_prefix)
        return is_id(self._hierarchy, value)

    def _check_rank(self, key: Key, parent: str, level: str, rank: object, suspects: Suspects) -> None:
        """Check a rank that was set; ranks that were not are unique by themselves."""
        if not (isinstance(rank, str) and rank.startswith(f"{level}#") and is_valid(rank)):
            return suspects.add_node(key)
        self._ranks = self._ranks or bytearray(RANK_BITS // 8)
        place, bit = divmod(hash(f"{parent}\n{rank}") % RANK_BITS, 8)
        if self._ranks[place] & 1 << bit:
            suspects.add_node(key)
        self._ranks[place] |= 1 << bit
        return None


class _LevelChecks:
    """Checks of the attributes of a level's nodes."""

    def __init__(self, hierarchy: Hierarchy, level: Level) -> None:
        self.may_be_under = _Places(hierarchy, level)
        self._level = level
        self._attributes = [(one.name, one.was, _check_of(one)) for one in level.attributes.values()]
        self._longest = {one.name: one.max_length for one in level.attributes.values()}
        self._has_rules = any(
            one.rules != NO_RULES or one.many or one.parts or one.kind not in VALID for one in level.attributes.values()
        )

    def see(self, item: Item, key: Key, undefined: Undefined) -> bool:
        """Whether all attributes are valid; counts undefined ones, and those that break a rule."""
        found, is_valid_item, see_rules = 0, True, self._has_rules
        for name, was, is_valid_value in self._attributes:
            value = item.get(name)
            if value is None:
                if not was or (value := next((item[one] for one in was if one in item), None)) is None:
                    continue
            else:
                found += 1
            is_valid_item = is_valid_item and is_valid_value(value)
            see_rules = see_rules or (type(value) is str and len(value) > self._longest[name])
        extra = len(item) - found - _OWN - ("below" in item) - ("changed_by" in item) - ("names" in item)
        extra -= "came_by" in item
        if extra:
            undefined.see(self._level.name, item)
        if see_rules:
            undefined.see_rules(self._level.name, item, path_text(*key))
        return is_valid_item


class _Places:
    """The levels that nodes of a level may be under."""

    def __init__(self, hierarchy: Hierarchy, level: Level) -> None:
        self._found: dict[object, bool] = {}
        self._hierarchy, self._level = hierarchy, level.name

    def __contains__(self, under: object) -> bool:
        if not isinstance(under, str | None):
            return False
        found = self._found.get(under)
        if found is None:
            found = may_stand(self._hierarchy, self._level, under)
            if len(self._found) < 1000:
                self._found[under] = found
        return found


class MetadataFacts:
    """States the facts of id records, revisions, versions, logs and redirects of one hierarchy."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.moves = ActiveMoves()
        self._hierarchy = hierarchy
        self._last_moves: dict[str, int] = {}  # of redirects, by tree
        self._versions: dict[str, int] = {}  # of trees that have redirects
        self._log = _Log("")

    def state_id(self, item: Item, statements: Statements, suspects: Suspects | None) -> None:
        """State the facts of an id record, a tombstone or a former revision."""
        key = Key(cast(str, item["pk"]), cast(str, item["sk"]))
        node_id, state = key.pk[3:], statements.state
        if key.sk != "v0":
            number = int(key.sk[1:]) if key.sk[1:].isdecimal() else 0
            state(f"r{node_id}", -1, key)
            state(f"r+{node_id}", -number, key)
            is_right = bool(number) and is_whole_revision(item) and item["revision"] == number
        elif "deleted" in item:
            revision = cast(int, item.get("revision"))
            if is_right := is_whole_tombstone(item) and is_id(self._hierarchy, node_id):
                state(f"r{node_id}", revision, key)
                state(f"r+{node_id}", revision * (revision + 1) // 2, key)
        else:
            place = id_record_key(item)
            place = self.moves.current(place) if place is not None and self.moves.moves else place
            if place is not None:
                state(f"i{node_id}\n{place.pk}\n{place.sk}", -1, key)
            is_right = place is None or len(item) == 4
            if suspects is not None and place is not None and not is_right:
                suspects.add_node(place)
        if suspects is not None and not is_right:
            suspects.add_id(key)

    def state_redirect(self, item: Item, statements: Statements, suspects: Suspects | None) -> None:
        pk = cast(str, item["pk"]).removeprefix("alias#")
        statements.state(f"a{pk}", 1, tree_version_key(pk))
        if suspects is None:
            return
        if redirect_problem(item, MAX_NUMBER):
            suspects.add_version(pk, Relation.REDIRECTS)
        else:
            self._last_moves[pk] = max(self._last_moves.get(pk, 0), placed_in(departures(item)[-1].left))

    def end(self, suspects: Suspects) -> None:
        """Compare what was read last, at the end of the table."""
        self.end_log(suspects)
        for pk, number in self._last_moves.items():
            if number > self._versions.get(pk, number):
                suspects.add_version(pk, Relation.REDIRECTS)

    def state_version(self, item: Item, statements: Statements, suspects: Suspects | None) -> None:
        """State the facts of the version of a tree, or of the roots of the hierarchy."""
        key, shape = Key(cast(str, item["pk"]), cast(str, item["sk"])), nonzero_counts(item.get("shape"))
        aliases = item.get("aliases")
        for name, count in (shape or {}).items():
            statements.state(f"t{key.pk}@{name}", -count, key)
        if type(aliases) is int:
            statements.state(f"a{key.pk}", -aliases, key)
        if aliases:
            self._versions[key.pk] = number_of(item)
        if suspects is None:
            return
        if shape is None:
            suspects.add_version(key.pk, Relation.SHAPE)
        if type(aliases) is not int:
            suspects.add_version(key.pk, Relation.REDIRECTS)
        if not number_of(item) or not item.keys() <= VERSION_NAMES or "moves" in item:
            suspects.add_version(key.pk, Relation.LOG)
        if "#" in key.pk:
            self.end_log(suspects)
            self._log = _Log(key.pk, number_of(item))

    def state_log(self, item: Item, suspects: Suspects | None) -> None:
        """Compare the number of a log item with that before it."""
        pk = cast(str, item["pk"])
        if suspects is None or "#" not in pk:
            return
        number, log = log_number(item), self._log
        if pk != log.pk:
            self.end_log(suspects)
            self._log = log = _Log(pk)
        if log.last and number != log.last + 1 and not may_be_expired(log.expires):
            log.is_right = False
        log.is_right = log.is_right and log_problem(item) is None
        log.last, log.expires = number, item.get("expires")

    def end_log(self, suspects: Suspects) -> None:
        """Compare the last number of the log that was read with that of its version."""
        log = self._log
        is_complete = (
            log.last == log.version or not log.last or (log.last < log.version and may_be_expired(log.expires))
        )
        if not (log.is_right and is_complete):
            suspects.add_version(log.pk, Relation.LOG)
        self._log = _Log("")


class _Log:
    """The log that is being read: the number of its version, 0 where that did not come first, and the last item."""

    def __init__(self, pk: str, version: int = 0) -> None:
        self.pk = pk
        self.version = version
        self.last = 0
        self.expires: object = None
        self.is_right = True


def _are_counts(value: object) -> bool:
    return value == {} or nonzero_counts(value) is not None


def _check_of(attribute: Attribute) -> Callable[[Value], bool]:
    """The function that recognizes valid values of an attribute."""
    return attribute.is_valid if attribute.many else VALID.get(cast(Any, attribute.kind), attribute.is_valid)


class Scan:
    """Scans a table for suspects among the items of some hierarchies.

    `unsearched` are those whose search items are not complete, and not scanned. With `exactly`, search items that are
    only outdated by moves are suspects. `on_nodes` and `on_items` are called with each number of nodes and items of the
    first pass. `undefined` has by hierarchy the attributes and levels that its class does not define.
    """

    def __init__(
        self,
        store: Store,
        hierarchies: Mapping[str, Hierarchy],
        reads: ReadUsage,
        *,
        unsearched: Collection[str] = (),
        exactly: bool = False,
        on_nodes: Callable[[int], None] = lambda _: None,
        on_items: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.undefined = {name: Undefined(hierarchy) for name, hierarchy in hierarchies.items()}
        self._store = store
        self._reads = reads
        self._hierarchies = hierarchies
        self._unsearched = unsearched
        self._exactly = exactly
        self._on_nodes = on_nodes
        self._on_items = on_items
        self.seen: set[str] = set()
        """The hierarchies of which there are nodes."""
        self.unwanted: dict[str, Mapping[tuple[str, str], int]] = {}
        """The numbers of items of kinds that do not apply to a hierarchy, by what a finding calls them and says."""
        self.others: Counter[str] = Counter()
        """The number of nodes of other hierarchies by name."""

    async def suspects(self) -> Suspects:
        """All items that may be wrong."""
        suspects, digests = Suspects(), Digests()
        await self._pass(digests, suspects)
        buckets = digests.differing()
        del digests
        for _ in range(PASSES):
            if not buckets:
                break
            gathered = GatheredFacts(buckets)
            await self._pass(gathered, None)
            for unmatched in gathered.unmatched():
                suspects.add_unmatched(unmatched)
            buckets = gathered.left
        suspects.has_more = suspects.has_more or bool(buckets)
        return suspects

    async def _pass(self, statements: Statements, suspects: Suspects | None) -> None:
        scans = {
            name: _HierarchyScan(hierarchy, await self._derived(hierarchy, suspects), self.undefined[name])
            for name, hierarchy in self._hierarchies.items()
        }
        pages = {first: items for scan in scans.values() for first, items in scan.pages.items()}
        async for page in self._store.scan(self._reads):
            moves = await self._running()
            for name, scan in scans.items():
                scan.hide(ActiveMoves([move for move in moves if move.hierarchy == name]))
            for item in page:
                first, _, rest = cast(str, item["pk"]).partition("#")
                if first == "id":
                    first = f"id#{rest.partition(':')[0]}"
                elif first == "alias":
                    first = f"alias#{rest.partition('#')[0]}"
                if (items := pages.get(first)) is not None:
                    items.append(item)
                elif suspects is not None and str(item.get("id")).startswith(f"{first}:"):
                    self.others[first] += 1
            for scan in scans.values():
                nodes = await scan.state_page(statements, suspects)
                if suspects is not None:
                    self._on_nodes(nodes)
            if suspects is not None:
                self._on_items(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so Ctrl-C is served here
        for name, scan in scans.items():
            scan.finish(statements, suspects)
            if suspects is not None:
                self.seen |= {name} if scan.has_nodes else set()
                self.unwanted[name] = scan.unwanted

    async def _running(self) -> list[Move]:
        """The running moves that the versions of their trees list, which hide one of their ends."""
        moves = [move for move in await recent_moves(self._store, self._reads) if move.ended_at is None]
        keys = [tree_version_key(pk) for pk in sorted({pk for move in moves for pk in move.running.partitions})]
        versions = await self._store.get(keys, self._reads, strong=True) if keys else []
        listed = {key.pk: decode_moves(version) for key, version in zip(keys, versions, strict=True)}
        return [move for move in moves if all(move.running in listed[pk] for pk in move.running.partitions)]

    async def _derived(self, hierarchy: Hierarchy, suspects: Suspects | None) -> DerivedFacts | None:
        """The facts of the kinds of a hierarchy, None where their items are not scanned."""
        kinds = NodeKinds([kind for kind in checked_kinds(hierarchy) if kind.applies])
        is_scanned = hierarchy.name not in self._unsearched
        moved: dict[Key, MovedNode] = {}
        async for page in Pages(self._store, moved_nodes(hierarchy.name), self._reads):
            for item in page:
                if is_scanned and kinds.by_ancestors and is_moved_node(item):
                    moved[key_of(item)] = MovedNode.of(item)
                elif suspects is not None and is_scanned:
                    suspects.moved.add(key_of(item))
        if not kinds.all or not is_scanned:
            return None
        return DerivedFacts(self._store, hierarchy, kinds, self._reads, moved, exactly=self._exactly)


_LOG = re.compile(r"!\d{12}")
_MARK = re.compile(r"-|~[0-9a-f]+")  # the marker, and running moves


class _HierarchyScan:
    """States the facts of all items of one hierarchy in a pass."""

    def __init__(self, hierarchy: Hierarchy, derived: DerivedFacts | None, undefined: Undefined) -> None:
        name = hierarchy.name
        self._tree: list[Item] = []
        self._ids: list[Item] = []
        self._redirects: list[Item] = []
        self._moved: list[Item] = []
        self._kinds: list[tuple[NodeKind, list[Item]]] = [(kind, []) for kind in checked_kinds(hierarchy)]
        self.pages = {first: items for kind, items in self._kinds for first in kind.partitions} | {
            name: self._tree, f"id#{name}": self._ids, f"alias#{name}": self._redirects, f"search/{name}": self._moved,
        }  # fmt: skip
        """The items of a page, by what their partition keys begin with."""
        self.metadata = MetadataFacts(hierarchy)
        self.has_nodes = False
        self.unwanted: Counter[tuple[str, str]] = Counter()
        self._nodes = NodeFacts(hierarchy)
        self._derived = derived
        self._undefined = undefined

    def hide(self, moves: ActiveMoves) -> None:
        """Leave out what these moves hide."""
        self._nodes.moves = self.metadata.moves = moves

    async def state_page(self, statements: Statements, suspects: Suspects | None) -> int:
        """State the facts of the page; returns its number of nodes."""
        for item in self._ids:
            self.metadata.state_id(item, statements, suspects)
        for item in self._redirects:
            self.metadata.state_redirect(item, statements, suspects)
        nodes = [item for item in self._tree if cast(str, item["sk"])[0] == "#"]
        for item in self._tree if len(nodes) < len(self._tree) else ():
            if item["sk"] == "!":
                self.metadata.state_version(item, statements, suspects)
            elif _LOG.fullmatch(cast(str, item["sk"])):
                self.metadata.state_log(item, suspects)
            elif suspects is not None and cast(str, item["sk"])[0] != "#":
                suspects.add_unknown(key_of(item))
        for item in self._moved:
            if suspects is not None and not (_MARK.fullmatch(cast(str, item["sk"])) or moved_id(item)):
                suspects.add_unknown(key_of(item))
        for kind, items in self._kinds:
            if not kind.applies:
                self.unwanted[kind.noun, kind.unwanted] += len(items)
            elif self._derived is not None:
                for item in items:
                    self._derived.state_item(kind, item, statements)
        for items in self.pages.values():
            items.clear()
        visible = [item for item in nodes if self._nodes.state(item, statements, suspects, self._undefined)]
        self.has_nodes = self.has_nodes or bool(nodes)
        if self._derived is not None:
            await self._derived.prepare(visible)
            for item in visible:
                self._derived.state(item, statements)
        return len(nodes)

    def finish(self, statements: Statements, suspects: Suspects | None) -> None:
        """State what needs the end of the table."""
        self._nodes.flush(statements)
        if suspects is not None:
            self.metadata.end(suspects)
            suspects.moved |= self._derived.moved.keys() if self._derived else set()
