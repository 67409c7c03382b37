"""Batches: several edits or none, compared with the same edits one by one in a second store."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from operator import itemgetter
from random import Random
from typing import Any, cast

import orjson
import pytest

from clade import Decimal, Long, Node, attribute
from graph.execution.operation import Execution
from graph.operation.context import Context
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import Store
from store.model.keys import Key, path_of
from store.model.paths import format_path, parse_path
from store.model.records import Change, Delete, Item, Put
from store.writing.writer import Writer
from tests import invariants
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.selection import examples
from tests.stores import StoreProxy
from tests.systems.asking import plant

pytestmark = pytest.mark.usefixtures("probes")

KEYS = ("a", "b", "c", "a b", "é")
NODES = 14  # of more than these, nodes are rather deleted than created
BATCHES = {"sqlite": 20, "dynamodb": 7}  # of one pair of stores
PAIRS = {"sqlite": (2, 45), "dynamodb": (1, 15)}
SIZES = (1, 2, 2, 3, 4, 6, 8, 12)
SPARE = 6  # actions by which a transaction may be larger than the sum of its edits'
MORE_RANKS = 8  # siblings that are ranked again, so that there is room for another one
TOO_LARGE = ("TOO_LARGE", None, None)  # of an edit that is a large move by itself
NODE = "{ id path revision }"
ANSWER = "plan { nodes transactions writeUnits } userErrors { code field rule edit message }"
PLANTED = ("a", "a/b", "a/b/c", "a/b/a", "a/c", "b", "b/a", "b/a/é")
Input = dict[str, Any]
Items = dict[Key, Item]
Path = tuple[str, ...]


class Ware(Node, hierarchy="ware", many="wares", search="hierarchy", location="north,east"):
    """A ware, found with the words of its ancestors."""

    note: str | None = attribute("Text.", search=True)


class Rack(Ware, under=[None, "self"]):
    """A rack."""

    north: float | None = attribute("Degrees to the north.")
    east: float | None = attribute("Degrees to the east.")


class Piece(Ware, under=[Rack]):
    """A piece."""

    stock: int | None = attribute("Number.", minimum=0, maximum=9)
    total: Long | None = attribute("Number of all times.")
    price: Decimal | None = attribute("Price.", maximum="99.99")


class Good(Node, hierarchy="good", many="goods", search="tree"):
    """A good, whose trees are searched each by itself."""

    note: str | None = attribute("Text.", search=True)


class GoodRack(Good, under=[None, "self"]):
    """A rack."""


class GoodPiece(Good, under=[GoodRack]):
    """A piece."""

    stock: int | None = attribute("Number.", default=3)


class Plain(Node, hierarchy="plain", many="plains"):
    """A node that nothing finds."""

    note: str | None = attribute("Text.")


class PlainRack(Plain, under=[None, "self"]):
    """A rack."""


class PlainPiece(Plain, under=[PlainRack]):
    """A piece."""

    price: Decimal | None = attribute("Price.", required=True)


CLASSES: list[type[Node]] = [Ware, Good, Plain]
DEFINITIONS = {cls.name: cls.definition() for cls in CLASSES}
ATTRIBUTES: dict[type[Node], tuple[tuple[str, str], tuple[str, str]]] = {  # by class: those of racks, of pieces
    Ware: (("rack", "note north east"), ("piece", "note stock total price")),
    Good: (("goodRack", "note"), ("goodPiece", "note stock")),
    Plain: (("plainRack", "note"), ("plainPiece", "note price")),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "note": ("", "red box", "blue", None), "north": (-90, 1.5, 1.6, None), "east": (180, 7, 7.1, None),
    "stock": (0, 5, 9, None), "total": ("9223372036854775807", "-1", None), "price": ("0.50", "99.99", "3"),
}  # fmt: skip
NUMBERS = {Ware: ("STOCK", "TOTAL", "PRICE"), Good: ("STOCK",), Plain: ("PRICE",)}
AMOUNTS = ("1", "-1", "2.0", "0", "3")
NAMES = ("red", "red lamp", "Łódź", "box of a", "é", "blue bicycle shed", "x")


@dataclass(frozen=True)
class Seen:
    """A node as an edit has left it."""

    path: Path
    is_rack: bool
    revision: int


@dataclass
class Known:
    """What is where, for the choice of edits alone: nothing is judged by it."""

    nodes: dict[str, Seen] = field(default_factory=dict)
    gone: dict[str, Seen] = field(default_factory=dict)  # as they were
    left: list[Path] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)  # by this batch, as are those that it has deleted
    ended: set[str] = field(default_factory=set)
    untold: set[str] = field(default_factory=set)  # new ones whose id was not given

    def copy(self) -> "Known":
        return Known({**self.nodes}, {**self.gone}, [*self.left])

    def at(self, path: Path) -> str | None:
        return next((one for one, seen in self.nodes.items() if seen.path == path), None)

    def below(self, path: Path) -> list[str]:
        """The node at a path and all below it."""
        return [one for one, seen in self.nodes.items() if seen.path[: len(path)] == path]

    def free(self, parent: Path) -> list[str]:
        return [key for key in KEYS if self.at((*parent, key)) is None]

    def relocate(self, ways: Mapping[Path, Path]) -> None:
        """Move subtrees from paths to others, all at once."""
        moved = [(one, source, target) for source, target in ways.items() for one in self.below(source)]
        for one, source, target in moved:
            seen = self.nodes[one]
            self.left.append(seen.path)
            self.touched.add(one)
            self.nodes[one] = Seen((*target, *seen.path[len(source) :]), seen.is_rack, seen.revision)

    def take(self, verb: str, given: Input, node: Input, before: Path | None) -> None:
        """What an edit has made of the node that was at the path `before`."""
        one, path = node["id"], parse_path(node["path"])
        self.touched.add(one)
        if verb == "create":
            self.nodes[one] = Seen(path, any("ack" in level for level in given["attributes"]), node["revision"])
            self.gone.pop(one, None)
            self.untold |= {one} - {given.get("id"), f"{one.partition(':')[0]}:{given.get('id')}"}
        elif verb == "update":
            self.nodes[one] = Seen(path, self.nodes[one].is_rack, node["revision"])
        elif verb == "move" and before != path:
            self.relocate({before or (): path})
        elif verb == "delete":
            children = [other for other in self.below(path) if len(self.nodes[other].path) == len(path) + 1]
            for gone in [one] if given["policy"] == "REPARENT" else self.below(path):
                self.touched.add(gone)
                self.gone[gone] = self.nodes.pop(gone)
                self.ended.add(gone)
            sources = [self.nodes[child].path for child in children if given["policy"] == "REPARENT"]
            self.relocate({source: (*path[:-1], source[-1]) for source in sources})


class RandomEdits:
    """Random inputs of mutations, in the form of the schema; of those that are `careful` most are possible."""

    def __init__(self, cls: type[Node], chance: Random, known: Known, *, careful: bool, inside: bool) -> None:
        """`inside`: all of them write to one tree and nothing else, and give the ids of new nodes."""
        self.cls, self.chance, self.known, self.careful, self.inside = cls, chance, known, careful, inside
        self.revisions = {one: seen.revision for one, seen in known.nodes.items()}

    def one(self) -> tuple[str, Input]:
        verbs = ["create"] * 5 + ["update"] * 4 + ["move"] * 6 + ["delete"]
        if len(self.known.nodes) > NODES:
            verbs = ["create"] + ["update"] * 4 + ["move"] * 6 + ["delete"] * 5
        verb = self.chance.choice(verbs) if self.known.nodes else "create"
        given: Input = getattr(self, f"_{verb}")()
        if not self.careful and self.chance.random() < 0.06:
            spoil = self.chance.choice([{"key": ""}, {"name": ""}, {"key": "a\0"}, {"expectedRevision": 77}])
            given |= {
                name: value for name, value in spoil.items() if name in given or (name[0] == "e" and verb != "create")
            }
        return verb, given

    def _dares(self, share: float = 0.1) -> bool:
        """Whether something wrong is asked for."""
        return not self.careful and self.chance.random() < share

    def _some(self, *, racks: bool = False) -> str | None:
        found = [one for one, seen in self.known.nodes.items() if seen.is_rack or not racks]
        if self.inside and not racks:
            found = [one for one in found if len(self.known.nodes[one].path) > 1]
        recent = [one for one in found if one in self.known.touched]  # so that edits of a batch meet
        return self.chance.choice(recent if recent and self.chance.random() < 0.5 else found) if found else None

    def _by(self, one: str | None) -> Input:
        if one is None or self._dares(0.05):
            left = self.known.left or [("nowhere",)]
            wrong = [
                {"path": "nowhere/x"},
                {"path": format_path(self.chance.choice(left))},
                {"id": f"{self.cls.name}:none"},
            ]
            wrong += [{"id": gone} for gone in self.known.gone]
            return self.chance.choice(wrong)
        is_told = one not in self.known.untold  # ids of new nodes are not known before the response
        by_id = is_told and self.chance.random() < 0.5
        return {"id": one} if by_id else {"path": format_path(self.known.nodes[one].path)}

    def _key(self, parent: Path) -> str:
        free = self.known.free(parent)
        return self.chance.choice(free if free and not self._dares() else KEYS)

    def _target(self, *, of: str | None) -> str | None:
        """A rack that is not below a node."""
        for _ in range(10):
            found = self._some(racks=True)
            if found is None or of is None or self._dares():
                return found
            path, own = self.known.nodes[found].path, self.known.nodes[of].path
            if path[: len(own)] != own and len(path) < 5:
                return found
        return None

    def _expected(self, one: str | None) -> Input:
        """The revision before the batch, which tells nothing of nodes that are new since."""
        if one not in self.revisions or one in self.known.ended or self.chance.random() > 0.15:
            return {}
        return {"expectedRevision": self.revisions[one] + (self.chance.choice((1, -1, 2)) if self._dares(0.3) else 0)}

    def _attributes(self, *, is_rack: bool, is_new: bool) -> Input:
        label, names = ATTRIBUTES[self.cls][not is_rack]
        values = {name: self.chance.choice(VALUES[name]) for name in names.split() if self.chance.random() < 0.5}
        if is_new and label == "plainPiece":
            values["price"] = "1.50"
        return {"attributes": {label: values}}

    def _create(self) -> Input:
        parent = self._target(of=None) if self.inside or self.chance.random() < 0.9 else None
        is_rack = parent is None or self.chance.random() < 0.6
        path = self.known.nodes[parent].path if parent else ()
        given = {"key": self._key(path), "name": self.chance.choice(NAMES)}
        if parent is not None:
            given["parent"] = self._by(parent)
        dice = self.chance.random()
        if dice < 0.2 or self.inside:
            ids = ["i", "j", "k", f"n{self.chance.randrange(50)}"]
            given["id"] = f"n{self.chance.randrange(1 << 30)}" if self.inside else self.chance.choice(ids)
            if self.careful and f"{self.cls.name}:{given['id']}" in self.known.nodes:
                del given["id"]
        elif dice < 0.4 and self.known.gone:
            given["id"] = self.chance.choice(sorted(self.known.gone))
            is_rack = self.known.gone[given["id"]].is_rack if parent is not None else True
        return given | self._attributes(is_rack=is_rack, is_new=True)

    def _update(self) -> Input:
        one = self._some()
        is_rack = self.known.nodes[one].is_rack if one else True
        given = {"node": self._by(one)} | self._expected(one)
        if self.chance.random() < 0.6:
            given["name"] = self.chance.choice(NAMES)
        if self.chance.random() < 0.6:
            given |= self._attributes(is_rack=is_rack ^ self._dares(0.05), is_new=False)
        if is_rack == self._dares(0.05) and self.chance.random() < 0.5:
            added = self.chance.choice(NUMBERS[self.cls])
            given["add"] = [{"field": added, "amount": self.chance.choice(("0.5",) if self._dares() else AMOUNTS)}]
            for values in given.get("attributes", {}).values():
                values.pop(added.lower(), None)
        return given

    def _move(self) -> Input:
        one = self._some()
        seen = self.known.nodes[one] if one else Seen(("x",), True, 1)
        given = {"node": self._by(one)} | self._expected(one)
        kind = self.chance.choice(["key", "to", "to", "to key", "position", "position", "to position", "root"])
        kind = "key" if self.inside and kind == "root" else kind
        parent = seen.path[:-1]
        if "to" in kind.split() and (to := self._target(of=one)):
            given["to"] = {"parent": self._by(to)}
            parent = self.known.nodes[to].path
        elif kind == "root" and (seen.is_rack or self._dares()):
            given["to"] = {"root": True}
            parent = ()
        key = seen.path[-1]
        if "key" in kind or ("position" not in kind and key not in self.known.free(parent)):
            key = given["key"] = self._key(parent)
        if "position" in kind:
            given["position"] = self._position(one, parent, is_rack=seen.is_rack)
            if parent != seen.path[:-1] and key not in self.known.free(parent):
                given["key"] = self._key(parent)
        return given if given.keys() - {"node", "expectedRevision"} else given | {"key": self._key(parent)}

    def _position(self, one: str | None, parent: Path, *, is_rack: bool) -> Input:
        beside = [
            other for other, seen in self.known.nodes.items()
            if seen.path[:-1] == parent and seen.is_rack == is_rack and other != one
        ]  # fmt: skip
        if self._dares(0.05):
            beside = [*self.known.nodes]
        if beside and self.chance.random() < 0.7:
            return {self.chance.choice(["before", "after"]): self._by(self.chance.choice(beside))}
        return {self.chance.choice(["first", "last"]): True}

    def _delete(self) -> Input:
        one = self._some()
        path = self.known.nodes[one].path if one else ()
        policies = ["CASCADE", "REPARENT", "REPARENT", "REFUSE"]
        if self.careful:
            policies = policies[:3]
            if (self.inside or any(not self.known.nodes[other].is_rack for other in self.known.below(path))) and (
                len(path) <= 1 + self.inside
            ):
                policies = ["CASCADE"]
        return {"node": self._by(one), "policy": self.chance.choice(policies)} | self._expected(one)


# Stores and servers


class Recorder(StoreProxy):
    """A store whose clock stands, and which tells what was written: the log items of a tree as one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.time = 1_900_000_000.0
        self.written: set[tuple[str, str]] = set()

    def now(self) -> float:
        return self.time

    async def commit(self, changes: Sequence[Change]) -> None:
        for pk, sk in [change.key for change in changes]:
            self.written.add((pk, "!log" if sk.startswith("!") and sk != "!" else sk))
        await self._store.commit(changes)


