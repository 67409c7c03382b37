"""Servers with two versions of a class on one store, as in each deployment: both answer and write, and no search lacks
something.
"""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from random import Random
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.app import create_app
from graph.settings import Settings
from resolvers.search.words import SearchArguments, search
from resolvers.session.request import Request
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, NotIndexed
from store.kinds.words import SearchText
from store.metadata.moves import MoveTiming
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.create_update import Create, Update
from store.writing.move_delete import Move
from store.writing.move_worker import MoveWorker
from store.writing.writer import Writer
from tests import invariants, search_model
from tests.classes import land_after, land_before, land_both, shop_after, shop_before
from tests.hierarchies import CATEGORY
from tests.model_writes import KEYS, Model, RandomEdits, Refused
from tests.rights.asking import Server, caller
from tests.search_model import NodeWords
from tests.selection import examples
from tests.serving import serving
from tests.stores import Interrupted, once
from tests.systems.asking import plant
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("probes")

SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
AT = "2026-01-01T00:00:00.000Z"

# -- two servers -------------------------------------------------------------------------------------------------------

MADE = """mutation {
  tools: createShop(input: {key: "Tools", name: "Tools", attributes: {department: {}}}) { userErrors { message } }
  saw: createShop(input: {parent: {path: "Tools"}, key: "saw", name: "Saw",
    attributes: {product: {brand: "Acme", serial: "Zulu", stock: 5}}}) { userErrors { message } }
  offer: createShop(input: {parent: {path: "Tools"}, key: "week", name: "Acme week", attributes: {offer: {}}})
    { userErrors { message } } }"""


class Asked:
    """A server with one version of the class."""

    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, query: str) -> Any:
        return httpx.post(f"{self.url}/graphql", json={"query": query}).json()

    def write(self, mutation: str) -> None:
        answer = self.post(mutation)
        assert all(one["userErrors"] == [] for one in answer["data"].values()), answer

    def found(self, text: str) -> list[str]:
        answer = self.post(f'{{ searchShops(text: "{text}") {{ complete nodes {{ path }} }} }}')
        assert "errors" not in answer, answer
        assert answer["data"]["searchShops"]["complete"]
        return [one["path"] for one in answer["data"]["searchShops"]["nodes"]]

    def refusal(self) -> str:
        """The message of a search for words, which is an error of its own; a list of what is near needs no items."""
        answer = self.post(
            '{ searchShops(text: "acme") { nodes { path } } shop(path: "Tools") { name } '
            "shops(where: {near: {latitude: 0, longitude: 0, kilometers: 9}}) { totalCount } }"
        )
        assert answer["data"] == {"searchShops": None, "shops": {"totalCount": 0}, "shop": {"name": "Tools"}}
        (error,) = answer["errors"]
        assert error["extensions"]["code"] == "NOT_INDEXED"
        assert httpx.get(f"{self.url}/readyz").json() == {"ready": True}
        return str(error["message"])


LACKS = "Search items of shop are missing: "
WAY_OUT = " Run clade repair, which writes them; all else is served."


async def repaired(store: Store, hierarchy: Hierarchy) -> list[tuple[str, bool]]:
    repair = Repair(Check(store, {hierarchy.name: hierarchy}, AT), SOON)
    return [(str(one.finding), one.is_fixed) async for one in repair.run()]


async def findings(store: Store, hierarchy: Hierarchy) -> list[str]:
    return [str(one) async for one in Check(store, {hierarchy.name: hierarchy}, AT).findings()]


