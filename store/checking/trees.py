"""Tree reader: the suspects of one tree, read again as a snapshot, and what is wrong with them: nodes, given their
ancestors, their ids and what is below them; counts, log and redirects.

Others may write meanwhile. Each of their transactions increments the tree's version, so what was read between two equal
versions is consistent; where the version has changed, all is read again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, cast

from store.checking.findings import Finding, Findings, Fix, counts_text, mismatch, path_text, value_text
from store.checking.suspects import Relation, TreeSuspects
from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadData, BadPath
from store.metadata.change_log import Event
from store.metadata.history import id_item_at, id_record_key, revisions
from store.metadata.redirects import departures, placed_in, redirect_key
from store.metadata.tree_version import decode_moves, level_at_depth
from store.model.attributes import Value
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.items import Item, key_of
from store.model.key_rewrite import are_tokens
from store.model.keys import (
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    Index,
    Key,
    ancestor_keys,
    decode_segment,
    depth_of,
    encode_segment,
    first_rank,
    id_key,
    last_segment,
    level_partition,
    parent_partition,
    parent_sort_key,
    revision_key,
    tree_version_key,
)
from store.model.names import are_names
from store.model.paths import checked_segment
from store.model.ranges import KeyRange, below, prefix_end, subtree
from store.model.ranks import is_manual, is_valid
from store.model.records import Counts, is_id, is_revision, nonzero_counts
from store.reading.active_moves import ActiveMoves, active_moves
from store.reading.pages import LOG_PAGE_ITEMS, PAGE_ITEMS, Pages
from store.retry import RetryPolicy
from store.text import quantity

MAX_READ_REVISIONS = 100  # of a node; more are counted in a request of their own
RETRIES = RetryPolicy(0.02, 0.5)
ATTEMPTS = 20  # to read the suspects of a tree while nobody writes to it
SKEW_SECONDS = 3600.0  # by so much log items may expire in another order than that of their numbers
VERSION_NAMES = frozenset("pk sk n shape aliases moves log_expires".split())


async def missing_revisions(store: Store, last: Mapping[str, int], reads: ReadUsage) -> Counter[str]:
    """The number of missing revisions by id of node, for nodes that must have those from 1 to `last`."""
    missing: Counter[str] = Counter()
    node_ids: dict[Key, str] = {}
    for node_id, number in last.items():
        if number > MAX_READ_REVISIONS:
            missing[node_id] = number - await store.count(revisions(node_id, number + 1), reads)
        else:
            node_ids.update({revision_key(node_id, revision): node_id for revision in range(1, number + 1)})
    async for keys in in_chunks(list(node_ids), PAGE_ITEMS):
        for key, item in zip(keys, await store.get(keys, reads, strong=True), strict=True):
            missing[node_ids[key]] += item is None
    return +missing


class IdState(NamedTuple):
    """The partition of a node's id: its record, and the number of missing earlier revisions.

    `other` is the node that the record points to where that is not the node itself.
    """

    record: Item | None
    other: Item | None = None
    missing: int = 0


class DescendantCounts(NamedTuple):
    """The true counts of a node by level: of its children, and of all its descendants."""

    kids: Counter[str]
    below: Counter[str]


class NodeChecks:
    """The `findings` on nodes of the tree at `pk`."""

    def __init__(self, hierarchy: Hierarchy, pk: str, findings: Findings) -> None:
        self._hierarchy = hierarchy
        self._pk = pk
        self._findings = findings

    def check(self, item: Item, above: Sequence[Item | None], id_state: IdState, twin: str = "") -> None:
        """Check a node; `above` are its ancestors, the root first, `twin` is the path of a sibling with its rank."""
        sk = cast(str, item["sk"])
        if problem := key_problem(self._pk, sk):
            return self._report(item, problem)
        levels = self._levels(above)
        parent = above[-1] if above else None
        if above and parent is None:
            self._report(item, f"parent {path_text(self._pk, parent_sort_key(sk))} is missing")
        level = self._level(item, parent)
        self._check_above(item, levels if parent is not None or not above else None)
        self._check_index_keys(item, level)
        self._check_rank(item, level, twin)
        self._check_id(item, id_state)
        self._check_content(item, level)

    def check_counts(self, item: Item, counts: DescendantCounts) -> None:
        """Compare the counts of a node with the true ones."""
        self._expect_counts(item, "kids", counts.kids)
        if item["sk"] == "#":
            self._expect(item, "below", None)  # it is the shape of the tree version
        else:
            self._expect_counts(item, "below", counts.below)

    def _report(self, item: Item, problem: str, **values: Value) -> None:
        """Add a finding, with the values that fix it where they are known."""
        key = key_of(item)
        fix = Fix.of(key, item, values) if values else None
        self._findings.add(Finding(self._hierarchy.name, path_text(*key), problem, fix))

    def _expect(self, item: Item, name: str, expected: Value) -> None:
        """Report an attribute that does not have the value that follows from the rest, which is its fix."""
        if (found := item.get(name)) != expected:
            self._report(item, mismatch(name, value_text(found), value_text(expected)), **{name: expected})

    def _expect_counts(self, item: Item, name: str, counts: Counts) -> None:
        found, counts = item.get(name), {level: count for level, count in counts.items() if count}
        if nonzero_counts(found) != counts:
            problem = mismatch(name, counts_text(found), counts_text(counts))
            self._report(item, problem, **{name: cast(Value, counts)})

    # -- position ------------------------------------------------------------------------------------------------------

    def _levels(self, ancestors: Sequence[Item | None]) -> list[str]:
        """The levels of these ancestors, as far as they are there; below a missing one, as the next one says."""
        levels: list[str] = []
        for depth, item in enumerate(ancestors):
            if item is not None:
                above = levels if len(levels) == depth else _stored_above(item, depth) or [""] * depth
                levels = [*above, voted_level(self._hierarchy, item)]
        return levels

    def _level(self, item: Item, parent: Item | None) -> str:
        levels, level = self._hierarchy.levels, voted_level(self._hierarchy, item)
        if level != _text(item.get("level")):
            self._expect(item, "level", level)
        if level not in levels:
            self._report(item, mismatch("level", value_text(item.get("level")), f"a level of {self._hierarchy.name}"))
            return level
        under = voted_level(self._hierarchy, parent) if parent else None
        is_placed = parent is not None or item["sk"] == "#"
        if is_placed and not may_stand(self._hierarchy, level, under):
            self._report(item, misplaced(levels[level], under).rstrip("."))
        return level

    def _check_above(self, item: Item, levels: list[str] | None) -> None:
        """`levels` are those of the ancestors, None where they are not known, since the parent is missing."""
        if levels is not None:
            return self._expect(item, "above", cast(Value, levels))
        depth = depth_of(cast(str, item["sk"]))
        if _stored_above(item, depth) is None:
            expected = f"a list of {quantity(depth, 'level')}"
            self._report(item, mismatch("above", value_text(item.get("above")), expected))

    def _check_index_keys(self, item: Item, level: str) -> None:
        sk = cast(str, item["sk"])
        self._expect(item, "parent", parent_partition(self._pk, sk))
        if level:
            self._expect(item, "tier", level_partition(self._pk, level, depth_of(sk)))

    def _check_rank(self, item: Item, level: str, twin: str) -> None:
        """`twin` is the path of a sibling with the same rank; ranks that were not set are unique by themselves."""
        rank, default = item.get("rank"), first_rank(level, last_segment(self._pk, cast(str, item["sk"])))
        if not level or rank == default:
            return
        if not (isinstance(rank, str) and rank.startswith(f"{level}#") and is_valid(rank)):
            problem = mismatch("rank", value_text(rank), value_text(default))
        elif twin:
            problem = f"attribute `rank` is the same as that of {twin}"
        else:
            return
        self._report(item, problem, **({"rank": default} if len(default.encode()) <= MAX_SORT_KEY_BYTES else {}))

    # -- content -------------------------------------------------------------------------------------------------------

    def _check_id(self, item: Item, state: IdState) -> None:
        node_id, record, key = item.get("id"), state.record, key_of(item)
        if not is_id(self._hierarchy, node_id):
            return self._report(item, mismatch("id", value_text(node_id), f"an id of {self._hierarchy.name}"))
        if state.missing:
            self._report(item, f"{quantity(state.missing, 'earlier revision')} missing")
        is_own = record is not None and "deleted" not in record and id_record_key(record) == key
        if is_own and record == id_item_at(cast(str, node_id), *key):
            return None
        if state.other is not None and state.other.get("id") == node_id:
            return self._report(item, f"id {node_id} is also the id of {path_text(*key_of(state.other))}")
        if record is None:
            problem = f"id {node_id} has no record"
        elif is_own:
            problem = f"the record of id {node_id} has more than the key of the node"
        elif "deleted" in record:
            problem = f"the record of id {node_id} says that the node is deleted"
        else:
            problem = f"the record of id {node_id} points to {path_text(record.get('tree'), record.get('key'))}"
        fix = Fix.of(id_key(cast(str, node_id)), record, _only(record, tree=key.pk, key=key.sk))
        return self._findings.add(Finding(self._hierarchy.name, path_text(*key), problem, fix))

    def _check_content(self, item: Item, level: str) -> None:
        author, came_by = item.get("changed_by"), item.get("came_by")
        for name, is_valid_value, expected in (
            ("name", bool(_text(item.get("name"))), "a text that is not empty"),
            ("names", item.get("names") is None or are_names(item["names"]), "texts by language"),
            ("revision", is_revision(item.get("revision")), "a positive integer"),
            ("updated_at", is_time(item.get("updated_at")), "a time in UTC (RFC 3339)"),
            ("changed_by", author is None or isinstance(author, str), "a text"),
            ("came_by", came_by is None or are_tokens(came_by), "tokens of moves"),
        ):
            if not is_valid_value:
                self._report(item, mismatch(name, value_text(item.get(name)), expected))
        self._expect(item, "expires", None)
        defined = self._hierarchy.levels.get(level)
        for attribute in defined.attributes.values() if defined else ():
            value = attribute.value_in(item)
            if value is not None and not attribute.is_valid(value):
                kind = attribute.enum or attribute.kind
                kind = f"a list of {kind}" if attribute.many else kind
                self._report(item, mismatch(attribute.name, value_text(value), kind))


def _only(record: Item | None, **values: Value) -> Mapping[str, Value]:
    """These values, and None for all others that a record has besides its key."""
    others = {name: None for name in record or () if name not in ("pk", "sk")}
    return {**others, **values}


def key_problem(pk: str, sk: str) -> str | None:
    """Why no node can have a key, None if it is valid."""
    if sk[-1] != "#" or "##" in sk or sk.count("#") > MAX_SEGMENTS or len(sk.encode()) > MAX_SORT_KEY_BYTES:
        return "the key is not that of a node"
    own = last_segment(pk, sk)
    try:
        is_canonical = encode_segment(checked_segment(decode_segment(own))) == own
    except BadPath:
        return "the key is not that of a node"
    return None if is_canonical else "the key is not in canonical form"


def is_time(value: object) -> bool:
    """Whether a value is a time in UTC (RFC 3339)."""
    try:
        return isinstance(value, str) and value.endswith("Z") and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def voted_level(hierarchy: Hierarchy, item: Item) -> str:
    """The level of a node, which `tier` and `rank` contain as well, so that two of the three outvote the third."""
    tier = _text(item.get("tier")).rpartition("@")[0].rpartition("@")[2]
    if tier in hierarchy.levels and tier == _text(item.get("rank")).partition("#")[0]:
        return tier
    return _text(item.get("level"))


def _stored_above(item: Item, depth: int) -> list[str] | None:
    """The levels of its ancestors in an item, None where they cannot be those."""
    found = item.get("above")
    is_list = isinstance(found, list) and len(found) == depth and all(isinstance(level, str) for level in found)
    return cast(list[str], found) if is_list else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_EVENTS = frozenset(Event)


@dataclass
class TreeReport:
    """The suspects of a tree as they were read: its version, and findings.

    `shape` and `redirects` are the true counts, None where they were not suspect. `logged` is the last number in its
    log. `moves` are the running ones with an end in it. What they hide is not checked: nobody sees it, and only they
    write to it.
    """

    pk: str
    version: Item | None
    findings: Findings = field(default_factory=Findings)
    shape: Counts | None = None
    redirects: int | None = None
    logged: int = 0
    moves: ActiveMoves = field(default_factory=ActiveMoves)

    @property
    def number(self) -> int:
        """The least number that the version must have."""
        return max(number_of(self.version), self.logged)


class TreeReader:
    """Checks the suspects of the trees of one hierarchy."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads

    async def check(self, pk: str, suspects: TreeSuspects) -> TreeReport:
        """The report on the suspects of a tree; a finding says so where other writes do not allow a consistent read."""
        pauses = RETRIES.pauses()
        for _ in range(ATTEMPTS):
            (version,) = await self._get([tree_version_key(pk)])
            report = await self._read(pk, version, suspects)
            if await self._get([tree_version_key(pk)]) == [version]:
                return report
            await asyncio.sleep(next(pauses))
        report = TreeReport(pk, version)
        self._report(report, "the tree was not checked, since other writes to it did not stop; check again later")
        return report

    async def _read(self, pk: str, version: Item | None, suspects: TreeSuspects) -> TreeReport:
        moves = await active_moves(self._store, decode_moves(version), self._reads)
        report = TreeReport(pk, version, moves=moves)
        relations = set(suspects.relations) if version is not None else set(Relation)
        await self._check_nodes(report, suspects)
        if moves.moves:  # until they have ended, nobody else writes to what may be theirs
            report.findings.kept = [replace(finding, fix=None) for finding in report.findings.kept]
        if Relation.SHAPE in relations:
            report.shape = await self._shape(pk, moves)
        if relations:
            await self._check_log(report)
        if Relation.REDIRECTS in relations:
            await self._check_redirects(report)
        if relations:
            self._check_version(report)
        return report

    def _report(self, report: TreeReport, problem: str, **values: Value) -> None:
        """Add a finding on the tree's version, log or redirects."""
        fix = Fix.of(tree_version_key(report.pk), report.version, values) if values else None
        report.findings.add(Finding(self._hierarchy.name, path_text(report.pk, "#"), problem, fix))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def _check_nodes(self, report: TreeReport, suspects: TreeSuspects) -> None:
        """Check counts from the deepest node up, since they are sums of those below, and nodes in key order."""
        checks, pk, moves = NodeChecks(self._hierarchy, report.pk, report.findings), report.pk, report.moves
        true: dict[str, Counter[str]] = {}  # of descendants, by sort key
        for some in _chunks(sorted(suspects.families, key=lambda sk: (-depth_of(sk), sk))):
            for family in moves.visible(
                [item for item in await self._get([Key(pk, sk) for sk in some]) if item is not None]
            ):
                counts = await self._counts(family, moves, true)
                true[cast(str, family["sk"])] = counts.below
                checks.check_counts(family, counts)
        for some in _chunks(sorted(suspects.nodes)):
            keys = [Key(pk, sk) for sk in some]
            found = await self._get_by_key([*keys, *[above for key in keys for above in ancestor_keys(key)]])
            items = moves.visible([item for key in keys if (item := found[key]) is not None])
            for item, state in zip(items, await self._id_states(items, moves), strict=True):
                chain = [found[above] for above in ancestor_keys(key_of(item))]
                checks.check(item, chain, state, await self._twin(item, suspects.nodes))

    async def _counts(self, item: Item, moves: ActiveMoves, true: dict[str, Counter[str]]) -> DescendantCounts:
        """The counts of a node, by those of its children; `true` are those that are known to be right.

        Where a child is missing, those below it are counted.
        """
        pk, sk = key_of(item)
        counts = DescendantCounts(Counter(), Counter())
        rest, end = below(pk, sk), ""
        while True:
            page = await self._store.range(rest, self._reads, limit=PAGE_ITEMS, strong=True)
            for one in page:
                own = cast(str, one["sk"])
                if (end and own < end) or moves.hide(key_of(one)) or key_problem(pk, own):
                    continue
                level, end = voted_level(self._hierarchy, one), prefix_end(own)
                if parent_sort_key(own) == sk:
                    counts.kids[level] += 1
                counts.below[level] += 1
                counts.below.update(true[own] if own in true else nonzero_counts(one.get("below")) or {})
            if len(page) < PAGE_ITEMS:
                return counts
            last = cast(str, page[-1]["sk"])
            rest = replace(rest, lo=end) if end > last else rest.after(last)
            await asyncio.sleep(0)

    async def _twin(self, item: Item, suspects: set[str]) -> str:
        """The path of a sibling with the same rank that was set, which is to keep it."""
        rank, parent, key = item.get("rank"), item.get("parent"), key_of(item)
        if not (isinstance(rank, str) and isinstance(parent, str) and is_manual(rank)):
            return ""
        same = await self._store.range(KeyRange(Index.BY_PARENT, parent, rank, f"{rank}!"), self._reads)
        keys = sorted(key_of(one) for one in same if one.get("rank") == rank and key_of(one) != key)
        for one in await self._get(keys):
            if one is None or (one.get("parent"), one.get("rank")) != (parent, rank):
                continue
            if key_of(one) < key or one["pk"] != key.pk or one["sk"] not in suspects:
                return path_text(*key_of(one))
        return ""

    async def _id_states(self, items: Sequence[Item], moves: ActiveMoves) -> list[IdState]:
        """The partitions of the nodes' ids; an id that is not valid is not looked up.

        A record that points to the old place of a moved node is taken for one that points to the new place.
        """
        ids = [cast(str, item["id"]) if is_id(self._hierarchy, item.get("id")) else "" for item in items]
        records = await self._get_by_key([id_key(node_id) for node_id in ids if node_id])
        if moves.moves:
            records = {key: _as_moved(record, moves) for key, record in records.items()}
        led = {node_id: id_record_key(records[id_key(node_id)] or {}) for node_id in ids if node_id}
        keys = [led.get(node_id) for node_id in ids]
        elsewhere = [key for key, item in zip(keys, items, strict=True) if key and key != key_of(item)]
        others = await self._get_by_key(elsewhere) if elsewhere else {}
        missing = await self._missing_revisions(items, ids)
        return [
            IdState(records.get(id_key(node_id)), others.get(key) if key else None, missing.get(node_id, 0))
            for node_id, key in zip(ids, keys, strict=True)
        ]

    async def _missing_revisions(self, items: Sequence[Item], ids: Sequence[str]) -> dict[str, int]:
        last = {
            node_id: cast(int, item["revision"]) - 1
            for node_id, item in zip(ids, items, strict=True)
            if node_id and is_revision(item.get("revision"))
        }
        return await missing_revisions(self._store, last, self._reads)

    # -- metadata of the tree ------------------------------------------------------------------------------------------

    async def _shape(self, pk: str, moves: ActiveMoves) -> Counts:
        shape: Counter[str] = Counter()
        async for page in Pages(self._store, subtree(pk, "#"), self._reads):
            for item in moves.visible(page):
                if not key_problem(pk, cast(str, item["sk"])) and (level := voted_level(self._hierarchy, item)):
                    shape[level_at_depth(level, depth_of(cast(str, item["sk"])))] += 1
        return dict(shape)

    async def _check_log(self, report: TreeReport) -> None:
        """The numbers of the log go up to the version's without a gap, but for the oldest, which expire."""
        expires: object = None
        log = KeyRange(Index.TABLE, report.pk, "!0", "!:")
        async for items in Pages(self._store, log, self._reads, limit=LOG_PAGE_ITEMS):
            for item in items:
                number = log_number(item) or report.logged
                self._check_gap(report, number - 1, expires)
                if problem := log_problem(item):
                    self._report(report, f"number {number} of the change log: {problem}")
                report.logged, expires = number, item.get("expires")
        self._check_gap(report, number_of(report.version), expires)

    def _check_gap(self, report: TreeReport, last: int, expires: object) -> None:
        """Report numbers that lack after the present end of the log up to `last`; `expires` is that of the end."""
        first = report.logged + 1
        if report.logged and first <= last and not may_be_expired(expires):
            numbers = f"number {first}" if first == last else f"the numbers {first} to {last}"
            self._report(report, f"the change log lacks {numbers}")

    async def _check_redirects(self, report: TreeReport) -> None:
        """The moves of each redirect are in the order of time, and none comes after the tree's version."""
        report.redirects = 0
        redirects = subtree(redirect_key(Key(report.pk, "#")).pk, "#")
        async for items in Pages(self._store, redirects, self._reads):
            report.redirects += len(items)
            for item in items:
                if problem := redirect_problem(item, report.number):
                    path = path_text(report.pk, item["sk"])
                    report.findings.add(Finding(self._hierarchy.name, path, f"the redirect {problem}"))

    def _check_version(self, report: TreeReport) -> None:
        version, shape, redirects = report.version, report.shape, report.redirects
        if version is None:
            if shape or report.logged or redirects:
                values: Item = {"n": report.number, "shape": cast(Value, shape), "aliases": redirects}
                self._report(report, "the tree version is missing", **values)
            return
        if version.get("n") != report.number or not report.number:
            problem = mismatch("n", value_text(version.get("n")), str(max(1, report.number)))
            self._report(report, f"tree version: {problem}", n=report.number)
        if shape is not None and nonzero_counts(version.get("shape")) != shape:
            problem = mismatch("shape", counts_text(version.get("shape")), counts_text(shape))
            self._report(report, f"tree version: {problem}", shape=cast(Value, shape))
        for ref in decode_moves(version):
            if ref not in report.moves.refs:
                self._report(report, f"tree version: the move {ref.id} is not running", moves=None)
        if redirects is not None and version.get("aliases") != redirects:
            problem = mismatch("aliases", value_text(version.get("aliases")), str(redirects))
            self._report(report, f"tree version: {problem}", aliases=redirects)
        for name in sorted(version.keys() - VERSION_NAMES):
            problem = mismatch(name, value_text(version[name]), "absent")
            self._report(report, f"tree version: {problem}", **{name: None})

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _get(self, keys: Sequence[Key]) -> list[Item | None]:
        return await self._store.get(keys, self._reads, strong=True)

    async def _get_by_key(self, keys: Sequence[Key]) -> dict[Key, Item | None]:
        return dict(zip(keys, await self._get(keys), strict=True))


