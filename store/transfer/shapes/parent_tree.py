"""Trees by the ids of parents, or by codes: rows that name their parents become rows with paths.

The rows come in any order, and are in a temporary database until all are known, so that memory does not grow with them.
Then each gets its key and its place, from the roots down.
"""

import pickle
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from store.engine import ReadUsage, Store
from store.errors import BadInput, BadPath, quantity, shell_words, shorten
from store.metadata.history import current_key, shown_path
from store.model.hierarchy import Hierarchy
from store.model.keys import (
    MAX_SEGMENTS,
    Key,
    ancestor_keys,
    encode_segment,
    id_key,
    node_key,
    parent_sort_key,
    path_of,
)
from store.model.paths import checked_segment, visible_key
from store.model.records import Record, checked_id, derived_id
from store.reading import PAGE_ITEMS, tree_version
from store.sqlite.connection import Scratch
from store.transfer.diff import bare_id
from store.transfer.rows import Link, Part, Rejection, Row, TextRows
from store.transfer.shapes.codes import code_parents, section_parents
from store.transfer.staging import path_text

NO_PARENT = frozenset(("", "0", "#", "-1", "-", "null", "none", "nil", "nan", "n/a", "na", "\\n", "root"))
SPOOLED_ROWS = 1_000  # written at once
MAX_KEY_CHARACTERS = 200  # of a key that is made of a name; with a longer one it is the id
SHOWN_ROWS = 5
NOWHERE = 1 << 30  # a depth that no node has
_ZEROS = re.compile(r"\A0+(?=\w)|(?<=\d)\.0+\Z")  # that a program removes from a number, or adds to it
_SIGNS = re.compile(r"\s*[^\w\s.@'’#-]+\s*|\n")  # between ids in a cell

# `p` is the number of the parent's row, 0 of a root; `pk` and `sk` are the key of the stored node. Rows with negative
# numbers are parents that the file does not have: stored ones, with their level and no `p`, and created ones.
_TABLES = (
    "CREATE TABLE link (n INTEGER PRIMARY KEY, id TEXT, parent TEXT, key TEXT, fixed INTEGER, level TEXT, "
    "node_id TEXT, p INTEGER, pk TEXT, sk TEXT)",
    "CREATE TABLE content (n INTEGER PRIMARY KEY, cells BLOB)",
)
# The deepest of the waiting rows is the next, so that those below a node follow it; without a limit SQLite drops the
# order in a join.
_PLACED = """
    WITH RECURSIVE placed(n, depth) AS (
        SELECT n, CASE WHEN p IS NULL THEN length(sk) - length(replace(sk, '#', '')) ELSE 1 END
        FROM link WHERE p = 0 OR (p IS NULL AND n < 0)
        UNION ALL SELECT link.n, depth + 1 FROM placed JOIN link ON link.p = placed.n ORDER BY 2 DESC LIMIT -1
    )
"""
_WALK = (
    _PLACED
    + "SELECT depth, link.n, key, level, node_id, p, pk, sk, cells "
    + "FROM placed CROSS JOIN link USING (n) LEFT JOIN content USING (n)"
)
_PARTS = re.compile(r"[\W_]+")
_MARKS = ", ".join(f"'{mark}'" for mark in NO_PARENT)
_NO_PARENTS = f"""
    UPDATE link SET parent = '' WHERE lower(parent) IN ({_MARKS})
    AND lower(parent) NOT IN (SELECT lower(id) FROM link WHERE lower(id) IN ({_MARKS}))
"""  # noqa: S608
_TWICE = "SELECT id FROM link GROUP BY id HAVING count(*) > 1"
_LEFT = _PLACED + "SELECT n, p, parent FROM link WHERE n > 0 AND key NOT NULL AND n NOT IN (SELECT n FROM placed)"  # noqa: S608


