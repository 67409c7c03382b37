"""Settings of a public server: features that production mode disables, hosts, and origins of pages (CORS)."""

import httpx
import pytest

from graph.app import create_app
from graph.hosts import cors_origins
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import ConcurrencyLimiter
from store.errors import BadInput
from tests.graph.small_app import MAX_BODY_BYTES, SmallStore, small_app
from tests.serving import serving

BROWSER = {"accept": "text/html"}
MISSPELT = {"query": "{ citty { name } }"}
MISSPELT_VALUE = {
    "query": "query($l: [LocationLevel!]) { locations { nodes { childCount(level: $l) } } }",
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
    assert (page.status_code == 200) == (static.status_code == 200)
    features = {"introspection": "data" in asked, "graphiql": page.status_code == 200}
    return {name for name, there in features.items() if there}


CREATE = (
    'mutation($a: LocationAttributes!) { createLocation(input: {key: "", name: "", attributes: $a}) { node { id } } }'
)
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
    ("query($l: [LocationLevel!]) { locations { nodes { childCount(level: $l) } } }", {"l": {"x": True}}),
]


def test_errors_in_production_mode_have_no_suggestions_and_no_python_values(server):
    with server(production="1") as url:
        for query, variables in WRONG:
            answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}).json()
            for error in answer["errors"]:
                for word in ("Did you mean", "category", "found:", "None", "True", "{'"):
                    assert word not in error["message"], error
                assert error["message"].endswith(".")


@pytest.mark.parametrize(
    ("settings", "features"),
    [
        ({}, {"introspection", "graphiql"}),
        ({"introspection": "0"}, {"graphiql"}),
        ({"production": "1"}, set()),
        ({"production": "true", "graphiql": "1"}, {"graphiql"}),
    ],
)
def test_features_are_on_by_default_but_in_production_mode_and_each_has_its_own_setting(server, settings, features):
    with server(**settings) as url:
        assert shown(url) == features
        answer = httpx.post(f"{url}/graphql", json={"query": '{ __typename city(path: "US/NE/Omaha") { __typename } }'})
        assert answer.json()["data"] == {"__typename": "Query", "city": {"__typename": "City"}}


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
        missing = client.post("/graphql/", json={"query": "{ __typename }"})
    assert missing.status_code == 404
    assert missing.json()["errors"][0]["message"] == "There is nothing at this path; GraphQL is at /graphql."


# -- origins -----------------------------------------------------------------------------------------------------------

SHOP, EVIL = "https://shop.example", "https://shop.example.evil.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
BODY = {"query": "{ hello }"}


@pytest.fixture(scope="module")
def closed():
    with serving(small_app(SmallStore())) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def drain():
    return GracefulShutdown()


@pytest.fixture(scope="module")
def limiter():
    return ConcurrencyLimiter(100)


@pytest.fixture(scope="module")
def opened(drain, limiter):
    app = small_app(SmallStore(), settings={"cors_origins": SHOP}, drain=drain, limiter=limiter)
    with serving(app) as url, httpx.Client(base_url=url) as client:
        yield client


def allowed(answer):
    return answer.headers.get("access-control-allow-origin")


def test_no_origin_is_allowed_by_default(closed):
    for origin in (SHOP, "null"):
        preflight = closed.options("/graphql", headers={"origin": origin, **PREFLIGHT})
        assert (preflight.status_code, allowed(preflight)) == (405, None)
        assert allowed(closed.post("/graphql", json=BODY, headers={"origin": origin})) is None


@pytest.mark.parametrize(
    ("sent", "named"),
    [(EVIL, EVIL), ("HTTP://LocalHost:5173", "http://localhost:5173"), ("https://a.example:443", "https://a.example")],
)
def test_a_preflight_is_told_how_to_allow_its_origin(closed, opened, sent, named):
    preflights = [one.options("/graphql", headers={"origin": sent, **PREFLIGHT}) for one in (closed, opened)]
    told = [preflight.json()["errors"][0]["message"] for preflight in preflights]
    start = f"Pages of {named} may not read responses; "
    assert told == [
        f"{start}start the server with CLADE_CORS_ORIGINS={named}.",
        f"{start}add it to CLADE_CORS_ORIGINS.",
    ]
    assert preflights[0].headers["allow"] == "GET, HEAD, POST"


