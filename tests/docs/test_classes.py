"""Classes of all pages: they are served as they are written, with their queries, costs and messages."""

import re
from pathlib import Path

import pytest

from clade import Node
from commands.importing.files import FileOptions, shape_of_file
from graph.hierarchies.attribute import attribute
from graph.hierarchies.registry import served
from store.engine import Store
from store.errors import BadInput
from store.model.hierarchy import Undefined
from store.sqlite.store import SQLiteStore
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from tests.readme import DOCS, blocks
from tests.rights.asking import Server, caller
from tests.systems.asking import Client, plant

ATTRIBUTES, CHANGING, MODELLING, FINDING = (
    (DOCS / f"{name}.md").read_text("utf-8")
    for name in ("attributes", "changing-a-hierarchy", "modelling", "find-nodes")
)


def served_from(folder: Path, code: str) -> type[Node]:
    file = folder / "shown.py"
    file.write_text(code)
    (hierarchy,) = served(str(file))
    return hierarchy


def test_the_class_that_is_searched_is_served(tmp_path: Path) -> None:
    code = blocks("python", FINDING)[0]
    assert served_from(tmp_path, f'"""Assets."""\n\n{code}').definition().name == "asset"


# -- Attributes --------------------------------------------------------------------------------------------------------

SHOP = {
    "owner": "Ann", "branch": "B-17", "rent": "12.50 EUR", "address": '{"street": "Main 1", "postcode": "68118"}',
    "greeting": {"de": "Servus"},
}  # fmt: skip


async def test_the_hierarchy_with_all_attributes_answers_the_queries_of_its_page(store: Store, tmp_path: Path) -> None:
    hierarchy = served_from(tmp_path, blocks("py", ATTRIBUTES)[0])
    await plant(store, hierarchy, [(["M"], "MALL"), (["M", "S"], "SHOP", "Stall", SHOP)])
    by_value, change, query, listing = blocks("graphql", ATTRIBUTES)
    listed = await Client(store, hierarchy).ask(listing)
    assert ([one["name"] for one in listed.data["hierarchies"]], listed.requests) == (["PLACE"], 0)
    reply = await Client(store, hierarchy).ask(query)
    assert reply.data["shop"] == {
        "label": "Stall (Ann)", "rent": {"amount": "12.50", "currency": "EUR"}, "address": {"street": "Main 1"},
        "greeting": {"text": "Servus", "texts": [{"language": "de", "text": "Servus"}]},
    }  # fmt: skip
    assert (await Client(store, hierarchy).ask(by_value)).data == {
        "shop": {"path": "M/S", "owner": "Ann"},
        "closed": None,
    }
    server, everything = Server(store, hierarchy), caller("write:place")
    assert (await server.write(everything, change))["data"]["updatePlace"]["node"] == {"path": "M/S"}
    shop = 'parent: { path: "M" }, key: "T", name: "x", attributes: { shop: { owner: "Bo", branch: "B-17" } }'
    refusal = await server.refusal(everything, f"mutation {{ createPlace(input: {{ {shop} }}) {{ node {{ id }} }} }}")
    assert refusal[0] == "TAKEN"
    assert f"`{refusal[1]}`" in ATTRIBUTES
    with pytest.raises(BadInput) as refused:
        hierarchy.definition().levels["SHOP"].attributes["floor"].parse(12)
    assert f"`{str(refused.value).rstrip('.')}`" in ATTRIBUTES


def test_every_option_of_an_attribute_is_on_its_page() -> None:
    rows = re.findall(r"^\| (`\w+=.*?) \|", ATTRIBUTES, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)=", row)} == set(attribute.__kwdefaults__)


# -- Changes -----------------------------------------------------------------------------------------------------------

HEAD = '''"""Places."""

from clade import Long, Node, attribute, computed


class Location(Node, hierarchy="location"):
    """A place."""


class Country(Location, under=None):
    """A country."""


class State(Location, under=[Country]):
    """A state."""


class County(Location, under=[State]):
    """A county."""


class Store(Location, under=["City"]):
    """A store."""

    owner: str | None = attribute("Owner.", required=True)


'''


def test_changed_classes_are_served_and_the_sentences_of_the_check_are_those_of_the_page(tmp_path: Path) -> None:
    attribute, method, city = blocks("py", CHANGING)
    body = "".join(f"    {line}\n" for line in f"{attribute}\n{method}".splitlines())
    seen = Undefined(served_from(tmp_path, f"{HEAD}{city}\n{body}").definition())
    for _ in range(14):
        seen.see("TOWN", {"people": 1})
    for _ in range(2):
        seen.see("STATE", {"lakes": 1})
    seen.see_rules("STORE", {}, "US/NE/Omaha/68118/1")
    assert sorted(blocks("text", CHANGING)[0].splitlines()) == sorted(seen.sentences())


# -- Systems -----------------------------------------------------------------------------------------------------------

SECTIONS = [part for part in MODELLING.split("\n## ") if "```graphql" in part]
NUMBERS = {"One": 1, "Two": 2, "Five": 5}
QUERY = re.compile(r"\b(One|Two|Five)\b[^`]*? requests?\b[^`]*?:\n\n```graphql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
async def test_each_query_of_a_system_takes_the_requests_of_the_page(
    section: str, store: Store, tmp_path: Path
) -> None:
    assert len(SECTIONS) == 7
    named = re.search(r"^Served by `(?:CLADE_HIERARCHIES=)?([\w./]+)`", section, re.MULTILINE)
    (hierarchy,) = served(named[1]) if named else [served_from(tmp_path, *blocks("python", section))]
    (tmp_path / "nodes.jsonl").write_text("".join(blocks("json", section)))
    plan, result = ImportPlan(hierarchy.definition()), LoadResult()
    for row in shape_of_file(hierarchy.definition(), tmp_path / "nodes.jsonl", None, FileOptions()).rows():
        plan.take(row)
    await load(store, plan, result)
    assert not result.rejections
    client = Client(store, hierarchy)
    queries = QUERY.findall(section)
    assert [query for _, query in queries] == blocks("graphql", section), "each query states its requests"
    for number, query in queries:
        reply = await client.ask(query)
        assert not reply.errors
        assert all(reply.data.values())
        saved = NUMBERS[number] - reply.requests
        assert saved == 0 or (saved > 0 and isinstance(store, SQLiteStore)), query


def test_the_file_that_is_shown_is_served_and_its_mistake_is_told_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    code = blocks("py", MODELLING)[0]
    (tmp_path / "shop" / "storage.py").write_text(code.replace("under=[Shelf]", "parent=Shelf"))
    with pytest.raises(BadInput) as refused:
        served("shop/storage.py")
    assert blocks("text", MODELLING) == [f"clade: {refused.value}\n"]
    (tmp_path / "shop" / "storage.py").write_text(code)
    assert [cls.name for cls in served("graph.hierarchies.locations,shop/storage.py")] == ["location", "storage"]