@pytest.mark.both_stores
async def test_servers_with_and_without_a_level_and_a_searched_attribute(
    store: Store, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:

        def start(module: Any) -> Asked:
            made = Settings(store=store_url, hierarchies=module.__name__, writes="on")
            return Asked(stack.enter_context(serving(create_app(made))))

        before = start(shop_before)
        before.write(MADE)
        assert before.found("acme") == ["Tools/week", "Tools/saw"]
        assert LACKS not in caplog.text

        after = start(shop_after)
        eventually(lambda: f"{LACKS}serial of PRODUCT, the places of DEPARTMENT" in caplog.text)
        assert after.refusal() == f"{LACKS}serial of PRODUCT.{WAY_OUT}"
        assert [one for one in await findings(store, shop_after.Shop.definition()) if "search items are missing" in one]
        after.write("""mutation { made: createShop(input: {parent: {path: "Tools"}, key: "axe", name: "Axe",
          attributes: {product: {serial: "Zulu", stock: 9}}}) { userErrors { message } } }""")
        assert after.refusal(), "the saw is not found"
        results = await repaired(store, shop_after.Shop.definition())
        assert [one for one, is_fixed in results if not is_fixed] == [
            one for one in await findings(store, shop_after.Shop.definition()) if "OFFER" in one
        ]
        eventually(lambda: "errors" not in after.post('{ searchShops(text: "zulu") { complete } }'))
        assert after.found("zulu") == ["Tools/axe", "Tools/saw"]
        assert after.found("acme") == ["Tools/saw"], "a level that is gone is not served"
        assert before.found("zulu") == [], "which it does not search"
        # All write what any of them searches.
        before.write("""mutation {
          a: updateShop(input: {node: {path: "Tools/saw"}, attributes: {product: {serial: "Yankee Acme"}}})
            { userErrors { message } }
          b: moveShop(input: {node: {path: "Tools/saw"}, key: "saw2"}) { userErrors { message } }
          c: createShop(input: {parent: {path: "Tools"}, key: "file", name: "File",
            attributes: {product: {serial: "Xray"}}}) { userErrors { message } } }""")
        assert after.found("yankee") == ["Tools/saw2"]
        assert after.found("xray") == ["Tools/file"]
        assert before.found("yankee") == before.found("zulu saw") == []
        after.write("""mutation { made: updateShop(input: {node: {path: "Tools"}, attributes: {department:
          {latitude: 0, longitude: 1}}}) { userErrors { message } } }""")
        before.write(
            """mutation { made: moveShop(input: {node: {path: "Tools"}, key: "T"}) { userErrors { message } } }"""
        )
        near = after.post("{ shops(where: {near: {latitude: 0, longitude: 1, kilometers: 9}}) { nodes { path } } }")
        assert near["data"]["shops"]["nodes"] == [{"path": "T"}]
    await invariants.check(store, {"shop": shop_after.Shop.definition()})
    for module in (shop_before, shop_after):
        assert not [one for one in await findings(store, module.Shop.definition()) if "search" in one]


# -- random writes -----------------------------------------------------------------------------------------------------


def with_search(level: str, *searched: str) -> Hierarchy:
    """The hierarchy of the model, of a class in which these attributes of a level are searched."""
    named = {name: Attribute(name, Kind.TEXT, "Text.", search=name in searched) for name in ("note", "code")}
    levels = {name: replace(one, attributes=named if name == level else {}) for name, one in CATEGORY.levels.items()}
    return replace(CATEGORY, levels=levels, search=Search(SearchScope.HIERARCHY))


NOTES, ALL = with_search("CATEGORY", "note"), with_search("CATEGORY", "note", "code")
LESS = replace(NOTES, levels={name: one for name, one in NOTES.levels.items() if name != "VARIANT"})
TREES, NONE = replace(ALL, search=Search(SearchScope.TREE)), replace(ALL, search=None, levels=CATEGORY.levels)
VERSIONS = {"notes": NOTES, "all": ALL, "a level less": LESS, "by tree": TREES, "none": NONE}
TEXTS = ("a", "b", "1", "21", "a b", "1 21")


async def answered(store: Store, hierarchy: Hierarchy, records: Sequence[Record]) -> bool:
    """Whether all searches of a class were answered, each with what a look at all nodes finds."""
    nodes = {one.path: (one, NodeWords(hierarchy, one.item())) for one in records if one.level in hierarchy.levels}
    tops = [one for one in records if one.is_root] if hierarchy.search == TREES.search else [None]
    for text in TEXTS:
        for top in tops:
            expected = set()
            for path, (one, words) in nodes.items():
                is_below = top is None or (one.pk == top.pk and not one.is_root)
                above = [[*nodes[path[:end]][1].found] for end in range(1, len(path)) if path[:end] in nodes]
                if is_below and search_model.meets_with_ancestors(text, [*words.found], above):
                    expected.add(format_path(path))
            asked = SearchArguments(text=SearchText.of(text), under=None if top is None else top.path, first=100)
            try:
                page = await search(Request(store, {"category": hierarchy}), hierarchy, asked)
            except NotIndexed:
                return False
            assert page.complete
            assert {format_path(one.path) for one in page.records} == expected, (text, top and top.path)
    return True


async def follow(store: Store, seed: int, length: int, served: Sequence[str], *, repairs: str | None = None) -> None:
    """Edits, imports and repairs by servers of these versions; what a repair was made for is answered from then on."""
    random, model = Random(seed), Model()  # noqa: S311
    edits, writers = RandomEdits(seed, model), {name: Writer(store, SOON) for name in served}
    answers = set[str]()
    for step in range(length):
        name = random.choice(list(served))
        edit: Any = replace(edits.one(), hierarchy=VERSIONS[name])
        if isinstance(edit, Create | Update):
            edit = replace(edit, values=random.choice([{}, {"note": "1"}, {"code": "21"}, {"note": "1", "code": "2"}]))
        with suppress(Refused, CladeError):
            made = model.apply(edit)
            made((await writers[name].write(edit, ReadUsage())).record)
        await writers[name].move_worker.finished()
        if random.random() < 0.1:
            part = Part("CATEGORY", random.choice(KEYS), None, {}, undefined={"note": "1", "code": "21"})
            plan = ImportPlan(VERSIONS[name])
            plan.take(Row(1, (random.choice(KEYS[:3]),), [part]))
            await load(store, plan, LoadResult())
        if repairs and model.nodes and random.random() < 0.1:  # else there is nothing to repair
            results = await repaired(store, VERSIONS[repairs])
            assert all(done or "level" in text for text, done in results), results
            answers = {repairs}
        if step % 4 == 3:
            records = await all_nodes(store)
            for one in served:
                if one != "none" and records:
                    assert await answered(store, VERSIONS[one], records) or one not in answers, one


SERVED = {
    "an attribute": (("notes", "all"), "all"), "a level": (("notes", "a level less"), "a level less"),
    "a scope": (("all", "by tree"), "by tree"), "search": (("none", "all"), "all"),
    "everything": (("notes", "all", "a level less", "by tree", "none"), "all"),
}  # fmt: skip


@pytest.mark.parametrize("what", SERVED)
@settings(max_examples=examples(1, 60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 1 << 32))
async def test_no_search_of_any_version_lacks_something(tmp_path: Any, what: str, seed: int) -> None:
    served, repairs = SERVED[what]
    async with open_store(f"sqlite:///{tmp_path / uuid.uuid4().hex}.db") as store:
        await store.create()
        if seed % 2:  # large moves in the background
            store.max_commit_changes = store.max_changes = 20
        await follow(store, seed, 30, served, repairs=repairs)


@pytest.mark.both_stores
async def test_no_search_of_any_version_lacks_something_on_both_stores(store: Store) -> None:
    await follow(store, 7, 30, SERVED["everything"][0], repairs="all")


# -- the first node of a level -----------------------------------------------------------------------------------------


def only_categories(hierarchy: Hierarchy) -> Hierarchy:
    return replace(hierarchy, levels={"CATEGORY": hierarchy.levels["CATEGORY"]})


@pytest.mark.both_stores
@pytest.mark.parametrize("how", ["the first root", "an import", "a repair", "a repair of items", "during a repair"])
@pytest.mark.parametrize("other", ["none", "notes"])
async def test_a_class_that_searches_less_may_write_the_first_node_of_a_level(
    store: Store, how: str, other: str
) -> None:
    searched = ALL.levels["CATEGORY"].attributes
    everything = replace(ALL, levels={name: replace(one, attributes=searched) for name, one in ALL.levels.items()})
    first = Create(VERSIONS[other], ("r", "p"), "PRODUCT", "a b", {"note": "1", "code": "21"})

    async def write_product() -> None:
        await Writer(store).write(first, ReadUsage())

    begun = {"the first root": everything, "an import": everything, "a repair": only_categories(everything)}
    former = begun.get(how, only_categories(NOTES))
    if how == "an import":
        await load(store, await plan_of(former, "r"), LoadResult())
    else:
        await Writer(store).write(Create(former, ("r",), "CATEGORY", "x", {"code": "1"}), ReadUsage())
    if how == "during a repair":  # when it has written what is made from now on
        overtaken = cast(Store, Interrupted(store, "commit", before=once(2, write_product)))
        assert all(is_fixed for _, is_fixed in await repaired(overtaken, everything))
    else:
        if "repair" in how:
            assert len(await repaired(store, everything)) == (how == "a repair of items")
        await write_product()
    nodes = await all_nodes(store)
    assert [one.level for one in nodes if one.path == ("r", "p")] == ["PRODUCT"]
    assert await answered(store, everything, nodes)
    assert await findings(store, everything) == []


@pytest.mark.both_stores
async def test_the_first_root_of_a_class_that_asks_for_items_of_all_kinds_is_found(store: Store) -> None:
    named = {
        "code": Attribute("code", Kind.TEXT, "Text.", search=True, unique=True),
        "latitude": Attribute("latitude", Kind.FLOAT, "A number."),
        "longitude": Attribute("longitude", Kind.FLOAT, "A number."),
    }
    levels = {name: replace(one, attributes=named) for name, one in CATEGORY.levels.items()}
    hierarchy = replace(ALL, levels=levels, location=("latitude", "longitude"))
    values = {"code": "21", "latitude": 1.0, "longitude": 2.0}
    await Writer(store).write(Create(hierarchy, ("r",), "CATEGORY", "x", values), ReadUsage())
    assert await answered(store, hierarchy, await all_nodes(store))
    assert await findings(store, hierarchy) == []


# -- writes that a repair overtakes ------------------------------------------------------------------------------------


async def plan_of(hierarchy: Hierarchy, *paths: str, code: str = "old") -> ImportPlan:
    plan = ImportPlan(hierarchy)
    for number, path in enumerate(paths):
        plan.take(Row(number, parse_path(path), [Part("CATEGORY", None, None, {}, undefined={"code": code})]))
    return plan


async def all_nodes(store: Store) -> list[Record]:
    return [Record.of(item) async for page in store.scan(ReadUsage()) for item in page if "tier" in item]


@pytest.mark.both_stores
@pytest.mark.parametrize("how", ["an edit", "a new root", "an import", "an import of a new tree"])
async def test_a_write_that_a_repair_overtakes_has_the_items_that_it_made(store: Store, how: str) -> None:
    await load(store, await plan_of(NOTES, "r", "r/a"), LoadResult())
    overtaken = cast(Store, Interrupted(store, "commit", before=once(1, lambda: repaired(store, ALL))))
    if how in ("an edit", "a new root"):
        path = ("r", "new") if how == "an edit" else ("new",)
        await Writer(overtaken).write(Create(NOTES, path, "CATEGORY", "x", {"code": "1"}), ReadUsage())
    else:
        plan = await plan_of(NOTES, *(["r/new"] if how == "an import" else ["new", "new/b"]), code="1")
        await load(overtaken, plan, LoadResult())
    nodes = await all_nodes(store)
    assert len([one for one in nodes if one.attributes.get("code") == "1"]) == 1 + (how == "an import of a new tree")
    assert await answered(store, ALL, nodes)
    assert await findings(store, ALL) == []


async def test_a_repair_does_not_end_before_a_large_move_that_began_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, everything = replace(NOTES, search=TREES.search), TREES
    await load(store, await plan_of(notes, "o", "r", "r/a", *[f"r/a/{n}" for n in range(30)], code="1"), LoadResult())
    store.max_commit_changes = store.max_changes = 20
    results: list[tuple[str, bool]] = []

    async def nothing(*_: Any) -> list[Any]:
        return []

    async def repair() -> None:
        with monkeypatch.context() as patch:  # as for a move of another server, which goes on
            patch.setattr(MoveWorker, "finish", nothing)
            results.extend(await repaired(store, everything))

    writer = Writer(cast(Store, Interrupted(store, "commit", before=once(3, repair))), SOON)
    await writer.write(Move(notes, ("r", "a"), ("o", "a")), ReadUsage())
    await writer.move_worker.finished()
    assert any("a large move is running" in text and not is_fixed for text, is_fixed in results)
    assert not await answered(store, everything, await all_nodes(store))
    assert all(is_fixed for _, is_fixed in await repaired(store, everything))
    assert await answered(store, everything, await all_nodes(store))
    assert await findings(store, everything) == []


# -- a renamed attribute -----------------------------------------------------------------------------------------------

MAYORS = """{ land(path: "DE") { descendants(level: %s, orderBy: {field: KEY}) { nodes { key ... on %s { %s } } } }
  searchLands(text: "%s") { complete nodes { key } } }"""


@pytest.mark.both_stores
async def test_an_attribute_is_renamed_without_a_server_that_shows_null(store: Store) -> None:
    """The order of the docs: the old class first gets the new name as a former one."""
    await plant(store, land_before.Land, [
        (("DE",), "COUNTRY"), (("DE", "Bonn"), "TOWN", "Bonn", {"mayor": "Ann"}), (("DE", "Ulm"), "TOWN", "Ulm", {}),
    ])  # fmt: skip
    everybody, ends = caller("write:land"), (("TOWN", "Town", "mayor"), ("CITY", "City", "major"))
    servers = [Server(store, land_both.Land), Server(store, land_after.Land)]
    inputs = [("town", "mayor"), ("city", "major")]

    async def check(bonn: str, ulm: str | None, text: str, found: list[str]) -> None:
        for server, (level, title, name) in zip(servers, ends, strict=True):
            data = await server.data(everybody, MAYORS % (level, title, name, text))
            nodes = data["land"]["descendants"]["nodes"]
            assert [one[name] for one in nodes] == [bonn, ulm]
            assert data["searchLands"] == {"complete": True, "nodes": [{"key": one} for one in found]}

    await check("Ann", None, "ann", ["Bonn"])
    for writer, (level, name) in zip((*reversed(servers), *servers), (*reversed(inputs), *inputs), strict=True):
        for key, value in (("Ulm", f"Bea of {level}"), ("Bonn", f"Cora of {level}")):
            answer = await writer.write(
                everybody,
                f"""mutation {{ updateLand(input: {{node: {{path: "DE/{key}"}},
              attributes: {{{level}: {{{name}: "{value}"}}}}}}) {{ node {{ key }} }} }}""",
            )
            assert "errors" not in answer, answer
        await check(f"Cora of {level}", f"Bea of {level}", f"bea {level}", ["Ulm"])
        await check(f"Cora of {level}", f"Bea of {level}", "ann", [])
    for module in (land_both, land_after):
        assert await findings(store, module.Land.definition()) == []
