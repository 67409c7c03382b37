"""Tree diff: the changes that make one tree as a file has it, by a merge of two sorted lists.

The records of the table and the nodes of the file both come in key order, which is depth-first. So the ancestors of the
present node are on one stack, and in memory are only changes and the ancestors of changes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from msgspec.structs import replace

from store.errors import BadInput
from store.model.hierarchy import Hierarchy, may_stand, misplaced
from store.model.keys import Key, parent_sort_key
from store.model.ranks import is_manual, ordered_ranks, rank_after
from store.model.records import Item, Record, check_content
from store.transfer.rows import ImportPlan, Rejection
from store.transfer.staging import Node, Tree, path_text

Update = tuple[Record, Record]  # a node before and after it


@dataclass(slots=True)
class _OpenNode:
    """A node on the stack: of the table where it has a `record`, else one that will be created.

    `in_file` where it or an ancestor is in the file, `kept` where it must stay. `unknown` says why nothing below it is
    known: its row, or that of an ancestor, was not understood. `ranks` are those of its reordered children, with an
    order those of all, `ranked` its children to be created with such a rank, `ordered` its children in the file with
    their records.
    """

    sk: str
    level: str
    record: Record | None
    in_file: bool
    kept: bool
    unknown: str = ""
    ranks: list[str] = field(default_factory=list)
    ranked: list[Node] = field(default_factory=list)
    ordered: list[tuple[Node, Record | None]] = field(default_factory=list)


@dataclass
class TreeDiff:
    """The changes of a tree, by a merge: `add` the table's node items in key order, page by page, then `finish`.

    With `prune`, nodes below those of the file that the file does not have are removed, unless they are on the path of
    a row, which may be rejected. Nothing is created, changed or removed below a stored node whose row is rejected, or
    whose id the file has elsewhere: what the file says of it is not known. The rows below it are rejected. `prunable`
    is the number of nodes that would be removed if the file did not have them.
    `created` are parents first, those that the file only names in paths included, whose sort keys are `implied`.
    `updated` are old and new state, `removed` children first. An updated record has its next revision, and still the
    time of the former one; `circles` are the sort keys of the first ones of those that belong into one transaction.
    `undeleted` are nodes that stay although the file says that they are no more. `above` are the table's records of all
    ancestors of changes, by sort key. `ranks` are the new ranks of nodes by sort key, where the plan has an order.
    """

    plan: ImportPlan
    tree: Tree
    prune: bool
    created: list[Node] = field(default_factory=list)
    implied: set[str] = field(default_factory=set)
    updated: list[Update] = field(default_factory=list)
    circles: set[str] = field(default_factory=set)
    removed: list[Record] = field(default_factory=list)
    undeleted: list[Key] = field(default_factory=list)
    above: dict[str, Record] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0
    prunable: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    _stack: list[_OpenNode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._updates: dict[str, int] = {}  # places in `updated` by sort key
        self._rejected = dict(self.tree.rejected)
        self._rejected_keys = sorted(self._rejected)
        self._rest = [self.tree.nodes[sk] for sk in sorted(self.tree.nodes, reverse=True)]

    def add(self, items: Iterable[Item]) -> None:
        for record in map(Record.of, items):
            while self._rest and self._rest[-1].sk < record.sk:
                self._create(self._rest.pop())
            self._compare(record, self._rest.pop() if self._rest and self._rest[-1].sk == record.sk else None)

    def finish(self) -> None:
        while self._rest:
            self._create(self._rest.pop())
        self._close("")

    def _create(self, node: Node) -> None:
        """Add a node that the table does not have."""
        above = self._close(node.sk)
        if above is not None:
            above.kept = True
        try:
            # A node that is to go below itself is rejected where its id is looked up, with that reason.
            if above is not None and above.unknown and not self._is_open(node.id):
                raise BadInput(above.unknown)
            parents, under = self._missing_parents(node, above), above.level if above else None
            for one in (*parents, node):
                self._check_new(one, under)
                under = one.level
        except BadInput as error:
            self._reject(node, str(error))
            return
        self._record_stack()
        for one in (*parents, node):
            self.created.append(one)
            if self.plan.order:
                self._note_order(one, None)
            elif self._stack and one.rank is not None:
                self._stack[-1].ranked.append(one)
            if one is not node or (self._rest and self._rest[-1].sk.startswith(node.sk)):
                self._stack.append(_OpenNode(one.sk, one.level, None, in_file=True, kept=True))
        self.implied.update(one.sk for one in parents)

    def _compare(self, record: Record, node: Node | None) -> None:
        """Compare a node of the table with the file's, if there is one."""
        above, sk = self._close(record.sk), record.sk
        if above is not None and (self.plan.order or is_manual(record.rank)):
            above.ranks.append(record.rank)
        unknown = above.unknown if above is not None else ""
        is_below_file, accepted = above is not None and above.in_file, False
        if node is not None:
            try:
                if unknown:
                    raise BadInput(unknown)
                self._update(node, record)
                accepted = True
                if self.plan.order:
                    self._note_order(node, record)
            except BadInput as error:
                self._reject(node, str(error))
        unknown = unknown or self._why_unknown(record, node, accepted=accepted)
        if unknown and (row := self.plan.deleted.get(record.key)):
            self.rejections.append(Rejection(row, unknown))
            self.undeleted.append(record.key)
        in_file = accepted or is_below_file
        kept = accepted or bool(unknown) or not (self.prune and in_file) or self._has_rejected(sk)
        self.prunable += is_below_file and not unknown
        self._stack.append(_OpenNode(sk, record.level, record, in_file=in_file, kept=kept, unknown=unknown))

    def _has_rejected(self, sk: str) -> bool:
        """Whether a row was rejected whose path leads through a node."""
        index = bisect_left(self._rejected_keys, sk)
        return index < len(self._rejected_keys) and self._rejected_keys[index].startswith(sk)

    def _is_open(self, node_id: str | None) -> bool:
        return any(one.record is not None and bare_id(one.record) == node_id for one in self._stack)

    def _why_unknown(self, record: Record, node: Node | None, *, accepted: bool) -> str:
        """Why it is not known what the file says of a node and of all below it; empty where it is known."""
        node_id, plan = bare_id(record), self.plan
        if not plan.creates:
            return ""  # each row is for the node that has its id, wherever it is
        if not accepted and (row := self._rejected.get(record.sk)):
            return f"Nothing below {path_text(*record.key)} is imported, since row {row} was rejected."
        if node is not None and node.id == node_id:
            return ""
        if (row := plan.rejected_ids.get(node_id) or plan.ids.get(node_id)) is not None:
            place = f"Nothing below {path_text(*record.key)} is imported"
            return f"{place}, since row {row} has its id {node_id} at another path."
        return ""

    def _close(self, sk: str) -> _OpenNode | None:
        """Pop all nodes from the stack that are not ancestors of the node at a key; returns its nearest ancestor."""
        while self._stack and not (sk and sk.startswith(self._stack[-1].sk)):
            if self._stack[-1].ordered:
                self._order(self._stack[-1])
            open_node = self._stack.pop()
            if open_node.ranked:
                ranks = {*open_node.ranks}
                for node in open_node.ranked:
                    node.rank = rank_after(cast(str, node.rank), ranks)  # the next free one where a sibling has it
                    ranks.add(node.rank or "")
            if open_node.record is not None and not open_node.kept:
                self._record_stack()
                self.removed.append(open_node.record)
            elif self._stack:
                self._stack[-1].kept = True
        return self._stack[-1] if self._stack else None

    def _note_order(self, node: Node, record: Record | None) -> None:
        """Note a node of the file, which gets its rank with its siblings; a root has that of the plan."""
        if self._stack:
            self._stack[-1].ordered.append((node, record))
        elif rank := self.plan.root_ranks.get(self.tree.pk):
            self._rank(node, record, rank)

    def _order(self, parent: _OpenNode) -> None:
        """Give the children of the last open node that the file has ranks in their order."""
        for level in dict.fromkeys(node.level for node, _ in parent.ordered):
            own = [one for one in parent.ordered if one[0].level == level]
            own.sort(key=lambda one: self.plan.place(one[0]))
            ranks = ordered_ranks(level, [record.rank if record else None for _, record in own], parent.ranks)
            for (node, record), rank in zip(own, ranks, strict=True):
                self._rank(node, record, rank)

    def _rank(self, node: Node, record: Record | None, rank: str) -> None:
        """Give a node a rank, a stored one by an update."""
        if record is None:
            self.ranks[node.sk] = rank
        elif rank != record.rank and (place := self._updates.get(record.sk)) is not None:
            self.updated[place] = record, replace(self.updated[place][1], rank=rank)
        elif rank != record.rank:
            self._record_stack()
            self.updated.append((record, replace(record, rank=rank, revision=record.revision + 1, changed_by=None)))
            self.unchanged -= 1

    def _record_stack(self) -> None:
        """Record all nodes on the stack as ancestors of a change; those below one that is recorded are, too."""
        for open_node in reversed(self._stack):
            if open_node.sk in self.above:
                return
            if open_node.record is not None:
                self.above[open_node.sk] = open_node.record

    def _reject(self, node: Node, reason: str) -> None:
        self.rejections.append(Rejection(node.number, reason))
        self._rejected[node.sk] = node.number

    def _missing_parents(self, node: Node, above: _OpenNode | None) -> list[Node]:
        """The ancestors of a node below its nearest one that is there, to be created; raises BadInput."""
        missing: list[str] = []
        sk = node.sk
        while len(sk) > 1 and (sk := parent_sort_key(sk)) != (above.sk if above else None):
            missing.insert(0, sk)
        for sk in reversed(missing):
            if row := self._rejected.get(sk):
                raise BadInput(f"Parent {path_text(self.tree.pk, sk)} is missing, since row {row} was rejected.")
        if missing and not self.plan.create_parents:
            parent = path_text(self.tree.pk, missing[-1])
            raise BadInput(f"Parent {parent} is neither in the file nor in the table; --create-parents creates it.")
        known = [above.level] if above else []
        levels = filled_levels(self.plan.hierarchy, [*known, *[None for _ in missing], node.level]) if missing else ()
        return [
            Node(self.tree.pk, sk, level, None, None, node.number)
            for sk, level in zip(missing, levels[len(known) :], strict=False)
        ]

    def _check_new(self, node: Node, under: str | None) -> None:
        if not may_stand(self.plan.hierarchy, node.level, under):
            raise BadInput(misplaced(self.plan.hierarchy, node.level, under))
        if not self.plan.creates:
            raise BadInput(f"{node} is no longer there.")
        before = node.values
        values = self.plan.hierarchy.any_level(node.level).new_values(before)
        if values is not before:
            node.values = values
        check_content(node, node.name or "", values, len(node.encoded))

    def _update(self, node: Node, old: Record) -> None:
        """Add the update of a node, if any; raises BadInput where level or id differ from the table's."""
        if node.level != old.level:
            raise BadInput(f"{node} is a {old.level} in the table, not a {node.level}.")
        if node.id is not None and node.id != bare_id(old):
            place = f"{node} has the id {bare_id(old)} in the table"
            if (unmoved := self.plan.unmoved.get(node.id)) is None:
                raise BadInput(f"{place}, not {node.id}; ids never change.")
            raise BadInput(f"{place}, and {node.id} cannot be moved here: {unmoved}")
        same_name, changes = node.name is None or node.name == old.name, node.values
        if not same_name or any(old.attributes.get(name) != value for name, value in changes.items()):
            level = self.plan.hierarchy.any_level(node.level)
            values = level.changed(old.attributes, changes)
            if not same_name or values != level.current(old.attributes):
                name = old.name if node.name is None else node.name
                check_content(node, name, values)
                self._record_stack()
                new = replace(old, name=name, attributes=values, revision=old.revision + 1, changed_by=None)
                self._updates[old.sk] = len(self.updated)
                self.updated.append((old, new))
                return
        self.unchanged += 1


def filled_levels(hierarchy: Hierarchy, levels: Sequence[str | None]) -> Sequence[str]:
    """The levels of nodes below one another, where that of a missing one is None, by the only possible sequence.

    Raises BadInput where there are several, or none.
    """
    ways: dict[str | None, tuple[int, tuple[str, ...]]] = {None: (1, ())}  # by the last level: how many, and one
    for index, level in enumerate(levels):
        after: dict[str | None, tuple[int, tuple[str, ...]]] = {}
        for one in [level] if level else hierarchy.levels:
            is_there = index == 0 and level is not None
            found = [way for above, way in ways.items() if is_there or may_stand(hierarchy, one, above)]
            if found:
                after[one] = (sum(count for count, _ in found), (*found[0][1], one))
        ways = after
    count, found_levels = next(iter(ways.values()), (0, ()))
    if count != 1:
        raise BadInput("Parents are missing, and their levels are unclear; add rows for them.")
    return found_levels


def bare_id(record: Record) -> str:
    """The id of a node without the prefix of its hierarchy, as files have it."""
    return record.id.partition(":")[2]