@dataclass(frozen=True)
class Made:
    """What a mutation answered: the nodes, or the faults; the plan of a dry run; the requests of its reads."""

    nodes: list[Input]
    faults: list[Input]
    plan: Input | None
    requests: int

    def told(self, edit: int | None = None) -> list[Any]:
        """The faults, or those of one edit, without their sentences, which have revisions."""
        return [(one["code"], one["field"], one["rule"]) for one in self.faults if one["edit"] == edit]


class Server:
    """A server of a store, asked without HTTP."""

    def __init__(self, store: Store, cls: type[Node]) -> None:
        self.store, self.recorder, self.cls = store, Recorder(store), cls
        self._writer = Writer(cast(Store, self.recorder))
        self._execution = Execution(*schema_of(*CLASSES), self._context)

    def _context(self) -> Context:
        return Context(Request(cast(Store, self.recorder), DEFINITIONS, writer=self._writer))

    async def edit(self, verb: str, given: Input, *, dry: bool = False) -> Made:
        title = f"{verb.capitalize()}{self.cls.title}"
        head = f"mutation($given: {title}Input!, $dry: Boolean!)"
        name = f"{title[0].lower()}{title[1:]}(input: $given, dryRun: $dry)"
        return await self._ask(f"{head} {{ made: {name} {{ node {NODE} {ANSWER} }} }}", given=given, dry=dry)

    async def batch(self, edits: Sequence[Input], *, dry: bool = False, key: str | None = None) -> Made:
        head = f"mutation($given: [{self.cls.title}Edit!]!, $dry: Boolean!, $key: String)"
        name = f"edit{self.cls.many.capitalize()}(edits: $given, dryRun: $dry, idempotencyKey: $key)"
        return await self._ask(
            f"{head} {{ made: {name} {{ nodes {NODE} {ANSWER} }} }}", given=edits, dry=dry, key=key
        )  # fmt: skip

    async def _ask(self, query: str, **variables: Any) -> Made:
        answer = await answer_to(self._execution, query, variables, allow_mutations=True, report_reads=True)
        assert "errors" not in answer.body, answer.body["errors"]
        made = orjson.loads(answer.content())["data"]["made"]
        nodes = (made["nodes"] or []) if "nodes" in made else [made["node"]] if made["node"] else []
        return Made(nodes, made["userErrors"], made["plan"], answer.body["extensions"]["reads"]["requests"])

    async def restore(self, items: Items) -> None:
        """Make the table what it was."""
        found = await all_items(self.store)
        changes: list[Change] = [Put(item) for key, item in items.items() if found.get(key) != item]
        changes += [Delete(key) for key in found.keys() - items.keys()]
        for start in range(0, len(changes), 90):
            await self.store.commit(changes[start : start + 90])


