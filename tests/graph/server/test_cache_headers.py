"""Cache headers of responses over HTTP: shared caches get what trees prove, with their tags, and no more."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest

from graph.app import create_app
from graph.execution.response import MAX_TAG_BYTES, MAX_TAGS, tags_of
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.model.keys import tree_key
from tests.graph.explorer.steps import SECRET, planted, token
from tests.serving import serving
from tests.wares import WareNode

PUBLIC = "public, max-age=60, stale-while-revalidate=60"
PRIVATE = "private, no-cache"
PLACES = [
    (["US"], "COUNTRY"), (["US", "NE"], "STATE"), (["US", "NE", "Omaha"], "CITY"),
    (["FR"], "COUNTRY"), (["FR", "Paris"], "CITY"),
]  # fmt: skip
GOODS = [(["Hüte, Mützen"], "CATEGORY"), (["Hüte, Mützen", "Hüte"], "CATEGORY")]
STATE = '{ state(path: "US/NE") { name children { nodes { name } } ancestors { name } } }'
ROOTS = "{ locations { nodes { key childCount } } }"

Start = Callable[..., AbstractContextManager[httpx.Client]]


@pytest.fixture
def start(store_url: str) -> Start:
    """Starts a server over some places and goods, with these settings."""

    planted(store_url, Location, PLACES)
    planted(store_url, CategoryNode, GOODS)

    @contextmanager
    def start(**settings: object) -> Iterator[httpx.Client]:
        app = create_app(Settings(store=store_url, **{"max_age_seconds": 60, "settle_seconds": 0.0, **settings}))
        with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
            yield client

    return start


def get(client: httpx.Client, query: str, **headers: str) -> httpx.Response:
    return client.get("/graphql", params={"query": query}, headers=headers)


def post(
    client: httpx.Client, query: str, headers: dict[str, str] | None = None, **variables: object
) -> httpx.Response:
    headers = {"clade-cache-tags": "1", **(headers or {})}
    return client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)


def tags(answer: httpx.Response) -> list[str]:
    """The tags of a public response, which are the same in both headers."""
    assert "errors" not in answer.json()
    assert answer.headers["cache-control"] == PUBLIC, answer.text
    assert answer.headers["cache-tag"].split(",") == answer.headers["surrogate-key"].split(" ")
    return answer.headers["cache-tag"].split(",")


def is_private(answer: httpx.Response, control: str = "no-store") -> bool:
    return (answer.headers["cache-control"], answer.headers.get("cache-tag"), answer.headers.get("surrogate-key")) == (
        control, None, None,
    )  # fmt: skip


# -- which tags --------------------------------------------------------------------------------------------------------


TAGS = {
    STATE: ["location/US"],
    '{ a: country(path: "US") { name } b: country(path: "FR") { name } }': ["location/FR", "location/US"],
    '{ country(path: "XX") { name } }': ["location/XX"],
    ROOTS: ["location", "location/FR", "location/US"],
    "{ locations { totalCount } }": ["location"],
    '{ state(path: "US/NE") { history { nodes { revision } } } }': ["location/US"],
    '{ category(path: "Hüte, Mützen") { children { nodes { key } } } city(path: "FR/Paris") { key } }': [
        f"{CategoryNode.name}/H%C3%BCte%2C%20M%C3%BCtzen", "location/FR",
    ],
}  # fmt: skip


@pytest.mark.parametrize("cache_mb", [128, 0])
def test_the_tags_are_the_trees_and_hierarchies_of_a_response_cached_or_not(start, cache_mb):
    with start(cache_mb=cache_mb) as client:
        for query, expected in TAGS.items():
            for _ in range(4):
                answer = get(client, query)
                assert (query, tags(answer)) == (query, expected)
                assert answer.headers["vary"] == "accept, authorization, accept-encoding"
                assert answer.headers["etag"]


def test_a_head_and_a_304_have_the_same_headers_and_a_write_changes_the_entity_tag(start):
    with start(writes="on") as client:
        first = get(client, STATE)
        head = client.head("/graphql", params={"query": STATE})
        again = get(client, STATE, **{"if-none-match": first.headers["etag"]})
        assert (head.status_code, again.status_code, again.content) == (200, 304, b"")
        for name in ("cache-control", "cache-tag", "surrogate-key", "etag", "vary"):
            assert first.headers[name] == head.headers[name] == again.headers[name]
        post(client, 'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "Nebraska"}) { node { name } } }')
        again = get(client, STATE, **{"if-none-match": first.headers["etag"]})
        assert again.json()["data"]["state"]["name"] == "Nebraska"
        assert tags(again) == ["location/US"]


# -- what is in no shared cache ----------------------------------------------------------------------------------------


FAILED = ['{ state(path: "US//NE") { name } }', "{ nothing }", '{ state(path: "US/NE") { name } nothing }']
NOT_CACHED = [
    "{ hierarchies { name } }",
    '{ changes(hierarchy: LOCATION, tree: "US") { cursor } }',
    '{ deletedNode(id: "location:nowhere") { path } state(path: "US/NE") { name } }',
    "{ __schema { queryType { name } } }",
    "{ _service { __typename } }",
]
UNPROVEN = [
    "{ __typename }",
    '{ node(id: "location:nowhere") { id } }',
    '{ node(id: "location:nowhere") { id } state(path: "US/NE") { name } }',
]


def test_a_response_that_no_tree_proves_is_in_no_shared_cache(start):
    with start() as client:
        for query in FAILED + NOT_CACHED + UNPROVEN:
            for _ in range(3):
                answer = get(client, query)
                assert ("errors" in answer.json()) is (query in FAILED), answer.text
                assert is_private(answer, "no-store" if query in FAILED else PRIVATE), query


def test_posts_and_mutations_and_reported_reads_are_in_no_shared_cache(start):
    mutation = 'mutation { updateLocation(input: {node: {path: "US"}, name: "U"}) { node { name } } }'
    with start(writes="on") as client:
        assert is_private(client.post("/graphql", json={"query": STATE}))
        assert is_private(post(client, mutation))
        assert is_private(get(client, mutation))
        assert is_private(get(client, STATE, **{"clade-reads": "1"}))
        assert is_private(get(client, STATE, **{"clade-reads": "2"}))


@pytest.mark.parametrize("has_credential", [True, False])
def test_without_the_setting_or_with_a_credential_no_response_is_in_a_shared_cache(start, has_credential):
    headers = {"authorization": f"Bearer {token('read:location')}"} if has_credential else {}
    with start(jwt_secret=SECRET) if has_credential else start(max_age_seconds=0) as client:
        assert is_private(get(client, STATE, **headers), PRIVATE)
        answer = post(client, STATE, headers)
        assert is_private(answer)
        assert "extensions" not in answer.json()


# -- limits of tags ----------------------------------------------------------------------------------------------------


def test_more_tags_than_headers_may_hold_make_none():
    few = [tree_key("location", (f"{number:03}",)) for number in range(MAX_TAGS)]
    assert tags_of([]) == []
    assert tags_of(few[:200]) == [f"location/{number:03}" for number in range(200)]
    assert tags_of([*few, "location"]) == []
    length = MAX_TAG_BYTES // 4 - len("a/") - 1  # each with a comma
    long = [tree_key("a", (f"{letter * length}",)) for letter in "wxyz"]
    assert sum(len(tag) + 1 for tag in tags_of(long)) == MAX_TAG_BYTES
    assert tags_of([*long, "a"]) == []


def test_a_response_of_too_many_trees_is_private(start, monkeypatch):
    with start() as client:
        monkeypatch.setattr("graph.execution.response.MAX_TAGS", 2)
        assert is_private(get(client, ROOTS), PRIVATE)
        assert is_private(post(client, ROOTS))
        monkeypatch.setattr("graph.execution.response.MAX_TAGS", 3)
        assert len(tags(get(client, ROOTS))) == 3


# -- Apollo's router ---------------------------------------------------------------------------------------------------

ENTITIES = "query ($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }"
US, FR = {"__typename": "Country", "path": "US"}, {"__typename": "Country", "path": "FR"}


def test_a_gateway_gets_the_tags_of_fields_and_of_each_entity_in_the_extensions_of_a_post(start):
    with start() as client:
        for _ in range(3):
            answer = post(client, STATE)
            assert answer.headers["cache-control"] == PUBLIC
            assert answer.json()["extensions"] == {"apolloCacheTags": ["location/US"]}
            answer = post(client, ENTITIES, representations=[US, FR, US])
            assert answer.headers["cache-control"] == PUBLIC
            assert answer.json()["extensions"] == {"apolloEntityCacheTags": [["location/FR", "location/US"]] * 3}
            assert len(answer.json()["data"]["_entities"]) == 3
        answer = post(client, STATE, {"clade-reads": "2"})
        assert list(answer.json()["extensions"]) == ["reads", "apolloCacheTags"]
        answer = get(client, STATE, **{"clade-cache-tags": "1"})
        assert tags(answer) == ["location/US"]
        assert list(answer.json()) == ["data"]


UNTAGGED = {
    "unknown id": (ENTITIES, [{"__typename": "Country", "id": "location:nowhere"}]),
    "error": (ENTITIES, [{"__typename": "Country"}]),
    "another field": (ENTITIES.replace("__typename } }", "__typename } __typename }"), [US]),
    "no variable": ('{ _entities(representations: [{__typename: "Country", path: "US"}]) { __typename } }', None),
}


def test_a_response_with_errors_has_no_tags(start):
    with start() as client:
        for _ in range(3):  # such a response is cached by the server
            assert is_private(post(client, '{ state(path: "US/NE") { name } city(path: "US/NE") { name } }'))


def test_entities_without_tags_are_in_no_cache(start):
    with start() as client:
        for case, (query, representations) in UNTAGGED.items():
            answer = post(client, query, representations=representations)
            assert answer.json()["data"]["_entities"], case
            assert is_private(answer), case
            assert "extensions" not in answer.json()


# -- lookups by unique values ------------------------------------------------------------------------------------------


def test_a_node_that_is_found_by_its_value_is_public_and_a_value_without_a_node_is_not(store_url):
    planted(store_url, WareNode, [(["r"], "SHELF"), (["r", "a"], "WARE", "a", {"sku": "A", "serial": 5})])
    settings = {"store": store_url, "max_age_seconds": 60, "settle_seconds": 0.0, "hierarchies": "tests.wares"}
    with serving(create_app(Settings(**settings))) as url, httpx.Client(base_url=url, timeout=30) as client:
        for _ in range(3):
            assert tags(get(client, '{ ware(sku: "A") { path } wareNode(serial: 5) { name } }')) == ["ware/r"]
            for missing in ('{ ware(sku: "B") { path } }', '{ a: ware(sku: "B") { path } ware(sku: "A") { path } }'):
                answer = get(client, missing)
                assert "errors" not in answer.json()
                assert is_private(answer, PRIVATE) or is_private(answer)
