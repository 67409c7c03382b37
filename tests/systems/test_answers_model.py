"""Random trees and random queries: both stores answer as the plain model does, and read nothing twice.

The long form: pytest --examples 2000 tests/systems/test_answers_model.py
"""

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.schema import build_schema
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import Store
from store.model.keys import Path, encode_segment
from store.model.paths import format_path
from store.model.records import Record
from tests.answers import answer_to
from tests.model import TYPES, Field, GraphText, Ground, Model, On, Word, are_told, without_failures
from tests.recorded_reads import ReadRecorder
from tests.selection import examples
from tests.systems.asking import BOUNDLESS, WIDE

SCHEMA, SCHEMA_TYPES = build_schema([Ground])
DEFINITIONS = {"ground": Ground.definition()}
SEGMENTS = [*"aAZzéßΩ中😀￿01~", "ab", "a b", "a!", "a#", "a/b", "a%", "a$", "00"]
UNDER = {None: ["AREA", "AREA_PART"], "AREA": ["AREA", "AREA_PART", "PLOT", "TREE"], "PLOT": ["TREE"], "TREE": []}
UNDER["AREA_PART"] = ["AREA_PART", "PLOT", "TREE"]


# -- trees -------------------------------------------------------------------------------------------------------------


def grow(seed: int, size: int, bushy: bool, moved: bool) -> Model:
    """A random forest of so many nodes at most; `moved` has some stand where a hand has put them."""
    random = Random(seed)  # noqa: S311 - no secret
    nodes: dict[Path, str] = {}
    for _ in range(size):
        under: Path = ()
        if nodes and random.random() > 0.1:
            under = random.choice(list(nodes)[: 5 if bushy else None])
        levels = UNDER[nodes.get(under)]
        path = (*under, "".join(random.choices(SEGMENTS, k=random.choice([1, 1, 2, 3]))))
        if levels and len(path) <= 8 and path not in nodes:
            nodes[path] = random.choice(levels)
    ranks: dict[Path, str] = {}
    for path, level in nodes.items():
        if moved and random.random() < 0.2:
            ranks[path] = f"{level}#{encode_segment(random.choice(SEGMENTS))}~{len(ranks)}"
    return Model("ground", nodes, ranks)


# -- queries -----------------------------------------------------------------------------------------------------------