async def all_items(store: Store) -> Items:
    return {Key(item["pk"], item["sk"]): item for item in await invariants.all_items(store)}


def nodes_seen(items: Items) -> dict[str, Seen]:
    """The nodes of a table, for the choice of edits."""
    found = [item for item in items.values() if "tier" in item]
    return {
        item["id"]: Seen(path_of(item["pk"], item["sk"]), item["level"].endswith("RACK"), item["revision"])
        for item in found
    }


def nodes_of(items: Items) -> dict[Any, Item]:
    """The nodes by their ids, without counts and ranks."""
    derived = ("kids", "below", "rank")
    found = [item for item in items.values() if "tier" in item]
    return {item["id"]: {name: value for name, value in item.items() if name not in derived} for item in found}


def comparable(items: Items) -> dict[Any, Any]:
    """A table without what differs between one transaction and several: the numbers of versions and of log items, the
    random digits of ranks, in whose place is the order of siblings, and the random ids of deletions.
    """
    found: dict[Any, Any] = {}
    deletions: dict[Any, list[Key]] = {}
    families: dict[Any, list[tuple[str, Key]]] = {}
    for key, item in sorted(items.items()):
        if key.pk.startswith("once#"):
            continue
        if key.sk == "!":
            item = {name: value for name, value in item.items() if name != "n"}
        if "tier" in item:
            families.setdefault((item["parent"], item["level"]), []).append((item["rank"], key))
            item = {name: value for name, value in item.items() if name != "rank"}
        if key.sk == "v0" and "deleted" in item:
            deletions.setdefault(item["parent"], []).append(key)
            item = {**item, "parent": None, "place": "place" in item}
        if key.sk.startswith("!") and key.sk != "!":
            found.setdefault((key.pk, "log"), []).extend((int(key.sk[1:]), change) for change in item["changes"])
        else:
            found[key] = item
    found["deletions"] = sorted(deletions.values())
    for family, ranks in families.items():
        found[family] = [key for _, key in sorted(ranks)]
    for name, log in found.items():
        if isinstance(log, list) and name[1] == "log":
            found[name] = [change for _, change in sorted(log, key=itemgetter(0))]
    return found


