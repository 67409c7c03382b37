"""Lists that take a text to search for, by items and in memory: nodes, orders, pages, totals and facets against a look
at all nodes; what is read for them.

The long form: pytest --examples 100 tests/resolvers/search/test_search_lists.py
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from resolvers.search import candidates, item_lists
from resolvers.search.item_lists import found_by_items
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from store.engine import Store
from store.model.paths import format_path
from store.model.records import Record
from store.writing.move_delete import Move
from tests import invariants
from tests.resolvers.search.test_against_model import CLASSES, TEXTS, Model, grow
from tests.rights.asking import Server, caller
from tests.selection import examples
from tests.store.writing import journaled
from tests.stores import Interrupted, ReadRecorder
from tests.systems.asking import Client, plant

pytestmark = pytest.mark.both_stores

ARGUMENTS = (
    "(level: $level, where: $where, orderBy: $order, first: $first, after: $after, last: $last, before: $before)"
)
FACETS = "facets(fields: [SIZE, LEVEL]) { missingCount values { value count } }"
PAGE = f"{{ totalCount edges {{ cursor node {{ path }} }} {FACETS} }}"
Meets = Callable[[str], bool]


def query(cls: type[Node], field: str) -> str:
    """The query of roots, of a level in all trees, or of a list below a node."""
    title, many = cls.__name__, f"{cls.name}es" if cls.name == "box" else "places"
    variables = f"$where: {title}Condition!, $order: [{title}OrderBy!], $level: [{title}Level!], "
    variables += "$first: Int, $after: String, $last: Int, $before: String"
    if field == "roots":
        return f"query({variables}) {{ it: {many}{ARGUMENTS} {PAGE} }}"
    return f"query($path: Path, {variables}) {{ {cls.name}(path: $path) {{ it: {field}{ARGUMENTS} {PAGE} }} }}"


def condition(random: Random, model: Model) -> tuple[dict[str, Any], list[str] | None, Meets]:
    """A condition with a text or two, the order of the search if one is directly in it, and whether a path meets it."""
    (text, ranked), (other, also), (third, direct) = [_search(random, model) for _ in range(3)]
    size = {record.path: record.attributes.get("size") for record, _ in model.nodes}
    by_path = {format_path(path): value for path, value in size.items()}
    big = {"size": {"gte": 2}}
    return random.choice([
        ({"search": text}, ranked, lambda one: one in ranked),
        ({"search": text, **big}, ranked, lambda one: one in ranked and (by_path[one] or 0) >= 2),
        ({"search": text, "not": {"search": other}}, ranked, lambda one: one in ranked and one not in also),
        ({"search": text, "or": [{"search": other}, big]}, ranked,
         lambda one: one in ranked and (one in also or (by_path[one] or 0) >= 2)),
        ({"and": [{"search": text}, {"search": other}]}, None, lambda one: one in ranked and one in also),
        ({"or": [{"search": text}, {"search": other}, {"search": third}]}, None,
         lambda one: one in ranked or one in also or one in direct),
        ({"not": {"search": text}}, None, lambda one: one not in ranked),
        ({"search": text, "children": {"some": {"search": other, **big}}}, ranked,
         lambda one: one in ranked and one in {_above(each) for each in also if (by_path[each] or 0) >= 2}),
        ({"search": text, "children": {"none": {"search": other}}}, ranked,
         lambda one: one in ranked and one not in set(map(_above, also))),
    ])  # fmt: skip


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _search(random: Random, model: Model) -> tuple[dict[str, Any], list[str]]:
    """A search and all nodes that match, in their order."""
    text, languages = random.choice([*TEXTS, "oma", "n", "-"]), random.choice([None, None, ["fr"], ["de-AT"]])
    given = {"text": text, **({} if languages is None else {"languages": languages})}
    return given, [] if text == "-" else model.found(text, None, None, languages and tuple(languages))


def listed(model: Model, field: str, path: str, level: str | None, tops: Sequence[Any], outer: str) -> list[str]:
    """The paths of a list without its conditions, depth first."""
    found = []
    for record, _ in model.nodes:
        own, above = format_path(record.path), format_path(record.path[:-1])
        is_root = record.path in tops if tops != [()] else record.depth == 0
        match field:
            case "roots":
                # Of a level that no root can have, the nodes of all trees.
                is_in = is_root if level in (None, outer) else True
            case "children":
                is_in = above == path
            case _:
                is_in = own.startswith(f"{path}/")
        found += [record] if is_in and level in (None, record.level) else []
    return [format_path(one.path) for one in sorted(found, key=lambda one: one.path)]


async def check(server: Server, cls: type[Node], model: Model, tops: Sequence[Any], random: Random) -> None:
    """One list, whole and page by page."""
    where, ranked, meets = condition(random, model)
    outer, inner = cls.levels
    field, level = random.choice(["roots", "children", "descendants"]), random.choice([None, outer, inner])
    path = format_path(random.choice([record.path for record, _ in model.nodes]))
    order = random.choice([{"field": "RELEVANCE"}, {"field": "RELEVANCE", "direction": "DESC"}])
    order = order if ranked is not None else {"field": "PATH"}
    variables = {"where": where, "order": [order], "level": level and [level], "path": path}
    who = caller(*[f"read:{cls.name}/{format_path(top)}" if top else f"read:{cls.name}" for top in tops])
    text = query(cls, field)
    if field == "roots":
        del variables["path"]

    async def ask(**page: Any) -> Any:
        answer = await server.ask(who, text, **variables, **page)
        assert "errors" not in answer, (answer["errors"], variables)
        data = answer["data"]
        return data["it"] if field == "roots" else data[cls.name]["it"]

    whole = await ask()
    paths = listed(model, field, path, level, tops, outer)
    expected = [one for one in paths if meets(one)]
    if ranked is not None:
        expected.sort(key=ranked.index)
    if order.get("direction") == "DESC":
        expected.reverse()
    described = (variables, field, tops)
    found = [edge["node"]["path"] for edge in whole["edges"]]
    assert sorted(found) == sorted(expected), described
    assert ranked is None or found == expected, described
    assert whole["totalCount"] == len(expected), described
    records = {format_path(record.path): record for record, _ in model.nodes}
    sizes, levels = whole["facets"]
    counted = Counter(records[one].attributes.get("size") for one in expected)
    if "size" not in where:
        assert {int(one["value"]): one["count"] for one in sizes["values"]} == {
            size: count for size, count in counted.items() if size is not None
        }, described
        assert sizes["missingCount"] == counted[None], described
    assert {one["value"]: one["count"] for one in levels["values"]} == Counter(records[one].level for one in expected)
    for step, cursor, more in (("first", "after", "end"), ("last", "before", "start")):
        pages: list[str] = []
        page: dict[str, Any] = {step: random.choice([1, 2, 5])}
        while len(pages) < len(expected):
            edges = (await ask(**page))["edges"]
            assert edges, described
            own = [edge["node"]["path"] for edge in edges]
            pages = pages + own if step == "first" else own + pages
            page[cursor] = edges[-1 if more == "end" else 0]["cursor"]
        assert pages == found, described


async def none(*_: Any) -> None:
    """No candidates: the list is read whole."""


@pytest.fixture(params=["by items", pytest.param("in memory", marks=pytest.mark.both_stores(False))])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How lists are read, whatever would be cheaper."""
    monkeypatch.setattr(item_lists, "MIN_NODES", 0)
    monkeypatch.setattr(item_lists, "NODE_PRICE", 0)
    if request.param == "in memory":
        monkeypatch.setattr(candidates, "found_by_items", none)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("seed", range(examples(1, 30)))