def _as_moved(record: Item | None, moves: ActiveMoves) -> Item | None:
    """The record of an id as it will be when these moves have ended."""
    key = id_record_key(record or {})
    moved = moves.current(key) if key is not None else None
    if moved is None or moved == key:
        return record
    return {**(record or {}), "tree": moved.pk, "key": moved.sk}


def redirect_problem(item: Item, number: int) -> str | None:
    """What is wrong with a redirect in a tree whose version has this number."""
    try:
        moves = departures(item)
    except BadData:
        return "is damaged"
    places = [one.left for one in moves]
    if not moves or places != sorted(places):
        return "has no moves in the order of time"
    if placed_in(places[-1]) > number:
        return f"has a move at {places[-1]} of the change log, which ends at {number}"
    return None


def _chunks(sort_keys: Sequence[str]) -> list[Sequence[str]]:
    return [sort_keys[start : start + PAGE_ITEMS] for start in range(0, len(sort_keys), PAGE_ITEMS)]


def number_of(version: Item | None) -> int:
    """The number in the item of a tree version, 0 where it is not valid."""
    number = version.get("n") if version else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def may_be_expired(expires: object) -> bool:
    """Whether the items after a log item may have expired before it, by another clock."""
    return isinstance(expires, int | float) and expires < time.time() + SKEW_SECONDS


def log_number(item: Item) -> int:
    """The number of a log item, 0 where its key has none."""
    digits = cast(str, item["sk"])[1:]
    return int(digits) if digits.isdecimal() else 0


def log_problem(item: Item) -> str | None:
    """What is wrong with the content of a log item, None where it can be read."""
    entries, ranks = item.get("changes"), item.get("ranks")
    for name, is_right, expected in (
        ("at", is_time(item.get("at")), "a time in UTC (RFC 3339)"),
        ("expires", isinstance(item.get("expires"), int), "an integer"),
        ("changes", isinstance(entries, list) and all(map(_is_entry, entries)), "a list of entries"),
        ("ranks", ranks is None or (isinstance(ranks, dict) and bool(ranks)), "ranks by key"),
    ):
        if not is_right:
            return mismatch(name, value_text(item.get(name)), expected)
    return None


def _is_entry(entry: Any) -> bool:
    """Whether an entry of the log can be read."""
    return (
        type(entry) is list
        and 5 <= len(entry) <= 8
        and type(entry[0]) is str
        and entry[0] in _EVENTS
        and type(entry[1]) is str
        and type(entry[2]) is str
        and type(entry[3]) is str
        and is_revision(entry[4])
    )