# The comparison


class Comparison:
    """Two stores with the same nodes, in one of which batches are made, in the other their edits one by one."""

    def __init__(self, cls: type[Node], stores: Sequence[Store], chance: Random, ids: "NewIds") -> None:
        self.cls, self.chance, self.ids = cls, chance, ids
        self.whole, self.single = [Server(store, cls) for store in stores]
        self.known = Known()
        self.counts: Counter[str] = Counter()

    async def begin(self, planted: Sequence[str] = PLANTED) -> None:
        """Plant the same nodes in both."""
        level = next(iter(self.cls.levels))
        await plant(self.whole.store, self.cls, [(parse_path(path), level) for path in planted])
        self.items = await all_items(self.whole.store)
        await self.single.restore(self.items)
        self.known = Known(nodes_seen(self.items))

    async def compare(self) -> None:
        """One batch, which is made or refused as its edits are."""
        self.known.untold = set()
        known = self.known.copy()
        before = await all_items(self.single.store)
        batch, nodes, faults = await self._one_by_one(SIZES)
        key = f"k{self.chance.randrange(1 << 60)}" if self.chance.random() < 0.2 else None
        if self.chance.random() < 0.2:
            await self._forecast(batch, nodes, faults)
        self.ids.begin()
        made = await self.whole.batch(batch, key=key)
        after = await all_items(self.whole.store)
        if faults or made.faults:
            await self._refused(batch, made, faults, len(nodes), has_key=key is not None)
            assert after == self.items, batch
            await self.single.restore(before)
            self.known = known
        else:
            single = await all_items(self.single.store)
            self._made(batch, made, nodes, single)
            assert comparable(after) == comparable(single), batch
            self.counts["made"] += 1
            self.counts["edits"] += len(batch)
        if key is not None and not made.faults:
            again = await self.whole.batch(batch, key=key)
            assert (again.nodes, again.faults) == (made.nodes, []), batch
            assert await all_items(self.whole.store) == after, batch
            self.counts["repeated"] += 1
        self.items = after
        assert made.requests <= self._requests(batch) + bool(made.faults), (batch, made.requests)

    async def compare_at_once(self) -> None:
        """Several batches in one tree that are sent at once: they have the results that they have in some order."""
        before, batches = await all_items(self.single.store), list[list[Input]]()
        for _ in range(self.chance.choice((2, 3, 3))):
            self.known.untold = set()
            known, state = self.known.copy(), await all_items(self.single.store)
            batch, _, faults = await self._one_by_one((1, 2, 3), inside=True)
            if faults:
                await self.single.restore(state)
                self.known = known
            batches.append(batch)
        made = await asyncio.gather(*[self.whole.batch(batch) for batch in batches])
        after = await all_items(self.whole.store)
        for order in permutations(range(len(batches))):
            await self.single.restore(before)
            alone = {place: await self.single.batch(batches[place]) for place in order}
            single = await all_items(self.single.store)
            is_same = [(alone[n].nodes, alone[n].faults) == (one.nodes, one.faults) for n, one in enumerate(made)]
            if all(is_same) and comparable(single) == comparable(after):
                break
        else:
            raise AssertionError((batches, made))
        self.counts["made"] += sum(not one.faults for one in made)
        self.known = Known(nodes_seen(single))

    async def _one_by_one(
        self, sizes: Sequence[int], *, inside: bool = False
    ) -> tuple[list[Input], list[Input], list[Any]]:
        """Random edits, made one by one until one is refused: the edits, the nodes of those, and the faults of that."""
        single, known = self.single, self.known
        careful = inside or self.chance.random() < 0.6
        edits = RandomEdits(self.cls, self.chance, known, careful=careful, inside=inside)
        known.touched, known.ended = set(), set()
        single.recorder.written = set()
        batch, nodes, faults = list[Input](), list[Input](), list[Any]()
        self.ids.begin()
        for _ in range(self.chance.choice(sizes)):
            verb, given = edits.one()
            batch.append({verb: given})
            if faults:
                continue  # what follows the first edit with faults
            named = given.get("node", {})
            one = named.get("id") or known.at(parse_path(named.get("path", "x")))
            before = known.nodes.get(one or "")
            if "expectedRevision" in given and before is not None:
                since = before.revision - edits.revisions.get(one or "", before.revision)
                given = given | {"expectedRevision": given["expectedRevision"] + since}
            if single.store.max_commit_changes and verb in ("move", "delete"):
                forecast = await single.edit(verb, given, dry=True)
                if forecast.plan and forecast.plan["transactions"] > 1:
                    faults = [TOO_LARGE]  # a large move
                    continue
            made = await single.edit(verb, given)
            faults = made.told()
            if not faults:
                nodes += made.nodes
                known.take(verb, given, made.nodes[0], before.path if before else ())
        return batch, nodes, faults

    async def _forecast(self, batch: list[Input], nodes: list[Input], faults: list[Any]) -> None:
        """A dry run writes nothing, and counts each node once."""
        self.ids.begin()
        dry = await self.whole.batch(batch, dry=True)
        assert await all_items(self.whole.store) == self.items, batch
        assert dry.nodes == []
        if not (faults or dry.faults):
            assert dry.plan
            single = nodes_of(await all_items(self.single.store))
            changed = [one for one, node in single.items() if node != nodes_of(self.items).get(one)]
            assert len(changed) <= dry.plan["nodes"] <= len(self.known.touched) + MORE_RANKS, (batch, dry.plan)
        self.counts["dry runs"] += 1

    async def _refused(
        self, batch: list[Input], made: Made, faults: list[Any], first: int, *, has_key: bool
    ) -> None:  # fmt: skip
        """The faults are those of the first edit that is refused by itself, or it is too much for one transaction."""
        assert made.nodes == []
        edits = [one["edit"] for one in made.faults]
        assert edits == sorted(edits), batch
        if {one["code"] for one in made.faults} == {"TOO_LARGE"} and faults != [TOO_LARGE]:
            assert self.single.store.max_commit_changes, batch
            needed = len(self.single.recorder.written) + has_key
            assert faults or needed > self.single.store.max_commit_changes - SPARE, (batch, needed)
            self.counts["too large"] += 1
            return
        assert edits[:1] == [first], (batch, made.faults, faults)
        if faults != [TOO_LARGE]:
            assert made.told(first) == faults, batch
        self.counts["refused"] += 1

    def _made(self, batch: list[Input], made: Made, nodes: list[Input], single: Items) -> None:
        """Each edit's node is as it is after all of them, a deleted one as it was."""
        last = {
            item["id"]: (path_of(item["pk"], item["sk"]), item["revision"])
            for item in single.values()
            if "tier" in item
        }
        for one, seen in self.known.gone.items():
            last.setdefault(one, (seen.path, seen.revision))
        expected = [(node["id"], *last[node["id"]]) for node in nodes]
        got = [(node["id"], parse_path(node["path"]), node["revision"]) for node in made.nodes]
        for edit, left, right in zip(batch, got, expected, strict=True):
            has_returned = "delete" in edit and left[0] in self.known.nodes
            assert left == right or (has_returned and left[0] == right[0]), (batch, got, expected)

    @staticmethod
    def _requests(batch: list[Input]) -> int:
        """At most so many reads: four, one of each edit for items with conditions, and those of subtrees, of their
        search items, and of siblings of a position.
        """
        more = {"create": 0, "update": 0, "move": 2, "delete": 3}
        positions = sum("position" in edit.get("move", {}) for edit in batch)
        return 4 + len(batch) + sum(more[verb] for edit in batch for verb in edit) + 3 * positions