async def test_lists_are_those_of_a_look_at_all_nodes(store, cls, seed):
    random = Random(f"{cls.name} {seed}")  # noqa: S311
    paths = await grow(store, cls, random)
    items = list((await invariants.nodes(store, cls.name)).values())
    server = Server(store, cls)
    for tops in ([()], random.sample(paths, min(2, len(paths)))):
        tops = [top for top in tops if not any(top != one and top[: len(one)] == one for one in tops)]
        model = Model(cls.definition(), items, tops)
        for _ in range(6):
            await check(server, cls, model, tops, random)


async def records(store: Store) -> list[Record]:
    return [Record.of(item) for item in (await invariants.nodes(store, "location")).values()]


SIDES = [[9, 9, 0, 0], [9, 9, 0, 4], [9, 0, 9, 4]]
MOVING = """{ FIELD(path: "US") { descendants(where: {search: {text: "TEXT"}}, orderBy: {field: RELEVANCE}) {
  totalCount nodes { path } } } searchLocations(text: "TEXT", first: 100) { nodes { path } complete totalCount } }"""


@pytest.mark.both_stores(False)
async def test_while_a_subtree_moves_all_ways_find_the_same_side(store, monkeypatch):
    """A state is renamed, and moved to another country, while nodes below it are searched for by its words."""
    cities = [(("US", "NE", f"c{n}"), "CITY", ("Lodz" if n % 3 else "Omaha") + f" {n}") for n in range(14)]
    rows: list[Any] = [(("US",), "COUNTRY"), (("CA",), "COUNTRY"), (("US", "NE"), "STATE", "Nebraska"), *cities]
    await plant(store, Location, rows)
    store.max_commit_changes = journaled.SMALL
    monkeypatch.setattr(item_lists, "MIN_NODES", 0)
    monkeypatch.setattr(item_lists, "NODE_PRICE", 0)
    cache, seen = PageCache(10_000_000, TreeVersionCache(0.0)), list[Any]()

    async def ask(_: int = 0) -> None:
        states = []
        for text in ("lodz nebraska", "lodz us", "lodz ca", "lodz 1 here"):
            query, answers = MOVING.replace("FIELD", "country").replace("TEXT", text), []
            for found_by in (found_by_items, none):
                monkeypatch.setattr(candidates, "found_by_items", found_by)
                reply = await Client(store, Location, page_cache=cache).ask(query)
                assert not reply.errors, reply.errors
                found, below = reply.data["searchLocations"], reply.data["country"]["descendants"]
                assert found["complete"], text
                assert found["totalCount"] == len(found["nodes"])
                us = [one for one in found["nodes"] if one["path"].startswith("US/")]
                assert (below["nodes"], below["totalCount"]) == (us, len(us)), (text, found_by)
                answers.append(found)
            assert answers[0] == answers[1], text
            states.append(len(answers[0]["nodes"]))
        seen.append(states)

    moving: Any = Interrupted(store, "commit", after=ask)
    await journaled.write(moving, Move(Location.definition(), ("US", "NE"), ("US", "Here")))
    await journaled.write(moving, Move(Location.definition(), ("US", "Here"), ("CA", "Here")))
    assert len(seen) > 10
    assert [one for one, last in zip(seen, [None, *seen], strict=False) if one != last] == SIDES