def test_a_preflight_whose_origin_no_setting_can_name_does_not_get_it_back(closed, opened):
    for sent in (
        "null",
        "*",
        "",
        "<script>",
        f"{SHOP} {EVIL}",
        f"https://{'a.' * 200}b",
        "\xfc",
        "https://shop.example/x",
    ):
        for client in (closed, opened):
            preflight = client.options("/graphql", headers=[("origin", sent.encode("latin-1")), *PREFLIGHT.items()])
            assert preflight.json()["errors"][0]["message"] == (
                "Pages of this Origin may not read responses; serve the page at an address of its own, whose origin "
                "CLADE_CORS_ORIGINS can name."
            )


JSON, HELLO = [("content-type", "application/json")], b'{"query": "{ hello }"}'
ANSWERS = {
    "data": (200, "POST", "/graphql", JSON),
    "events": (200, "POST", "/graphql", [*JSON, ("accept", "text/event-stream")]),
    "page": (200, "GET", "/graphql", [("accept", "text/html")]),
    "file of a page": (200, "GET", "/graphql/static/x/boot.js", []),
    "not modified": (304, "GET", "/", [("if-none-match", "*")]),
    "alive": (200, "GET", "/healthz", []),
    "ready": (200, "GET", "/readyz", []),
    "no page": (404, "POST", "/graphql/", JSON),
    "no method": (405, "DELETE", "/graphql", []),
    "no preflight": (405, "OPTIONS", "/graphql", []),
    "no method of a probe": (405, "DELETE", "/healthz", []),
    "no media type": (406, "POST", "/graphql", [*JSON, ("accept", "image/png")]),
    "too large": (413, "POST", "/graphql", JSON),
    "too long": (414, "GET", f"/graphql?query={'x' * (MAX_BODY_BYTES + 1)}", []),
    "no JSON": (415, "POST", "/graphql", [("content-type", "text/plain")]),
    "wrong host": (403, "POST", "/graphql", [*JSON, ("host", "shop.example")]),
    "repeated": (400, "POST", "/graphql", [*JSON, *JSON]),
    "wrong credential": (401, "POST", "/graphql", [*JSON, ("authorization", "Basic x")]),
}


def from_origins(client, name, *origins):
    """The response to a request from these origins."""
    status, method, path, headers = ANSWERS[name]
    content = b"" if method != "POST" else b"x" * (MAX_BODY_BYTES + 1) if name == "too large" else HELLO
    sent = [*headers, *(("origin", origin) for origin in origins)]
    answer = client.send(client.build_request(method, path, headers=sent, content=content))
    assert answer.status_code == (status if len(origins) < 2 else 400), answer.text
    assert ("origin" in answer.headers.get("vary", "").split(", ")) is (allowed(answer) != "*")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not {"access-control-allow-credentials", "set-cookie"} & answer.headers.keys()
    return answer


@pytest.mark.parametrize("name", ANSWERS)
def test_every_response_can_be_read_by_pages_of_allowed_origins_and_by_no_others(opened, name):
    answer = from_origins(opened, name, SHOP)
    assert answer.headers.get_list("access-control-allow-origin") == [SHOP]
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"etag", "retry-after", "x-request-id", "allow", "www-authenticate"} <= set(exposed)
    single = [(one,) for one in (EVIL, "http://shop.example", "null", "https://SHOP.example.", "")]
    for others in [(), *single, (SHOP, EVIL), (EVIL, SHOP), (SHOP, SHOP)]:
        assert allowed(from_origins(opened, name, *others)) is None


@pytest.mark.parametrize(
    ("part", "name", "value", "path", "retry_after"),
    [
        ("drain", "has_started", False, "/graphql?query={hello}", None),
        ("drain", "draining", True, "/readyz", None),
        ("limiter", "limit", 0, "/graphql?query={hello}", "1"),
    ],
)
def test_a_server_that_answers_503_can_be_read_by_pages_and_answers_preflights(
    opened, request, monkeypatch, part, name, value, path, retry_after
):
    monkeypatch.setattr(request.getfixturevalue(part), name, value)
    answer = opened.get(path, headers={"origin": SHOP})
    preflight = opened.options("/graphql", headers={"origin": SHOP, **PREFLIGHT})
    assert (answer.status_code, preflight.status_code) == (503, 200)
    assert allowed(answer) == allowed(preflight) == SHOP
    assert answer.headers.get("retry-after") == retry_after


