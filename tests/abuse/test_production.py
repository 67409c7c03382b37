"""Production mode: disabled features, the setting that enables each of them, and foreign Host headers."""

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
    """Which features a server shows; suggestions, in a document and in variables, go with introspection."""
    asked = httpx.post(f"{url}/graphql", json={"query": "{ __schema { queryType { name } } }"}).json()
    service = httpx.post(f"{url}/graphql", json={"query": "{ _service { sdl } }"}).json()
    assert ("data" in asked) == ("data" in service)
    answers = [httpx.post(f"{url}/graphql", json=body).text for body in (MISSPELT, MISSPELT_VALUE)]
    suggests = {"Did you mean" in answer for answer in answers}
    assert suggests == {"data" in asked}, answers
    page = httpx.get(f"{url}/graphql", headers=BROWSER)
    static = httpx.get(f"{url}/graphql/static/x/boot.js")
    assert (page.status_code == 200) == (static.status_code == 200) == ("data" in asked), "GraphiQL reads the schema"
    explorer = httpx.get(f"{url}/", headers=BROWSER)
    features = {"introspection": "data" in asked, "explorer": explorer.status_code == 200}
    return {name for name, is_on in features.items() if is_on}


def test_all_features_are_on_by_default(server):
    with server() as url:
        assert shown(url) == {"introspection", "explorer"}


def test_production_mode_disables_them_and_answers_queries(server):
    with server(production="1") as url:
        assert shown(url) == set()
        answer = httpx.post(f"{url}/graphql", json={"query": '{ __typename city(path: "US/NE/Omaha") { __typename } }'})
        assert answer.json()["data"] == {"__typename": "Query", "city": {"__typename": "City"}}


CREATE = """mutation($a: LocationAttributes!) {
  createLocation(input: {key: "", name: "", attributes: $a}) { node { id } } }"""
WRONG = [
    ("{ city { name } }", {}),
    ('{ city(path: "US") }', {}),
    ('{ changes(hierarchy: LOCATIO, tree: "US") { cursor } }', {}),
    ("{ moves(hierarchy: LOCATIO) { id } }", {}),
    (CREATE, {"a": {"citi": None}}),
    (CREATE, {"a": [True]}),
    (CREATE, {"a": {"city": {"populatoin": True}}}),
    (CREATE, {"a": {"city": {"population": {"x": None}}}}),
    ("query($n: Int) { locations(first: $n) { nodes { id } } }", {"n": {"x": True}}),
    ("query($n: String) { locations(after: $n) { nodes { id } } }", {"n": {"x": None}}),
    ("query($n: ID!) { node(id: $n) { id } }", {"n": ["x", None]}),
    ("query($l: LocationLevel) { locations { nodes { childCount(level: $l) } } }", {"l": {"x": True}}),
]


def test_errors_in_production_mode_have_no_suggestions_and_no_python_values(server):
    with server(production="1") as url:
        for query, variables in WRONG:
            answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}).json()
            for error in answer["errors"]:
                for word in ("Did you mean", "category", "found:", "None", "True", "{'"):
                    assert word not in error["message"], error
                assert error["message"].endswith(".")


@pytest.mark.parametrize("name", ["introspection", pytest.param("explorer", marks=pytest.mark.thorough)])
def test_each_feature_has_its_own_setting(server, name):
    with server(**{name: "0"}) as url:
        assert shown(url) == {"introspection", "explorer"} - {name}
    with server(production="1", **{name: "1"}) as url:
        assert shown(url) == {name}


def test_production_mode_is_off_by_default(monkeypatch):
    assert Settings().shows("introspection")
    monkeypatch.setenv("CLADE_PRODUCTION", "true")
    assert not Settings().shows("introspection")


HOSTS = {"host": "evil.example", "x-forwarded-host": "evil.example", "x-forwarded-proto": "https"}
PATHS = [
    "/", "/graphql/", "/graphql//", "/healthz/", "/readyz/", "/explorer", "/explorer/static/x/main.js/",
    "//evil.example/graphql/", "//evil.example", "/%2f/evil.example/", "/\\evil.example/graphql/",
]  # fmt: skip


@pytest.mark.parametrize("explorer", ["0", "1"])
def test_no_response_names_or_leads_to_the_host_of_its_request(server, explorer):
    with server(production="1", explorer=explorer) as url, httpx.Client(base_url=url) as client:
        for path in PATHS:
            for method in ("GET", "POST"):
                answer = client.send(client.build_request(method, url + path, headers=HOSTS))
                text = answer.text.replace(path, "")
                assert "evil.example" not in f"{text} {answer.headers.get('location', '')}", (method, path)
                assert "://" not in answer.headers.get("location", ""), (method, path)


def test_a_missing_page_says_where_graphql_is(server):
    with server(production="1") as url:
        answer = httpx.post(f"{url}/graphql/", json={"query": "{ __typename }"})
        assert answer.status_code == 404
        (error,) = answer.json()["errors"]
        assert error["message"] == "There is nothing at this path; GraphQL is at /graphql."