REFUSED = {
    'where: {search: {text: "%s"}}' % ("a" * 201): "search in where: text has 201 characters; at most 200 are allowed",
    'where: {or: [{search: {text: "a b c d e f g h i"}}]}': "search in where: text has 9 words; at most 8 are allowed",
    'where: {search: {text: "a", languages: ["no tag"]}}': "no tag",
    "where: {search: null}": "search is null in where; omit it",
    "orderBy: {field: RELEVANCE}": "give one directly in where, outside of and, or and not",
    'orderBy: {field: RELEVANCE}, where: {and: [{search: {text: "a"}}]}': "orderBy has RELEVANCE",
    'orderBy: [{field: RELEVANCE}, {field: RELEVANCE}], where: {search: {text: "a"}}': "orderBy has RELEVANCE twice",
}


async def test_what_is_no_search_is_refused_before_anything_is_read(store):
    client = Client(store, Location)
    for arguments, message in REFUSED.items():
        reply = await client.ask(f"{{ locations({arguments}) {{ totalCount }} }}")
        assert message in reply.errors[0]["message"]
        assert (reply.errors[0]["extensions"]["code"], reply.requests) == ("BAD_USER_INPUT", 0)


ROWS: list[tuple[Any, ...]] = [
    (("US",), "COUNTRY"), (("US", "NE"), "STATE", "Nebraska"), (("US", "IA"), "STATE", "Iowa"),
    *[(("US", "NE" if n % 2 else "IA", f"c{n:04}"), "CITY", "Lodz" if n % 100 < 2 else "Other") for n in range(1_200)],
]  # fmt: skip
LODZ = 'level: CITY, first: 5, orderBy: {field: RELEVANCE}, where: {search: {text: "%s"}}'
COST = "{ totalCount nodes { path } }"