class Writer:
    """Writes random queries about a model; `likely` is a node that a field is about."""

    def __init__(self, seed: int, model: Model, depth: int) -> None:
        self.random = Random(seed)  # noqa: S311 - no secret
        self.model = model
        self.depth = depth
        self.records = list(model.nodes.values())
        self._aliases = 0

    def query(self) -> list[Field]:
        return [self.root() for _ in range(self.random.randint(1, 3))]

    def root(self) -> Field:
        name = self.random.choice(["ground", "ground", "ground", "grounds", "nodes", "node", *TYPES])
        record = self.one_of(self.records)
        if name == "grounds":
            return self.listing(name, None, self.depth)
        if name in ("node", "nodes"):
            ids = self.random.choices([*self.model.ids, "ground:none", "other:1", "x"], k=self.random.randint(0, 5))
            inner = On(record.level, self.several(record, self.depth - 1, record.level))
            return Field(self.alias(), name, {"id": record.id} if name == "node" else {"ids": ids}, (inner,))
        only = name if name in TYPES else None
        if only:
            name = TYPES[name][:1].lower() + TYPES[name][1:]
        target = self.random.choice([{"id": record.id}, {"path": format_path(record.path)}])
        inner = self.several(record, self.depth, only)
        return Field(self.alias(), name, target, inner, torn=self.random.random() < 0.5)

    def several(self, likely: Record, depth: int, only: str | None = None) -> tuple[Field | On, ...]:
        """Fields of a node, of which the first tells which it is; `only` one level is possible inside a fragment."""
        found: list[Field | On] = [Field(self.alias(), "path")]
        for _ in range(self.random.randint(0, 3 if depth > 1 else 1)):
            kind = self.random.choice("list list list above leaf on switch".split())
            if kind == "leaf" or depth <= 0:
                found.append(self.leaf(likely))
            elif kind == "list":
                found.append(self.listing(self.random.choice("children children descendants".split()), likely, depth))
            elif kind == "above":
                name = self.random.choice("parent ancestors".split())
                found.append(Field(self.alias(), name, {}, self.several(likely, depth - 2), included=self.included()))
            elif kind == "on":
                level = only or self.random.choice(list(TYPES))
                found.append(On(level, self.several(likely, depth - 1, level), named=self.random.random() < 0.5))
            else:
                found += self.switch(
                    likely, depth, [only] if only else self.random.sample(list(TYPES), self.random.randint(1, 3))
                )
        return tuple(found)

    def switch(self, likely: Record, depth: int, levels: list[str]) -> list[On]:
        """The same response key with other arguments for each level."""
        alias = self.alias()
        made = [self.listing("children", likely, depth - 1) for _ in levels]
        return [
            On(level, (Field(alias, one.name, one.arguments, one.fields),))
            for level, one in zip(levels, made, strict=True)
        ]

    def leaf(self, likely: Record) -> Field:
        name = self.random.choice("id name level levelName depth childCount descendantCount __typename".split())
        arguments: dict[str, Any] = {}
        if name.endswith("Count") and self.random.random() < 0.5:
            arguments["level"] = self.level()
        return Field(self.alias(), name, arguments, included=self.included())

    def listing(self, name: str, likely: Record | None, depth: int) -> Field:
        arguments = self.arguments(name)
        below = [one for one in self.records if one.path[:-1] == (likely.path if likely else ())]
        inner = self.several(self.one_of(below or self.records), depth - 1)
        parts = [Field(self.alias(), "nodes", {}, inner)] if not self.chance(3) else []
        if self.random.random() < 0.5:
            told = "hasNextPage hasPreviousPage startCursor endCursor".split()
            parts.append(Field(self.alias(), "pageInfo", {}, tuple(Field(one, one) for one in told)))
        if self.random.random() < 0.5:
            parts.append(Field(self.alias(), "totalCount"))
        if not parts or self.chance(3):
            edge = Field("node", "node", {}, self.several(self.one_of(self.records), depth - 1))
            parts.append(Field(self.alias(), "edges", {}, (Field("cursor", "cursor"), edge)))
        return Field(
            self.alias(), name, arguments, tuple(parts), torn=self.random.random() < 0.5, included=self.included()
        )

    def arguments(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.random.random() < 0.5:
            return found
        if self.random.random() < 0.5:
            side = self.random.choice(["first", "first", "last"])
            found[side] = self.random.choice([0, 1, 1, 2, 3, 5, 20, 500, -1])
        if self.chance(30):
            found["last"] = 2
        if self.chance(2):
            found["level"] = [self.level() for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3]))]
        if name == "descendants" and self.random.random() < 0.5:
            found["maxDepth"] = self.random.randint(0, 4)
        if self.random.random() < 0.5:
            place = self.random.choice(["POSITION", "KEY", "PATH"])
            if name == "descendants" and place == "POSITION" and not self.chance(5):
                place = "PATH"
            found["orderBy"] = [{"field": Word(place), "direction": Word(self.random.choice(["ASC", "DESC"]))}]
        if self.random.random() < 0.5:
            found["where"] = self.where(2)
        return found

    def where(self, depth: int) -> dict[str, Any]:
        """A condition on keys, paths and, seldom, on names."""
        name = self.random.choice(["key", "key", "path", "path", "name", *["and", "or", "not"] * bool(depth)])
        match name:
            case "not":
                return {"not": self.where(depth - 1)}
            case "and" | "or":
                return {name: [self.where(depth - 1) for _ in range(self.random.choice([0, 1, 2, 2, 3]))]}
            case "name":
                return {"name": {"eq": self.one_of(self.records).name}}
        more = self.where(0) if depth and self.chance(4) else {}
        return more | {name: dict(self.comparison(name) for _ in range(self.random.choice([1, 1, 2])))}

    def comparison(self, name: str) -> tuple[str, Any]:
        operator = self.random.choice("eq in lt lte gt gte startsWith".split())
        return operator, [self.operand(name) for _ in range(2)] if operator == "in" else self.operand(name)

    def operand(self, name: str) -> str:
        path = self.one_of(self.records).path
        path = self.random.choice([path, path[:-1] or path, (*path[:-1], self.random.choice(SEGMENTS))])
        return path[-1] if name == "key" else format_path(path)

    def level(self) -> Word:
        return Word(self.random.choice(list(TYPES)))

    def included(self) -> bool | None:
        return self.random.choice([None, None, None, True, False])

    def chance(self, others: int) -> bool:
        """True once in so many and one more times."""
        return self.random.randint(0, others) == 0

    def one_of(self, records: Sequence[Record]) -> Record:
        return self.random.choice(records)

    def alias(self) -> str:
        self._aliases += 1
        return f"f{self._aliases}"


seeds = st.integers(0, 1 << 32)
models = st.tuples(seeds, st.integers(1, 200), st.booleans(), st.booleans())  # of `grow`
queries = st.lists(st.tuples(seeds, st.integers(1, 4)), min_size=1, max_size=5)  # seed and depth of each


# -- the properties ----------------------------------------------------------------------------------------------------


async def check(store: Store, tree: tuple[int, int, bool, bool], asked: list[tuple[int, int]]) -> None:
    model = grow(*tree)
    await store.create()
    await model.plant(store)
    cache = PageCache(1_000_000, TreeVersionCache(0.0))
    for seed, depth in asked:
        fields = Writer(seed, model, depth).query()
        text, expected = GraphText(fields), model.answer(fields)
        for page_cache in (None, cache, cache):  # cold, with the hints of those before, warm
            witness = ReadRecorder(store)
            request = Request(witness, DEFINITIONS, BOUNDLESS, page_cache=page_cache)
            execution = Execution(SCHEMA, SCHEMA_TYPES, partial(Context, request), limits=WIDE)
            answer = await answer_to(execution, text.text, text.variables, allow_mutations=False)
            assert orjson.loads(answer.content())["data"] == without_failures(expected), text
            assert are_told(answer.body.get("errors", ()), expected), text
            assert not witness.repeated, text


def check_on(url: str, tree: tuple[int, int, bool, bool], asked: list[tuple[int, int]]) -> None:
    async def run() -> None:
        async with open_store(url, keep_bytes=1_000_000) as store:
            await check(store, tree, asked)

    asyncio.run(run())


common = settings(suppress_health_check=list(HealthCheck), deadline=None)


@settings(common, max_examples=examples(15, 80))
@given(models, queries)
def test_sqlite_answers_as_the_model_does(tree, asked):
    check_on("sqlite://:memory:", tree, asked)


@settings(common, max_examples=examples(6, 30))
@given(models, queries)
def test_dynamodb_answers_as_the_model_does(engine, tree, asked):
    check_on(engine.address(f"model-{uuid.uuid4().hex}"), tree, asked)