@dataclass
class ParentTree:
    """The tree of a file by links: its `rows` with their paths, parents first, once it is read.

    `part` makes the part of a node of its cells, its level and its id. In a tree `by_codes` the ids are codes, of which
    each that begins with another one is below it; in one `by_intervals` the parents are a tree and two numbers. With
    `own_ids` the ids of nodes are those of rows, with `has_levels` the file says levels. In a tree `by_names` the ids
    are names, of which leaves below other parents may have the same. With `fold` ids ignore case. `parents` is the
    column of parents, for messages. With `create` a parent that no row has becomes a root. `moving` are the places of
    stored nodes that have another one, None where these are not known. `unlike` says of a parent that differs in case
    from the id of a row.
    """

    hierarchy: Hierarchy
    read: Callable[[], TextRows]
    part: Callable[[list[object], str, str | None], Part]
    by_codes: bool = False
    own_ids: bool = True
    has_levels: bool = False
    by_names: bool = False
    fold: bool = False
    parents: str = ""
    create: bool = False
    split: str = ""  # the signs around whole parts of codes
    skips: bool = False  # rows, which may be parents
    moving: set[Key] | None = None
    unlike: str = ""
    by_intervals: bool = False
    sentences: list[str] = field(default_factory=list)
    _rejections: list[Rejection] = field(default_factory=list)
    _reasons: dict[int, str] = field(default_factory=dict)  # why rows whose children are rejected with them are so
    _rows: int = 0
    _has_nodes: bool = False  # in the store
    _is_read: bool = False

    def spool(self, on_rows: Callable[[int], None] = lambda rows: None) -> None:
        """Read the file; `on_rows` is called with each number of rows. Raises BadInput for codes and intervals that are
        no tree.
        """
        self._db, self._is_read = Scratch(), True
        self._execute = self._db.execute
        self._rejections, self._reasons, self.sentences = [], {}, []
        self._moved, self._reads = set[Key](), ReadUsage()
        for table in _TABLES:
            self._execute(table)
        links: list[tuple[object, ...]] = []
        contents: list[tuple[int, bytes]] = []
        self._execute("BEGIN")
        for row in chain((row for _, row in self.read()), (None,)):
            if isinstance(row, Rejection):
                self._rejections.append(row)
                if row.own:
                    links.append((row.number, row.own, "", *[None] * 4))
            elif row is not None and row.link is not None:
                links.append((row.number, *row.link[:-1]))
                contents.append((row.number, pickle.dumps(row.link.cells)))
            if row is None or len(links) >= SPOOLED_ROWS:
                into = "INSERT INTO link (n, id, parent, key, fixed, level, node_id) VALUES (?, ?, ?, ?, ?, ?, ?)"
                self._db.executemany(into, links)
                self._db.executemany("INSERT INTO content VALUES (?, ?)", contents)
                on_rows(len(links))
                links, contents = [], []
        self._execute("CREATE INDEX by_id ON link (id)")
        self._execute("CREATE INDEX by_node_id ON link (node_id)")
        if self.by_intervals:
            self._link_intervals()
        if self.fold:
            self._fold_ids()
        self._execute(_NO_PARENTS)
        self._join_repeated()
        if self.by_codes:
            self._link_codes()
        if self.by_names:
            self._reject_unclear()
        own = "FROM link WHERE parent = id AND p IS NULL"
        count, first, _ = self._execute(f"SELECT count(*), id, min(n) {own}").fetchone()
        if count:
            are_roots = "is its own parent, a root" if count == 1 else "are their own parents, roots"
            self.sentences.append(f"{quantity(count, 'row')} {are_roots}, such as {_shown(first)}.")
        self._execute("UPDATE link SET p = 0 WHERE parent = id AND p IS NULL")
        self._link()
        self._execute("UPDATE link SET p = 0 WHERE p IS NULL AND parent = ''")
        (self._rows,) = self._execute("SELECT count(*) FROM link").fetchone()

    def _link(self) -> None:
        """Set the parents of the rows that have none yet and whose parents are there."""
        above = "SELECT above.n FROM link above WHERE above.id = link.parent"
        self._execute(f"UPDATE link SET p = ({above}) WHERE p IS NULL AND n > 0")  # noqa: S608

    def _reject(self, reasons: Mapping[int, str]) -> None:
        """Place rows nowhere, so that they are rejected with what is below them."""
        self._reasons |= reasons
        self._db.executemany("UPDATE link SET p = n WHERE n = ?", [(number,) for number in reasons])

    def _fold_ids(self) -> None:
        """Write ids that differ in case only, and those of parents, as the first row does."""
        self._db.create_function("folded", 1, str.casefold, deterministic=True)
        texts = "SELECT id, n FROM link UNION ALL SELECT parent, n + (1 << 40) FROM link"  # ids are before parents
        self._execute(f"CREATE TABLE spelling AS SELECT folded(id) AS folded_id, id, min(n) FROM ({texts}) GROUP BY 1")  # noqa: S608
        self._execute("CREATE INDEX by_folded_id ON spelling (folded_id)")
        first = "(SELECT spelling.id FROM spelling WHERE folded_id = folded(link.{}))"
        self._execute(f"UPDATE link SET id = {first.format('id')}, parent = {first.format('parent')}")  # noqa: S608

    def _join_repeated(self) -> None:
        """Leave out the later rows of an id; those that do not say the same are rejected, with another parent all.

        A name with several parents stays with each of them, and an id that only rejected rows have with the first.
        """
        query = f"""
            SELECT id, parent, n, key, level, node_id, cells FROM link JOIN content USING (n)
            WHERE id IN ({_TWICE}) ORDER BY id, {"parent, " if self.by_names else ""}n
        """  # noqa: S608
        width, said_of = (2 if self.by_names else 1), (str.casefold if self.fold else str)
        first: tuple[Any, ...] = (None,)
        again: list[tuple[int]] = []
        conflicts: dict[int, str] = {}
        rejected = len(self._rejections)
        for row in self._execute(query):
            if row[:width] != first[:width]:
                first = row
                continue
            again.append((row[2],))
            own, said = _shown(row[0]), f"in row {first[2]} already"
            values, others = ([said_of(str(one)) for one in cells[3:6]] for cells in (row, first))
            if row[1] != first[1]:
                parents = [f"the parent {_shown(one)}" if one else "no parent" for one in (first[1], row[1])]
                self._rejections.append(Rejection(row[2], f"{own} has {parents[0]} {said}, not {parents[1]}."))
                conflicts[first[2]] = f"{own} has {parents[1]} in row {row[2]}, and {parents[0]} here."
            elif values != others or _cells(row[6]) != _cells(first[6]):
                self._rejections.append(Rejection(row[2], f"{own} has other values {said}."))
        self._db.executemany("DELETE FROM link WHERE n = ?", again)
        if repeated := len(again) - len(self._rejections) + rejected:
            self.sentences.append(f"repeated: {quantity(repeated, 'row')} that another row equals.")
        if not self.by_names:
            twin = "SELECT 1 FROM link twin WHERE twin.id = link.id AND (twin.key IS NOT NULL OR twin.n < link.n)"
            self._execute(f"DELETE FROM link WHERE key IS NULL AND EXISTS ({twin})")  # noqa: S608
        self._execute("UPDATE link SET p = n WHERE key IS NULL")
        self._reject(conflicts)

    def _reject_unclear(self) -> None:
        """Reject the children of names that several nodes have, whose ids are then made from their paths."""
        ends = [f"(SELECT {end}(twin.n) FROM link twin WHERE twin.id = link.parent)" for end in ("min", "max")]  # noqa: S608
        children = f"SELECT n, parent, {', '.join(ends)} FROM link WHERE parent IN ({_TWICE})"  # noqa: S608
        self._reject({
            number: f"Its parent is not clear: {_shown(parent)} is in row {first} and in row {last}; an id in each "
            "row, or whole paths, tell them apart."
            for number, parent, first, last in self._execute(children)
        })  # fmt: skip
        if self.own_ids:
            self._execute(f"UPDATE link SET node_id = NULL WHERE id IN ({_TWICE})")  # noqa: S608

    def _link_codes(self) -> None:
        codes = [code for (code,) in self._execute("SELECT id FROM link ORDER BY n")]
        parents, jumps = code_parents(codes, self.split)
        sections = section_parents(codes, parents)
        if sections:
            first = _shown(next(iter(sections)))
            self.sentences.append(f"{quantity(len(sections), 'code')} below the letter before them, such as {first}.")
            parents, jumps = parents | sections, [code for code in jumps if code not in sections]
        if codes and not parents:
            raise BadInput(
                f"No code begins with another one, such as {_shown(codes[0])}; prefix= is a column of codes."
            )
        if jumps:
            place = f"below {_shown(parents[jumps[0]])}" if jumps[0] in parents else "a root"
            self.sentences.append(
                f"{quantity(len(jumps), 'code')} below the nearest one that begins it, since that of the parent has no "
                f"row, such as {_shown(jumps[0])}, {place}."
            )
        self._db.executemany(
            "UPDATE link SET parent = ? WHERE id = ?", ((above, own) for own, above in parents.items())
        )

    def _link_intervals(self) -> None:
        for one in self._rejections:
            raise BadInput(f"Row {one.number} has no place in the tree: {one.reason.rstrip('.')}.")
        rows = self._execute("SELECT parent, n, id FROM link ORDER BY parent, n")  # sorted before the first update
        update, count, nested = "UPDATE link SET parent = ? WHERE n = ?", 0, 0
        for (*_, number, _), above in around((*text.split("\0"), *row) for text, *row in rows):
            count, nested = count + 1, nested + (above is not None)
            self._execute(update, (above[-1] if above else "", number))
        if count and not nested:
            raise BadInput("No interval is within another one; left= and right= are the columns of nested sets.")

    async def place(self, store: Store | None) -> None:
        """Give each row its key and its parent, once the file is read; nodes of the store keep their keys.

        Raises BadInput where nodes without the ids of the file are at the places of its nodes.
        """
        name, has_nodes = self.hierarchy.name, False
        if store is not None and not self.by_codes:
            has_nodes = bool((await tree_version(store, name, self._reads)).number)
            if has_nodes:
                await self._find_stored(store)
                await self._find_stored_parents(store)
        self._settle(has_nodes=has_nodes)
        if store is not None and has_nodes:
            await self._find_moved(store)

    def _settle(self, *, has_nodes: bool) -> None:
        self._has_nodes = has_nodes
        self._place_others(has_nodes=has_nodes)
        self._execute("CREATE INDEX by_parent ON link (p, key)")
        self._make_keys_unique()

    async def _keys_of(self, store: Store, ids: Sequence[str]) -> list[Key | None]:
        keys = [id_key(f"{self.hierarchy.name}:{one}") for one in ids]
        return [current_key(item) for item in await store.get(keys, self._reads, strong=True)]

    async def _find_stored(self, store: Store) -> None:
        """Set the keys of stored nodes; what an interrupted import put aside gets its former key, as all others."""
        found = self._execute("SELECT n, node_id FROM link WHERE node_id IS NOT NULL ORDER BY n")
        update = "UPDATE link SET pk = ?, sk = ?, key = CASE WHEN fixed THEN key ELSE ? END WHERE n = ?"
        while page := found.fetchmany(PAGE_ITEMS):
            keys = zip(page, await self._keys_of(store, [node_id for _, node_id in page]), strict=True)
            stored = [(*key, shown_path(path_of(*key))[-1], number) for (number, _), key in keys if key]
            self._db.executemany(update, stored)

    async def _find_stored_parents(self, store: Store) -> None:
        """Add the stored nodes that rows name as their parents and the file does not have."""
        orphans = self._execute("SELECT DISTINCT parent FROM link WHERE p IS NULL").fetchall()
        parents = [parent for (parent,) in orphans if self.own_ids]
        for start in range(0, len(parents), PAGE_ITEMS):
            page = parents[start : start + PAGE_ITEMS]
            found = zip(page, await self._keys_of(store, [node_id_of(one) for one in page]), strict=True)
            stored = [(parent, key) for parent, key in found if key]
            items = await store.get([key for _, key in stored], self._reads, strong=True)
            for (parent, key), item in zip(stored, items, strict=True):
                if item is not None:
                    self._add_parent(parent, level=Record.of(item).level, pk=key.pk, sk=key.sk)
        self._link()

    def _add_parent(self, own: str, **values: object) -> None:
        names, marks = ", ".join(values), ", ?" * len(values)
        (lowest,) = self._execute("SELECT min(0, coalesce(min(n), 0)) FROM link").fetchone()
        self._execute(f"INSERT INTO link (n, id, {names}) VALUES (?, ?{marks})", (lowest - 1, own, *values.values()))  # noqa: S608

    def _place_others(self, *, has_nodes: bool) -> None:
        """Place the rows whose parent is nowhere: the tops of a tree without its root, or below parents to create."""
        orphans = "FROM link WHERE p IS NULL AND n > 0"
        parents = [parent for (parent,) in self._execute(f"SELECT DISTINCT parent {orphans}")]
        faults = self._faults_of(parents)
        rows = self._execute(f"SELECT n, parent {orphans}")
        self._reject({number: faults[parent] for number, parent in rows if parent in faults})
        parents = [parent for parent in parents if parent not in faults]
        if self.by_codes:
            self._execute("UPDATE link SET p = 0 WHERE p IS NULL")
        elif self.create:
            for parent in parents:
                self._add_parent(
                    parent, key=_key(parent, parent), fixed=0, node_id=node_id_of(parent) if self.own_ids else None, p=0
                )
            self._link()
            if parents:
                self.sentences.append(f"created: {quantity(len(parents), 'parent')} without a row.")
        elif len(parents) == 1 and not self._execute("SELECT 1 FROM link WHERE p = 0 OR n < 0").fetchone():
            count, roots = self._execute(f"SELECT count(*), sum(sk = '#') {orphans}").fetchone()
            if roots or not has_nodes:
                self._execute("UPDATE link SET p = 0 WHERE p IS NULL")
                self.sentences.append(
                    f"No row has the id {_shown(parents[0])}, the parent of {quantity(count, 'row')}, which are roots."
                )

    def _faults_of(self, parents: Collection[str]) -> dict[str, str]:
        """Why parents that no row has are not created: a row has them in another spelling, or they are several."""
        alike: dict[str, list[str]] = {}
        found: dict[str, str] = {}
        parts: dict[str, str] = {}  # why a parent is not the id of a row, but ends as that does
        ends = {end: parent for parent in parents for end in (*endings(parent), parent)}
        for parent in parents:
            alike.setdefault(_ZEROS.sub("", parent.casefold()), []).append(parent)
        for number, own in self._execute("SELECT n, id FROM link WHERE n > 0 ORDER BY n") if parents else ():
            for parent in alike.get(_ZEROS.sub("", own.casefold()), ()):
                lacks = f"No row has the id {_shown(parent)} of its parent"
                way = "zeros only: write it alike in both columns"
                if parent.casefold() == own.casefold():
                    self.unlike = self.unlike or f"{lacks}, but {_shown(own)} of row {number}"
                    way = "case only: --fold-case id ignores case"
                found.setdefault(parent, f"{lacks}; {_shown(own)} of row {number} differs in {way}.")
            if other := next(filter(None, map(ends.get, (own, *endings(own)))), ""):
                said = f"No row has the id {_shown(other)} of its parent, but row {number} has {_shown(own)}"
                parts.setdefault(other, f"{said}; write it alike in both columns.")
        way = "write one of them, or a row for each" if self.by_names else "write one of them"
        for parent in {*parents} - found.keys():
            several = [*filter(None, _SIGNS.split(parent))]
            known = [self._execute("SELECT 1 FROM link WHERE id = ?", (one,)).fetchone() for one in several]
            if len(several) > 1 and (all(known) or (any(known) and re.search("[;|]", parent))):
                names = f"{len(several)} parents, {' and '.join(map(_shown, several[:SHOWN_ROWS]))}"
                found[parent] = f'Column "{self.parents}" has {names}, and a node has one place; {way}.'
        return {**parts, **found} if 2 * len(parts) >= len(parents) else found

    def _make_keys_unique(self) -> None:
        """Add their ids to equal keys of siblings, but not to that which was there, else to the first."""
        twice = "SELECT p, key FROM link WHERE p IS NOT NULL GROUP BY p, key HAVING count(*) > 1"
        same = "SELECT n, id, fixed, pk, sk FROM link WHERE p = ? AND key = ?"
        for parent, key in self._execute(twice).fetchall():
            above = self._execute("SELECT pk, sk FROM link WHERE n = ?", (parent,)).fetchone() or (None, "")
            rows = self._execute(same, (parent, key)).fetchall()

            def order(row: Any, above: Any = above) -> tuple[object, ...]:
                _, own, fixed, pk, sk = row
                place = (None, "") if sk in (None, "#") else (pk, parent_sort_key(sk))
                natural = (len(own), own) if own.isdecimal() else (1 << 30, own)
                return not fixed, pk is None or place != above, pk is None, natural

            for number, own, fixed, *_ in sorted(rows, key=order)[1:]:
                if not fixed:
                    self._set_key(parent, number, key, own)

    def _set_key(self, parent: int, number: int, key: str, own: str) -> None:
        """Give a row the first of the keys with its id that no sibling has."""
        for found in (_key(f"{key} ({own})", ""), f"{key} ({node_id_of(own)})", f"{key} ({hashed_id(own)})"):
            taken = self._execute("SELECT 1 FROM link WHERE p = ? AND key = ?", (parent, found)).fetchone()
            if found and not taken:
                self._execute("UPDATE link SET key = ? WHERE n = ?", (found, number))
                return

    async def _find_moved(self, store: Store) -> None:
        """Find the stored nodes that get another place, and add their ids to the keys of nodes that come to where a
        stored one is that the file does not have.
        """
        query = """
            SELECT link.n, link.id, link.key, link.p, link.fixed, link.pk, link.sk, above.pk, above.sk
            FROM link LEFT JOIN link above ON above.n = link.p
            WHERE link.p IS NOT NULL AND link.node_id IS NOT NULL ORDER BY link.n
        """
        found = self._execute(query)
        while page := found.fetchmany(PAGE_ITEMS):
            coming: list[tuple[Any, Key]] = []
            for row in page:
                _, _, key, parent, _, pk, sk, above_pk, above_sk = row
                place = Key(above_pk or "", f"{above_sk}{encode_segment(key)}#")  # as if the parent did not move
                if not parent:
                    place = node_key(self.hierarchy.name, (key,))
                if pk and (pk, sk) != place:
                    self._moved.add(Key(pk, sk))
                if (pk, sk) != place and place.pk:
                    coming.append((row, place))
            items = await store.get([place for _, place in coming], self._reads, strong=True)
            for ((number, own, key, parent, fixed, *_), place), item in zip(coming, items, strict=True):
                node_id = item and bare_id(Record.of(item))
                if not node_id or self._execute("SELECT 1 FROM link WHERE node_id = ?", (node_id,)).fetchone():
                    continue
                is_derived = node_id == derived_id(self.hierarchy.name, path_of(*place))
                if is_derived and self.by_names:  # a node without an id is that of its path
                    self._execute("UPDATE link SET node_id = NULL WHERE n = ?", (number,))
                    continue
                if is_derived:
                    raise BadInput(
                        f"{path_text(*place)} is stored without the id {_shown(own)} of row {number}, as by a file "
                        "of paths; nothing was imported. Import this file by paths, too, or delete the stored nodes."
                    )
                if not fixed:
                    self._set_key(parent, number, key, own)

    def rows(self) -> Iterator[Row | Rejection]:
        """The rows with their paths, parents first, and those that have no place; as in an empty store before `place`.

        Raises BadInput where the file has no levels, and its places do not say them.
        """
        if not self._is_read:
            self.spool()
            self._settle(has_nodes=False)
        moving = set[Key]()
        self.moving = None if self.by_codes else moving
        yield from self._rejections
        path: list[str] = []
        levels: list[str] = []
        lost = (0, NOWHERE)  # number and depth of a row that is rejected with what is below it
        rows = 0
        for depth, number, key, level, node_id, above, pk, sk, cells in self._execute(_WALK):
            if above is None:  # stored, and not in the file
                path, levels, lost = [*path_of(pk, sk)], [level] * depth, (0, NOWHERE)
                continue
            rows += number > 0
            reason = ""
            if depth > lost[1]:
                reason = f"Its parent, row {lost[0]}, was rejected."
            elif depth > MAX_SEGMENTS:
                reason = f"The node is more than {MAX_SEGMENTS} levels deep."
            elif not level:
                level, reason = level_below(self.hierarchy, levels[depth - 2] if depth > 1 else None)
                if reason and not self.has_levels:
                    raise BadInput(reason)
                reason = reason and f"{reason.partition('; ')[0]}; the row says no level."
            if depth <= lost[1]:
                lost = (number, depth) if reason else (0, NOWHERE)
            path[depth - 1 :], levels[depth - 1 :] = [key], [level]
            if reason:
                yield Rejection(number, reason)
                continue
            if pk and self._moved:  # what is below a moved node comes along, perhaps away from its own path
                stored = Key(pk, sk)
                if not self._moved.isdisjoint((stored, *ancestor_keys(stored))):
                    moving.add(node_key(self.hierarchy.name, tuple(path)))
            part = self.part(_cells(cells), level, node_id) if cells else Part(level, None, node_id)
            yield Row(number, [*path], [part], is_exact=True)
        if rows < self._rows:
            yield from self._without_place()

    def _without_place(self) -> Iterator[Rejection]:
        """The rejections of rows in circles, without a parent, and below both."""
        left = {number: (above, parent) for number, above, parent in self._execute(_LEFT)}
        circles: dict[int, str] = {}
        seen: set[int] = set()
        for number in left:
            trail: list[int] = []
            step: int = number
            while step in left and step not in seen:
                seen.add(step)
                trail.append(step)
                step = left[step][0] or 0
            if step in trail:
                circle = trail[trail.index(step) :]
                rows = ", ".join(map(str, sorted(circle)[:SHOWN_ROWS])) + (", …" if len(circle) > SHOWN_ROWS else "")
                circles |= dict.fromkeys(circle, f"The parents are a circle of the rows {rows}.")
        for number, (above, parent) in left.items():
            reason = f"Its parent, row {above}, was rejected."
            if above is None:
                null = shell_words(["--null", f"{self.parents}={parent}"])
                ways = f"--create-parents makes it a root, {null} takes it for none"
                if self.skips:
                    ways = f"--skip may have left it out. {ways}"
                if self.by_names and self._has_nodes:  # of which several may have the name
                    ways = "import it with the row of its parent"
                reason = f"No row has the id {_shown(parent)} of its parent; {ways}."
            yield Rejection(number, self._reasons.get(number) or circles.get(number) or reason)


