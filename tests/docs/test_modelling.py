"""docs/modelling.md: the data of each system is loaded as it is written, its queries take the stated requests."""

import re
import sys
from pathlib import Path

import pytest

from graph.hierarchies.registry import served
from store.engine.protocol import Store
from store.errors import BadInput
from store.sqlite.store import SQLiteStore
from store.transfer.formats.lines import read_jsonl
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from tests.readme import DOCS, blocks
from tests.systems.asking import Client

PAGE = (DOCS / "modelling.md").read_text("utf-8")
SECTIONS = [part for part in PAGE.split("\n## ") if "```graphql" in part]
NUMBERS = {"One": 1, "Two": 2, "Five": 5}
QUERY = re.compile(r"\b(One|Two|Five)\b[^`]*? requests?\b[^`]*?:\n\n```graphql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def title(section: str) -> str:
    return section.partition("\n")[0]


def test_the_page_has_seven_systems() -> None:
    assert len(SECTIONS) == 7


@pytest.mark.parametrize("section", SECTIONS, ids=title)
async def test_each_query_takes_the_requests_of_the_page(
    section: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await loaded(section, store, tmp_path, monkeypatch)
    queries = QUERY.findall(section)
    assert [query for _, query in queries] == blocks("graphql", section), "each query states its requests"
    for number, query in queries:
        reply = await client.ask(query)
        assert not reply.errors
        saved = NUMBERS[number] - reply.requests
        assert saved == 0 or (saved > 0 and isinstance(store, SQLiteStore)), query
        assert all(reply.data.values())


def test_the_file_that_is_shown_is_served_and_its_mistake_is_told_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    code = blocks("py", PAGE)[0]
    (tmp_path / "shop" / "storage.py").write_text(code.replace("under=[Shelf]", "parent=Shelf"))
    with pytest.raises(BadInput) as refused:
        served("shop/storage.py")
    assert blocks("text", PAGE) == [f"clade: {refused.value}\n"]
    (tmp_path / "shop" / "storage.py").write_text(code)
    assert [cls.name for cls in served("graph.hierarchies.locations,shop/storage.py")] == ["location", "storage"]


async def loaded(section: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of a store with the data of a section."""
    named = re.search(r"^Served by `(?:CLADE_HIERARCHIES=)?([\w./]+)`", section, re.MULTILINE)
    module = named[1] if named else "sales"
    for code in blocks("python", section):
        (tmp_path / "sales.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "sales", raising=False)
    (hierarchy,) = served(module)
    file = tmp_path / "nodes.jsonl"
    file.write_text("".join(blocks("json", section)))
    plan, result = ImportPlan(hierarchy.definition()), LoadResult()
    for _, row in read_jsonl(file):
        plan.take(row)
    await load(store, plan, result)
    assert not result.rejections
    return Client(store, hierarchy)