@pytest.mark.usefixtures("exact")
async def test_reads_of_a_long_list_are_those_of_its_word(store):
    await plant(store, Location, ROWS)
    client = Client(store, Location, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    for text, total, requests, rounds in (("lodz", 24, 3, 2), ("lodz nebr", 12, 5, 4)):
        for owner in ("", 'country(path: "US")'):
            field = "descendants" if owner else "locations"
            inner = f"{field}({LODZ % text}) {COST}"
            reply = await client.ask(f"{{ {owner} {{ {inner} }} }}" if owner else f"{{ {inner} }}")
            found = reply.data["country"][field] if owner else reply.data[field]
            assert (found["totalCount"], len(found["nodes"])) == (total, 5)
            assert reply.requests <= requests + 1, (text, owner, "with the owner, or what moves have changed")
            assert reply.rounds <= rounds + bool(owner)
            assert reply.items < 90
            assert reply.units < 40
    again = await client.ask(f"{{ locations({LODZ % 'lodz'}) {COST} }}")
    assert again.requests == 2, "the items and the nodes: no result is cached"


@pytest.mark.usefixtures("exact")
async def test_ancestors_of_nested_lists_are_read_once(store):
    states = [(("US", f"s{n:02}"), "STATE", "Iowa" if n % 2 else "Nebraska") for n in range(30)]
    cities = [((*path, f"c{n}"), "CITY", "Lodz") for path, *_ in states for n in range(3)]
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY"), *states, *cities]
    await plant(store, Location, rows)
    inner = 'children(where: {search: {text: "lodz nebr"}}) { totalCount }'
    query = f'{{ country(path: "US") {{ children {{ nodes {{ {inner} }} }} }} }}'
    reply = await Client(store, Location).ask(query)
    assert [one["children"]["totalCount"] for one in reply.data["country"]["children"]["nodes"]] == [3, 0] * 15
    plain = await Client(store, Location).ask(query.replace("lodz nebr", "lodz"))
    assert reply.requests == plain.requests, "all ancestors are owners of lists, or were looked up"
    deep = query.replace("country(path", "location(path").replace('"US"', '"US/s01"')
    assert (await Client(store, Location).ask(deep.replace("nebr", "us"))).data == {
        "location": {"children": {"nodes": [{"children": {"totalCount": 0}}] * 3}}
    }


TOO_MANY = 'that may have the word "lodz" are more than this request may read; write a longer word, or search below'


@pytest.mark.both_stores(False)
async def test_a_word_of_too_many_nodes_is_read_with_the_whole_list_or_refused(store, monkeypatch):
    await plant(store, Location, ROWS)
    monkeypatch.setattr(item_lists, "MAX_ITEMS", 20)
    text = f'{{ country(path: "US") {{ descendants({LODZ % "lodz"}) {{ totalCount }} }} }}'
    whole = await Client(store, Location).ask(text)
    assert whole.data == {"country": {"descendants": {"totalCount": 24}}}
    small = BudgetLimits(read_units=54.0)
    (error,) = (await Client(store, Location, budget=small).ask(text)).errors
    assert TOO_MANY in error["message"]
    assert error["extensions"]["code"] == "BUDGET_EXCEEDED"
    monkeypatch.undo()
    assert (await Client(store, Location, budget=small).ask(text)).data == whole.data


async def test_a_text_without_a_word_is_met_by_no_node_and_reads_nothing(store):
    await plant(store, Location, ROWS[:20])
    client = Client(store, Location)
    for text in ("", "-", "!?"):
        reply = await client.ask(f'{{ locations(where: {{search: {{text: "{text}"}}}}) {COST} }}')
        assert (reply.data, reply.requests) == ({"locations": {"totalCount": 0, "nodes": []}}, 0)
    reply = await client.ask('{ locations(where: {not: {search: {text: "-"}}}) { totalCount } }')
    assert reply.data == {"locations": {"totalCount": 1}}


@pytest.mark.usefixtures("way")
async def test_a_caller_who_may_read_a_part_finds_what_is_hers_and_reads_no_items_of_words(store):
    await plant(store, Location, ROWS[:100])
    recorder: Any = ReadRecorder(store)
    server, who = Server(recorder, Location), caller("read:location/US/NE", "read:location/US/IA/c0000")
    lodz, nebraska, states = [
        f'locations(level: CITY, where: {{search: {{text: "{text}"}}}}) {{ totalCount }}'
        for text in ("lodz", "lodz nebraska", "lodz us")
    ]
    found = await server.data(who, f"{{ a: {lodz} b: {nebraska} c: {states} }}")
    assert [one["totalCount"] for one in found.values()] == [2, 1, 0], "the country is above what she sees"
    assert not any("words/" in span.partition or "kinds/" in span.partition for span, *_ in recorder.spans)
