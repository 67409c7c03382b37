"""Searches of a server for tests: two hierarchies, one searched as a whole and one tree by tree, and random edits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from store.edits.create_update import Create, Edit, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.paths import format_path
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests.rights.asking import Server, caller


class Spot(Node, hierarchy="spot", many="spots", search="hierarchy", search_weight="size"):
    """A spot on a map."""

    size: int | None = attribute("Its size.")
    note: str | None = attribute("A note.", search=True)


class Zone(Spot, under=[None, "self"]):
    """A zone."""

    tags: list[str] | None = attribute("Words for it.", search=True)


class Point(Spot, under=[Zone]):
    """A point."""


class BoxNode(Node, hierarchy="box", many="boxes", search="tree", search_weight="size"):
    """A box or what is in one."""

    size: int | None = attribute("Its size.")
    note: str | None = attribute("A note.", search=True)


class Box(BoxNode, under=[None, "self"]):
    """A box in a box."""


class Thing(BoxNode, under=[Box]):
    """A thing."""


CLASSES = {"spot": Spot, "box": BoxNode}
LEVELS = {"spot": ("ZONE", "POINT"), "box": ("BOX", "THING")}
FIELDS = {"spot": "searchSpots", "box": "searchBoxes"}
WORDS = "oma omaha Om São sao Łódź lodz 東京 東京都 京 가 각 กรุง öl oel n. nord o'neil ß ss".split()
KEYS = ["a", "b", "oma", "東", "é", "x y"]
LANGUAGES = ["de", "de-AT", "zh-Hant", "en"]
ALL = caller("write:spot", "write:box")


async def all_nodes(store: Store, hierarchy: str) -> list[Record]:
    """All nodes of a hierarchy, as they are in the table."""
    pages = [page async for page in store.scan(ReadUsage())]
    items = [item for page in pages for item in page if "tier" in item]
    return [Record.of(item) for item in items if str(item["pk"]).startswith(f"{hierarchy}#")]


@dataclass(frozen=True)
class Search:
    """One search, and its field in a query."""

    hierarchy: str
    text: str
    under: Path | None = None
    levels: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    first: int = 10

    async def ask(self, server: Server, who: Any = ALL) -> dict[str, Any]:
        """The answer, compiled and interpreted."""
        kind = CLASSES[self.hierarchy].title
        query = (
            f"query($text: String!, $under: Path, $level: [{kind}Level!], $first: Int!, $languages: [String!]) {{"
            f" found: {FIELDS[self.hierarchy]}(text: $text, under: $under, level: $level, first: $first,"
            " languages: $languages) { complete nodes { id path name descendantCount ancestors { path } } } }"
        )
        return await server.ask(
            who, query, text=self.text, first=self.first,
            under=None if self.under is None else format_path(self.under),
            level=None if self.levels is None else list(self.levels),
            languages=None if self.languages is None else list(self.languages),
        )  # fmt: skip

    def is_in_scope(self, path: Path) -> bool:
        top = self.under or ()
        return len(path) > len(top) and path[: len(top)] == top


@dataclass
class RandomTree:
    """Random edits of a tree, and random searches in it; `paths` are those of its nodes after the last edit."""

    hierarchy: Hierarchy
    random: Random
    paths: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, hierarchy: Hierarchy, seed: int) -> "RandomTree":
        return cls(hierarchy, Random(seed))  # noqa: S311 - no secret

    async def edit(self, store: Store, writer: Writer) -> None:
        """Try a random edit; it may be rejected."""
        makes: list[Callable[[], Edit]] = [self.create, self.create, self.update, self.move, self.move, self.delete]
        if not self.paths or self.random.random() < 0.15:
            return await self.load(store)
        try:
            await writer.write(self.random.choice(makes)(), ReadUsage())
            await writer.move_worker.finished()
        except CladeError:
            return

    def create(self) -> Edit:
        path = (*self.path(), self.key())[-4:] if self.random.random() < 0.8 else (self.key(),)
        return Create(self.hierarchy, path, self.level(), self.name(), self.values())

    def update(self) -> Edit:
        return Update(self.hierarchy, self.path(), self.random.choice([None, self.name()]), None, self.values())

    def move(self) -> Edit:
        path = self.path()
        target = self.random.choice([(*path[:-1], self.key()), (*self.path(), path[-1]), (self.key(),)])
        return Move(self.hierarchy, path, target)

    def delete(self) -> Edit:
        policy = self.random.choice([Policy.REFUSE, Policy.REPARENT, Policy.CASCADE])
        return Delete(self.hierarchy, self.path(), policy)

    async def load(self, store: Store) -> None:
        """Import some nodes, parents first, perhaps with the removal of others below them."""
        plan, made = ImportPlan(self.hierarchy), dict(self.paths)
        for number in range(self.random.randint(1, 20)):
            parent: Path = self.random.choice([(), *[p for p, one in made.items() if one == self.level(0)]])
            path = (*parent, self.key())
            if len(path) > 4:
                continue
            level = made.setdefault(path, self.level() if parent else self.level(0))
            plan.take(Row(number, path, [Part(level, self.name(), None, self.values())]))
        await load(store, plan, LoadResult(), prune=self.random.random() < 0.5)

    def path(self) -> Path:
        return self.random.choice(list(self.paths)) if self.paths else (self.key(),)

    def key(self) -> str:
        return self.random.choice(KEYS)

    def level(self, number: int | None = None) -> str:
        return LEVELS[self.hierarchy.name][self.random.choice([0, 0, 1]) if number is None else number]

    def name(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.choice([1, 1, 2, 3])))

    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.random.random() < 0.5:
            found["size"] = self.random.choice([None, 0, 1, 5, 70, 70_000, -3])
        if self.random.random() < 0.2:
            found["note"] = self.random.choice([None, self.name()])
        if self.random.random() < 0.2:
            found["names"] = {self.random.choice(LANGUAGES): self.random.choice([None, self.name()])}
        return found

    def search(self) -> Search:
        random = self.random
        words = [
            word[: random.choice([1, 2, 3, 9])] for word in random.choices([*WORDS, *KEYS], k=random.choice([1, 1, 2]))
        ]
        under = self.path() if self.paths and (self.hierarchy.name == "box" or random.random() < 0.4) else None
        return Search(
            self.hierarchy.name, " ".join(words), under if random.random() < 0.95 or under is None else ("no", "where"),
            None if random.random() < 0.7 else (self.level(),),
            None if random.random() < 0.7 else tuple(random.sample([*LANGUAGES, "de-AT-x-a"], 2)),
            random.choice([10, 10, 1, 2, 100]),
        )  # fmt: skip