class NewIds:
    """Ids of new nodes, the same for the same edits."""

    def __init__(self) -> None:
        self._batch, self._number = 0, 0

    def begin(self) -> None:
        self._number = 0

    def next_batch(self) -> None:
        self._batch += 1

    def __call__(self) -> "NewIds":
        self._number += 1
        return self

    @property
    def hex(self) -> str:
        return f"{self._batch:08x}{self._number:024x}"


@contextlib.asynccontextmanager
async def pair(store_url: str, number: int) -> AsyncIterator[list[Store]]:
    """Two new stores of a kind."""
    async with contextlib.AsyncExitStack() as stack:
        stores = []
        for name in ("whole", "single"):
            url = "sqlite://:memory:" if "sqlite" in store_url else store_url.replace("clade", f"{name}-{number}", 1)
            stores.append(await stack.enter_async_context(open_store(url)))
            await stores[-1].create()
        yield stores


@pytest.mark.both_stores
@pytest.mark.parametrize("cls", CLASSES)
async def test_a_batch_is_its_edits_one_by_one_or_nothing(
    store_url: str, cls: type[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, counts, kind = NewIds(), Counter[str](), store_url.partition(":")[0]
    monkeypatch.setattr("store.writing.create_update.uuid4", ids)
    for seed in range(examples(*PAIRS[kind])):
        async with pair(store_url, seed) as stores:
            found = Comparison(cls, stores, Random(f"{cls.name} {seed}"), ids)  # noqa: S311
            await found.begin()
            for _ in range(BATCHES[kind]):
                ids.next_batch()
                await found.compare()
            counts += found.counts
            await invariants.check(stores[0], DEFINITIONS)
    assert counts["made"] > counts["refused"] / 3, counts


@pytest.mark.both_stores
async def test_batches_that_are_sent_at_once_have_the_results_of_some_order(store_url: str) -> None:
    cls = Ware if "sqlite" in store_url else Plain  # of which more fits into a transaction of DynamoDB
    counts = Counter[str]()
    for seed in range(examples(2, 40) if cls is Ware else examples(1, 5)):
        async with pair(store_url, seed) as stores:
            found = Comparison(cls, stores, Random(f"at once {seed}"), NewIds())  # noqa: S311
            await found.begin([path for path in PLANTED if path[0] == "a"])
            for _ in range(5):
                await found.compare_at_once()
            counts += found.counts
            await invariants.check(stores[0], DEFINITIONS)
    assert counts["made"] > 5, counts
