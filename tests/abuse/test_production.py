"""What a server in the open shows of itself, with CLADE_PRODUCTION=1, and what each setting brings back."""

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from tests.serving import serving

BROWSER = {"accept": "text/html"}
MISSPELT = {"query": "{ citty { name } }"}
MISSPELT_VALUE = {
    "query": "query($l: LocationLevel) { locations { nodes { childCount(level: $l) } } }",
    "variables": {"l": "CITTY"},
}


@pytest.fixture
def server(demo_store, monkeypatch):
    """Starts a server of the demo data with some settings."""
    monkeypatch.setenv("CLADE_STORE", demo_store)

    def start(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(f"CLADE_{name.upper()}", value)
        return serving(create_app())

    return start


def shown(url):
    """Which of the three a server shows; suggestions are looked for in the document and in variables."""
    asked = httpx.post(f"{url}/graphql", json={"query": "{ __schema { queryType { name } } }"}).json()
    service = httpx.post(f"{url}/graphql", json={"query": "{ _service { sdl } }"}).json()
    assert ("data" in asked) == ("data" in service)
    answers = [httpx.post(f"{url}/graphql", json=body).text for body in (MISSPELT, MISSPELT_VALUE)]
    suggests = {"Did you mean" in answer for answer in answers}
    assert len(suggests) == 1, answers
    page = httpx.get(f"{url}/graphql", headers=BROWSER)
    static = httpx.get(f"{url}/graphql/static/x/boot.js")
    assert (page.status_code == 200) == (static.status_code == 200)
    return {
        name
        for name, there in (
            ("introspection", "data" in asked),
            ("suggestions", suggests.pop()),
            ("graphiql", page.status_code == 200),
        )
        if there
    }


def test_by_default_everything_is_shown(server):
    with server() as url:
        assert shown(url) == {"introspection", "suggestions", "graphiql"}


def test_production_shows_nothing_and_still_answers(server):
    with server(production="1") as url:
        assert shown(url) == set()
        answer = httpx.post(f"{url}/graphql", json={"query": '{ __typename city(path: "US/NE/Omaha") { __typename } }'})
        assert answer.json()["data"] == {"__typename": "Query", "city": {"__typename": "City"}}


CREATE = 'mutation($a: LocationAttributes!) { createLocation(key: "", name: "", attributes: $a) { node { id } } }'
WRONG = [
    ("{ city { name } }", {}),
    ('{ city(path: "US") }', {}),
    ('{ changes(hierarchy: "x", tree: "US") { cursor } }', {}),
    ('{ moves(hierarchy: "x") { id } }', {}),
    (CREATE, {"a": {"citi": None}}),
    (CREATE, {"a": [True]}),
    (CREATE, {"a": {"city": {"populatoin": True}}}),
    (CREATE, {"a": {"city": {"population": {"x": None}}}}),
    ("query($n: Int) { locations(first: $n) { nodes { id } } }", {"n": {"x": True}}),
    ("query($n: String) { locations(after: $n) { nodes { id } } }", {"n": {"x": None}}),
    ("query($n: ID!) { node(id: $n) { id } }", {"n": ["x", None]}),
    ("query($l: LocationLevel) { locations { nodes { childCount(level: $l) } } }", {"l": {"x": True}}),
]


def test_errors_of_a_server_in_the_open_list_nothing_and_repeat_no_value_in_pythons_words(server):
    with server(production="1") as url:
        for query, variables in WRONG:
            answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}).json()
            for error in answer["errors"]:
                for word in ("Did you mean", "category", "found:", "None", "True", "{'"):
                    assert word not in error["message"], error
                assert error["message"].endswith(".")


@pytest.mark.parametrize("name", ["introspection", "suggestions", "graphiql"])
def test_each_is_switched_by_itself(server, name):
    with server(**{name: "0"}) as url:
        assert shown(url) == {"introspection", "suggestions", "graphiql"} - {name}
    with server(production="1", **{name: "1"}) as url:
        assert shown(url) == {name}


def test_production_is_off_until_it_is_set(monkeypatch):
    assert Settings().shows("introspection")
    monkeypatch.setenv("CLADE_PRODUCTION", "true")
    assert not Settings().shows("introspection")