def test_a_preflight_allows_all_headers_that_clients_send_for_two_hours(opened):
    sent = "apollo-require-preflight,authorization,clade-reads,content-type,if-none-match,last-event-id,x-request-id"
    asked = {"origin": SHOP, **PREFLIGHT, "access-control-request-headers": sent}
    preflight = opened.options("/graphql", headers=asked)
    assert (preflight.status_code, allowed(preflight)) == (200, SHOP)
    assert "access-control-allow-credentials" not in preflight.headers
    assert preflight.headers["access-control-allow-headers"] == sent
    assert preflight.headers["access-control-allow-methods"] == "GET, HEAD, POST"
    assert preflight.headers["access-control-max-age"] == "7200"
    assert {"origin", "access-control-request-headers"} == set(preflight.headers["vary"].split(", "))
    assert preflight.headers["x-request-id"]
    wrong = opened.options("/graphql", headers={"origin": EVIL, **PREFLIGHT})
    assert (wrong.status_code, allowed(wrong)) == (400, None)
    assert wrong.json()["errors"][0]["message"].endswith("add it to CLADE_CORS_ORIGINS.")


def test_any_origin_may_read_all_responses_where_the_settings_say_so():
    app = small_app(SmallStore(), settings={"cors_origins": "*"})
    with serving(app) as url, httpx.Client(base_url=url) as client:
        for origins in [(), (EVIL,), (SHOP, EVIL)]:
            assert from_origins(client, "data", *origins).headers.get_list("access-control-allow-origin") == ["*"]
        assert allowed(client.options("/graphql", headers={"origin": EVIL, **PREFLIGHT})) == "*"


# -- how an origin may be written --------------------------------------------------------------------------------------

WRITTEN = {
    "https://shop.example/": "https://shop.example",
    "HTTPS://Shop.Example": "https://shop.example",
    "https://shop.example:443": "https://shop.example",
    "http://shop.example:0080/": "http://shop.example",
    "https://shop.example:8443": "https://shop.example:8443",
    "https://shop.example.": "https://shop.example.",
    "http://127.0.0.1:5173": "http://127.0.0.1:5173",
    "http://[0:0:0:0:0:0:0:1]:5173": "http://[::1]:5173",
    "http://[2001:DB8:0:0:1:0:0:1]": "http://[2001:db8::1:0:0:1]",
    "http://[::FFFF:127.0.0.1]": "http://[::ffff:7f00:1]",
    "https://xn--bcher-kva.example": "https://xn--bcher-kva.example",
}
SECRET = "hunter2"
NEVER = {
    "shop.example": "no scheme; write http://shop.example or https://shop.example",
    "localhost:5173": "no scheme; write http://localhost:5173",
    "https://shop.example/app": "scheme, host and port only",
    f"https://shop.example?key={SECRET}": "scheme, host and port only",
    "https://shop.example#top": "scheme, host and port only",
    f"https://ann:{SECRET}@shop.example": "credentials",
    "https://*.shop.example": "pattern",
    "https://shop.example:*": "pattern",
    "https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example": "xn--",
    "https:shop.example": "not an origin",
    "https://": "not an origin",
    "https://shop..example": "not an origin",
    "https://shop.example:0": "not an origin",
    "https://shop.example:65536": "not an origin",
    "https://shop%2eexample": "not an origin",
    "http://127.1": "not an origin",
    "http://0x7f.0.0.1": "not an origin",
    "http://256.0.0.1": "not an origin",
    "http://[::1%25eth0]": "not an origin",
    "file:///home/ann/page.html": "not an origin",
    "file://shop.example": "not an origin",
    "wss://shop.example": "not an origin",
    "null": "sandboxed frames",
    f"*,{SHOP}": "leave out",
}


def test_an_origin_of_the_settings_is_compared_as_browsers_send_it():
    app = small_app(SmallStore(), settings={"cors_origins": " , ".join(WRITTEN)})
    with serving(app) as url, httpx.Client(base_url=url) as client:
        for origin in [*WRITTEN.values(), EVIL]:
            asked = {"origin": origin, "sec-fetch-mode": "cors", "sec-fetch-site": "cross-site", **PREFLIGHT}
            preflight = client.options("/graphql", headers=asked)
            assert (preflight.status_code, allowed(preflight)) == ((400, None) if origin == EVIL else (200, origin))
    assert cors_origins(",".join(WRITTEN)) == list(dict.fromkeys(WRITTEN.values()))


@pytest.mark.parametrize(("words", "reason"), NEVER.items())
def test_what_equals_no_origin_is_refused_with_a_way_out(words, reason):
    with pytest.raises(BadInput, match=r"^CLADE_CORS_ORIGINS has .*[;,].*\.$") as refused:
        cors_origins(f"http://localhost:5173 {words}" if "*," not in words else words)
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("words", ["*", "chrome-extension://abcdefghijklmnop", "capacitor://localhost"])
def test_any_origin_and_those_of_extensions_and_apps_are_taken_as_they_are(words):
    assert cors_origins(words) == [words]