def level_below(hierarchy: Hierarchy, above: str | None) -> tuple[str, str]:
    """The only level below another one, or that one where it nests in itself; else why there is none."""
    levels = [level.name for level in hierarchy.levels.values() if above in level.under]
    if above in levels or len(levels) == 1:
        return (above if above and above in levels else levels[0]), ""
    place = f"Below {above}" if above else "As a root"
    if not levels:
        return "", f"{place} nothing may stand."
    return "", f"{place} there may be {' or '.join(levels)}; level=COLUMN of --tree-by names the column of levels."


def endings(text: str) -> list[str]:
    """What is behind each sign in an id, such as 01.1 and 1 in `class:01.1`."""
    return [text[sign.end() :] for sign in _PARTS.finditer(text)]


def node_id_of(text: str) -> str:
    """The id of a node by that of a file: the same, or a hash of it where it cannot be one, such as a web address."""
    try:
        return checked_id(text)
    except BadInput:
        return hashed_id(text)


def hashed_id(text: str) -> str:
    """An id that is always the same for a text."""
    return derived_id("", (text,))


def around(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Sequence[Any], Sequence[Any] | None]]:
    """Each of the sorted rows of a tree, a left and a right number, and the number of the row, with that whose interval
    is the narrowest one around it. Raises BadInput where two are not nested.
    """
    above: list[Sequence[Any]] = []
    for row in rows:
        tree, left, right, number, *_ = row
        while above and (above[-1][0] != tree or above[-1][2] < left):
            above.pop()
        if above and (left == above[-1][1] or right >= above[-1][2]):
            _, low, high, other, *_ = above[-1]
            raise BadInput(
                f"Row {number} has the interval {int(left)} to {int(right)} and row {other} {int(low)} to {int(high)}: "
                "they cross or share a number, so that their places are not known. Number the nodes again, name the "
                "column of their trees by tree=, or import the file by the ids of parents."
            )
        yield row, above[-1] if above else None
        above.append(row)


def link_of(own: str, parent: str, keys: Iterable[str], *others: Any) -> Link:
    """The link of a row whose key is the first of these texts that can be one, else its id."""
    key = next((key for text in keys if (key := _key(text, ""))), "") or _key(own, hashed_id(own))
    return Link(own, parent, key, *others)


def _key(text: str, other: str) -> str:
    """A text as a key without what nobody sees, the other where it cannot be one."""
    try:
        key = visible_key(checked_segment(text)) if len(text) <= MAX_KEY_CHARACTERS else ""
    except BadPath:
        key = ""
    return key or other


def _cells(pickled: bytes) -> list[object]:
    return list(pickle.loads(pickled))  # noqa: S301 - written by this process


def _shown(text: str) -> str:
    return f'"{shorten(text)}"'
