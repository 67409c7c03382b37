"""Example queries: each runs without an error on every store, and finds something where there is something."""

import json

import httpx

from graph.app import create_app
from graph.hierarchies.examples import Example, Sample, example_queries
from graph.hierarchies.registry import served
from graph.settings import Settings
from store.connect import opened
from tests.classes.shops import Place
from tests.graph.explorer.steps import planted
from tests.serving import serving

OWN = '''
from datetime import date

from clade import Node, attribute


class Thing(Node, hierarchy="thing", prefix="My"):
    """Something."""


class TVSet(Thing, under=[None, "self"]):
    """A television."""

    made_on: date | None = attribute("The day it was made.")


class Remote_2(Thing, under="TVSet"):
    """A remote control, which has no attributes."""
'''
ONE_LEVEL = '''
from clade import Node


class Tag(Node, hierarchy="tag"):
    """A tag or a label."""


class Label(Tag, under=None):
    """A label."""
'''


def shown(url: str) -> list[Example]:
    """The examples that a server gives GraphiQL."""
    answer = httpx.get(f"{url}/graphql/examples.json")
    assert answer.headers["cache-control"] == "no-store"
    return [Example(**tab) for tab in answer.json()]


def ask(url: str, example: Example) -> dict:
    sent = {"query": example.query, "variables": example.variables}
    body = httpx.post(f"{url}/graphql", json=sent, timeout=30).json()
    payloads = [one for one in (body.get("data") or {}).values() if isinstance(one, dict)]
    assert [fault for payload in payloads for fault in payload.get("userErrors", [])] == []
    return body


def test_all_examples_find_something_in_the_demo_data(demo_server):
    examples = shown(demo_server)
    assert [one.name for one in examples] == ["Locations", "Breadcrumb", "OneLevel", "Categories"]
    for example in examples:
        body = ask(demo_server, example)
        assert "errors" not in body, example
        assert all(body["data"].values())
    level = ask(demo_server, examples[2])["data"]["location"]["descendants"]
    assert level["totalCount"] >= len(level["nodes"]) > 0
    again = Example("OneLevel", examples[2].query, {**examples[2].variables, "after": level["pageInfo"]["endCursor"]})
    assert "errors" not in ask(demo_server, again)


def test_a_hierarchy_of_one_level_has_no_list_of_one_level(tmp_path):
    (tmp_path / "tag.py").write_text(ONE_LEVEL)
    examples = example_queries(served(str(tmp_path / "tag.py")), {}, writable=True)
    assert [one.name for one in examples] == ["Tags", "Breadcrumb", "CreateTag"]


async def test_all_examples_fit_a_hierarchy_of_ones_own_empty_and_filled(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    store = f"sqlite:///{tmp_path / 'clade.db'}"
    async with opened(store, make=True):
        pass
    with serving(create_app(Settings(store=store, hierarchies=str(tmp_path / "own.py"), writes="on"))) as url:
        empty = shown(url)
        assert [one.name for one in empty] == ["MyThings", "Breadcrumb", "OneLevel", "CreateMyThing"]
        for example in empty:
            assert "errors" not in ask(url, example), example
        *_, create = empty
        written = ask(url, Example(create.name, create.query, {**create.variables, "dryRun": False}))
        assert next(iter(written["data"].values()))["node"]["path"] == "example"
        _, breadcrumb, *_, create = shown(url)
        assert next(iter(ask(url, breadcrumb)["data"].values()))["name"] == "An example"
        given = create.variables | {"input": create.variables["input"] | {"key": "another"}}
        again = Example(create.name, create.query, given)
        for example in (*shown(url)[:-1], again):
            assert "errors" not in ask(url, example), example


async def test_the_new_node_has_the_attributes_that_its_level_requires(tmp_path):
    store = planted(tmp_path / "clade.db", Place, [(["Mall"], "MALL")])
    with serving(create_app(Settings(store=store, hierarchies="tests.classes.shops", writes="on"))) as url:
        for sample in (Sample("Mall", "Mall", "MALL"), Sample("Mall", "Mall/Ada", "SHOP")):
            create = example_queries([Place], {"place": sample}, writable=True)[-1]
            assert "errors" not in ask(url, create)


def test_examples_show_no_path_to_who_may_not_read_it(demo_store):
    with serving(create_app(Settings(store=demo_store, reads="granted"))) as url:
        assert {one.variables.get("path", "Country1") for one in shown(url)} == {"Country1"}


def test_a_store_that_fails_leaves_examples_with_made_up_paths(tmp_path):
    with serving(create_app(Settings(store=f"sqlite:///{tmp_path / 'nothing.db'}"))) as url:
        assert shown(url)[1].variables == {"path": "Country1"}


def test_one_line_has_the_values_of_the_variables_in_their_places():
    (_, breadcrumb, level, _) = example_queries(served(), {"location": Sample("US", 'US/"N"', "STATE", "CITY")})
    assert breadcrumb.one_line() == (
        '{ location(path: "US/\\"N\\"") { name level ... on State { code population latitude } '
        "ancestors { path name } } }"
    )
    assert '{ location(path: "US") { descendants(level: CITY, first: 10, after: null) {' in level.one_line()
    assert json.loads(json.dumps(level.variables)) == {"path": "US", "first": 10, "after": None}
