"""Trees by parent ids: rows with the id of a node and that of its parent become rows with paths.

The rows come in any order. They are kept in a temporary SQLite file until all are known, so that memory does not grow
with them; then each gets its key and its place, from the roots down.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.metadata.history import current_key
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS, Key, ancestor_keys, id_key, node_key, path_of
from store.model.paths import checked_segment
from store.model.records import derived_id
from store.reading.active_moves import tree_version
from store.reading.pages import PAGE_ITEMS
from store.sqlite.connection import Connection, scratch_database
from store.text import shorten
from store.transfer.created_parents import levels_between
from store.transfer.file_shape import NO_PARENT, cycles
from store.transfer.formats.table_rows import NotLike
from store.transfer.formats.tree_tables import hashed_id, is_node_id, natural_order, other_keys
from store.transfer.move_existing import own_key, stays
from store.transfer.planned_nodes import path_text
from store.transfer.rows import Part, Rejection, Row

SPOOL_ROWS = 1_000  # written at once
_DIVIDER = "\x01"  # of the keys of a path, which no key has
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

_TABLES = """
CREATE TABLE content (n INTEGER PRIMARY KEY, level TEXT, name TEXT, attributes BLOB);
CREATE TABLE link (n INTEGER PRIMARY KEY, id TEXT, parent TEXT, key TEXT, node_id TEXT, p INTEGER, pk TEXT, sk TEXT);
CREATE TABLE placed (n INTEGER, state INTEGER, depth INTEGER, path TEXT);
CREATE TABLE no_parent (text TEXT PRIMARY KEY);
CREATE TABLE rejected (n INTEGER PRIMARY KEY, reason TEXT);
"""
_INDEXES = """
CREATE INDEX by_id ON link (id);
CREATE INDEX by_node_id ON link (node_id) WHERE node_id IS NOT NULL;
"""

_PLACED, _LOST = 0, 1  # states of rows below a root or a stored node, and below a rejected row; 2 of those too deep


@dataclass
class ParentTree:
    """The rows of a tree by parent ids: `add` them, `place` them, then take the `rows` with their paths.

    With `create` a parent that no row has becomes a root. With `follows_keys` a stored node gets the key of its row,
    else it keeps its own. `moving` are the ids of stored nodes that get another path. `has_other_ids` where ids of the
    file cannot be ids of nodes.
    """

    hierarchy: Hierarchy
    db: Connection
    create: bool = False
    follows_keys: bool = False
    moving: set[str] = field(default_factory=set)
    created: Counter[str] = field(default_factory=Counter)
    has_other_ids: bool = False
    _links: list[tuple[object, ...]] = field(default_factory=list)
    _contents: list[tuple[object, ...]] = field(default_factory=list)
    _columns: dict[str, dict[str, str]] = field(default_factory=dict)
    _first_children: dict[int, int] = field(default_factory=dict)
    _reads: ReadUsage = field(default_factory=ReadUsage)

    def add(self, row: Row) -> None:
        """Add a row with a parent."""
        (part,), own = row.parts, str(row.path[0])
        node_id = None if part.id == own else part.id
        self.has_other_ids = self.has_other_ids or node_id is not None
        self._columns.setdefault(part.level, dict(part.columns))
        self._links.append((row.number, own, row.parent, checked_segment(row.key), node_id))
        self._contents.append((row.number, part.level, part.name, _encode(part.attributes)))
        if len(self._links) >= SPOOL_ROWS:
            self._flush()

    def _flush(self) -> None:
        self.db.executemany("INSERT INTO link (n, id, parent, key, node_id) VALUES (?, ?, ?, ?, ?)", self._links)
        self.db.executemany("INSERT INTO content VALUES (?, ?, ?, ?)", self._contents)
        self._links.clear()
        self._contents.clear()

    async def place(self, store: Store) -> None:
        """Give each row its key and its place; stored nodes with the ids of rows keep their keys."""
        self._flush()
        self.db.executescript(_INDEXES)
        self._reject_second_parents()
        self._link_parents()
        has_nodes = bool((await tree_version(store, self.hierarchy.name, self._reads)).number)
        if has_nodes:
            await self._find_stored(store)
            await self._find_stored_parents(store)
        if self.create:
            self._create_parents()
        self.db.execute("CREATE INDEX by_parent ON link (p, key)")
        self._make_keys_unique()
        if has_nodes:
            await self._avoid_stored_keys(store)
        self._descend()
        self._rejectcycles()

    # -- parents -------------------------------------------------------------------------------------------------------

    def _reject_second_parents(self) -> None:
        """Reject the later rows of an id; those that say the same again are left out."""
        query = """
            SELECT id, link.n, parent, key, level, name, attributes FROM link JOIN content USING (n)
            WHERE id IN (SELECT id FROM link GROUP BY id HAVING count(*) > 1) ORDER BY id, link.n
        """
        first: tuple[Any, ...] = (None,)
        reasons: list[tuple[int, str]] = []
        again: list[tuple[int]] = []
        for row in self.db.execute(query):
            if row[0] != first[0]:
                first = row
                continue
            again.append((row[1],))
            if row[2] != first[2]:
                places = [f"the parent {_shown(one)}" if one else "no parent" for one in (first[2], row[2])]
                reasons.append(
                    (row[1], f"{_shown(row[0])} has {places[0]} in row {first[1]} already, not {places[1]}.")
                )
            elif row[3:] != first[3:]:
                reasons.append((row[1], f"{_shown(row[0])} has other values in row {first[1]} already."))
        self.db.executemany("DELETE FROM link WHERE n = ?", again)
        self._reject(reasons)

    def _link_parents(self) -> None:
        """Set `p`: the number of the parent's row, 0 of a root; it stays NULL where no row has the parent's id."""
        self.db.execute("UPDATE link SET p = (SELECT above.n FROM link above WHERE above.id = link.parent)")
        self.db.executemany("INSERT INTO no_parent VALUES (?)", [(text,) for text in NO_PARENT])
        self.db.execute(
            "UPDATE link SET p = 0 WHERE parent = id OR (p IS NULL AND lower(parent) IN (SELECT text FROM no_parent))"
        )

    def _link_to_others(self) -> None:
        """Set `p` of rows to parents that have no row, whose numbers are negative."""
        other = "SELECT above.n FROM link above WHERE above.id = link.parent AND above.n < 0"
        self.db.execute(f"UPDATE link SET p = ({other}) WHERE p IS NULL AND n > 0")  # noqa: S608

    def _create_parents(self) -> None:
        """Add a root for each parent that no row has."""
        orphans = "SELECT parent, min(n) FROM link WHERE p IS NULL AND n > 0 GROUP BY parent ORDER BY min(n)"
        (lowest,) = self.db.execute("SELECT min(0, min(n)) FROM link").fetchone()
        for parent, child in self.db.execute(orphans).fetchall():
            (below,) = self.db.execute("SELECT level FROM content WHERE n = ?", (child,)).fetchone()
            if levels := levels_between(self.hierarchy, None, below, 1):
                lowest -= 1
                node_id = None if is_node_id(parent) else hashed_id(parent)
                own = (lowest, parent, node_id or parent, node_id)
                self.db.execute("INSERT INTO link (n, id, key, node_id, p) VALUES (?, ?, ?, ?, 0)", own)
                self.db.execute("INSERT INTO content (n, level) VALUES (?, ?)", (lowest, levels[0]))
                self.created[levels[0]] += 1
                self._first_children[lowest] = child
        self._link_to_others()

    # -- nodes that are stored -----------------------------------------------------------------------------------------

    async def _find_stored(self, store: Store) -> None:
        """Find the stored nodes that have the ids of rows, which keep their keys."""
        query = "SELECT n, coalesce(node_id, id), id, key FROM link WHERE n > ? ORDER BY n LIMIT ?"
        for rows in self._pages(query):
            keys = await self._keys_of(store, [row[1] for row in rows])
            found = [(own_key(key, row[2], row[3], self.follows_keys), *key, row[0])
                     for row, key in zip(rows, keys, strict=True) if key is not None]  # fmt: skip
            self.db.executemany("UPDATE link SET key = ?, pk = ?, sk = ? WHERE n = ?", found)

    async def _find_stored_parents(self, store: Store) -> None:
        """Find the stored nodes that are parents of rows and have no row themselves."""
        query = "SELECT DISTINCT parent FROM link WHERE p IS NULL"
        number = 0
        orphans = self.db.execute(query).fetchall()
        for start in range(0, len(orphans), PAGE_ITEMS):
            rows = orphans[start : start + PAGE_ITEMS]
            ids = [parent if is_node_id(parent) else hashed_id(parent) for (parent,) in rows]
            for (parent,), key in zip(rows, await self._keys_of(store, ids), strict=True):
                if key is not None:
                    number -= 1
                    self.db.execute("INSERT INTO link (n, id, pk, sk) VALUES (?, ?, ?, ?)", (number, parent, *key))
        self._link_to_others()

    def _pages(self, query: str) -> Iterator[list[Any]]:
        """The rows of a query by number, page by page, since they are changed meanwhile."""
        last = 0
        while page := self.db.execute(query, (last, PAGE_ITEMS)).fetchall():
            yield page
            last = page[-1][0]

    async def _keys_of(self, store: Store, ids: Sequence[str]) -> list[Key | None]:
        keys = [id_key(f"{self.hierarchy.name}:{one}") for one in ids]
        return [current_key(item) for item in await store.get(keys, self._reads, strong=True)]

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _make_keys_unique(self) -> None:
        """Add their ids to equal keys of siblings, except to that of the node that is there, else of the first id."""
        twice = "SELECT p, key FROM link WHERE p IS NOT NULL AND key IS NOT NULL GROUP BY p, key HAVING count(*) > 1"
        same = "SELECT n, id, key, pk, sk FROM link WHERE p = ? AND key = ?"
        for parent, key in self.db.execute(twice).fetchall():
            above = self.db.execute("SELECT pk, sk FROM link WHERE n = ?", (parent,)).fetchone()
            rows = self.db.execute(same, (parent, key)).fetchall()
            rows.sort(key=lambda row: (not stays(row[3:], above), row[3] is None, natural_order(row[1])))
            for number, own, *_ in rows[1:]:
                self._set_key(parent, number, key, own)

    def _set_key(self, parent: int, number: int, key: str, own: str) -> None:
        taken = "SELECT 1 FROM link WHERE p = ? AND key = ?"
        for found in other_keys(key, own):
            if self.db.execute(taken, (parent, found)).fetchone() is None:
                self.db.execute("UPDATE link SET key = ? WHERE n = ?", (found, number))
                return

    async def _avoid_stored_keys(self, store: Store) -> None:
        """Add their ids to the keys of nodes that come to a place where a node is that the file does not have."""
        query = """
            SELECT link.n, link.id, link.key, link.p, link.pk, link.sk, above.pk, above.sk
            FROM link LEFT JOIN link above ON above.n = link.p
            WHERE link.n > ? AND (link.p = 0 OR above.pk IS NOT NULL) ORDER BY link.n LIMIT ?
        """
        for rows in self._pages(query):
            places = {
                row[0]: node_key(self.hierarchy.name, (*(path_of(row[6], row[7]) if row[6] else ()), row[2]))
                for row in rows
            }
            coming = [row for row in rows if row[4:6] != places[row[0]]]
            items = await store.get([places[row[0]] for row in coming], self._reads, strong=True) if coming else []
            for (number, own, key, parent, *_), item in zip(coming, items, strict=True):
                place = places[number]
                bare = cast(str, item["id"]).partition(":")[2] if item else ""
                if not bare or self._has_row(bare):
                    continue
                if bare == derived_id(self.hierarchy.name, path_of(*place)):
                    raise BadInput(
                        f"{path_text(*place)} is stored without the id {_shown(own)} of row {number}, as by a file of "
                        "paths; nothing was imported. Import this file by paths, too, or delete the stored nodes first."
                    )
                self._set_key(parent, number, key, own)

    def _has_row(self, node_id: str) -> bool:
        query = "SELECT 1 FROM link WHERE (id = ? AND node_id IS NULL) OR node_id = ?"
        return self.db.execute(query, (node_id, node_id)).fetchone() is not None

    # -- places --------------------------------------------------------------------------------------------------------

    def _descend(self) -> None:
        """Place the rows from the roots down, those without a parent and what is too deep each with what is below."""
        execute = self.db.execute
        execute("INSERT INTO placed SELECT n, ?, 1, key FROM link WHERE p = 0", (_PLACED,))
        execute("INSERT INTO placed SELECT n, ?, 1, '' FROM link WHERE p IS NULL AND n > 0", (_LOST,))
        stored = execute("SELECT n, pk, sk FROM link WHERE p IS NULL AND n < 0").fetchall()
        for number, pk, sk in stored:
            path = path_of(pk, sk)
            execute("INSERT INTO placed VALUES (?, ?, ?, ?)", (number, _PLACED, len(path), _DIVIDER.join(path)))
        last, end = 0, self._last_placed()
        while end > last:
            execute(
                """
                INSERT INTO placed SELECT link.n,
                    CASE WHEN above.state = 0 AND above.depth >= ?1 THEN 2 ELSE above.state END, above.depth + 1,
                    CASE WHEN above.state = 0 AND above.depth < ?1 THEN above.path || ?2 || link.key ELSE '' END
                FROM placed above JOIN link ON link.p = above.n WHERE above.rowid > ?3 AND above.rowid <= ?4
                """,
                (MAX_SEGMENTS, _DIVIDER, last, end),
            )
            last, end = end, self._last_placed()

    def _last_placed(self) -> int:
        return cast(int, self.db.execute("SELECT coalesce(max(rowid), 0) FROM placed").fetchone()[0])

    def _rejectcycles(self) -> None:
        """Reject the rows that have no place."""
        self._reject(self._reasons())
        counts = self.db.execute("SELECT (SELECT count(*) FROM link), (SELECT count(*) FROM placed)").fetchone()
        if counts[0] == counts[1]:
            return
        self.db.execute("CREATE INDEX place_of ON placed (n)")
        left = self.db.execute("SELECT n, p, id FROM link WHERE n NOT IN (SELECT n FROM placed)")
        parents = {number: (parent, own) for number, parent, own in left}
        self._reject(cycles(parents))

    def _reasons(self) -> Iterator[tuple[int, str]]:
        query = "SELECT n, state, parent, p FROM placed JOIN link USING (n) WHERE state > 0"
        for number, state, parent, above in self.db.execute(query):
            if above is not None and state == _LOST:
                yield number, f"Its parent, row {above}, was rejected."
            elif state == _LOST:
                yield number, f"No row has the id of its parent, {_shown(parent)}; --create-parents makes it a root."
            else:
                yield number, f"The node is more than {MAX_SEGMENTS} levels deep."

    def _reject(self, reasons: Iterable[tuple[int, str]]) -> None:
        self.db.executemany("INSERT OR IGNORE INTO rejected VALUES (?, ?)", reasons)

    def rows(self) -> Iterator[Row | Rejection]:
        """The rows with their paths, parents first, and those that are rejected."""
        for number, reason in self.db.execute("SELECT n, reason FROM rejected ORDER BY n"):
            yield Rejection(number, reason)
        query = """
            SELECT n, path, coalesce(node_id, id), pk, sk, level, name, attributes
            FROM placed JOIN link USING (n) JOIN content USING (n) WHERE state = 0 ORDER BY path
        """
        moved: set[Key] = set()
        for number, path, node_id, pk, sk, level, name, encoded in self.db.execute(query):
            keys = path.split(_DIVIDER)
            if pk is not None and node_key(self.hierarchy.name, tuple(keys)) != (pk, sk):
                moved.add(Key(pk, sk))
                self.moving.add(node_id)
            part = Part(level, name, node_id, _attributes(encoded), columns=self._columns.get(level, {}))
            yield Row(self._first_children.get(number, number), keys, [part])
        stored = "SELECT coalesce(node_id, id), pk, sk FROM link WHERE pk IS NOT NULL AND n > 0"
        for node_id, pk, sk in self.db.execute(stored) if moved else ():
            if not moved.isdisjoint(ancestor_keys(Key(pk, sk))):  # it comes along, perhaps away from its path
                self.moving.add(node_id)


@contextmanager
def parent_tree(hierarchy: Hierarchy, *, create: bool, follows_keys: bool) -> Iterator[ParentTree]:
    """A tree by parent ids without rows, whose temporary file is there while the block runs."""
    with TemporaryDirectory(prefix="clade-") as folder:
        connection = scratch_database(Path(folder) / "rows.db")
        try:
            connection.executescript(_TABLES)
            connection.execute("BEGIN")
            yield ParentTree(hierarchy, connection, create, follows_keys)
        finally:
            connection.close()


def _attributes(encoded: bytes | None) -> dict[str, object]:
    found: dict[str, object] = _decode(encoded) if encoded else {}
    return {name: NotLike(*value) if type(value) is list else value for name, value in found.items()}


def _shown(text: str) -> str:
    return f'"{shorten(text)}"'
