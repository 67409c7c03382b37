"""Authentication over HTTP: credentials in the header Authorization, invalid ones, and callers that need none."""

import asyncio
import uuid
from contextlib import contextmanager

import httpx
import pytest

from graph.app import create_app
from graph.auth.authentication import Authenticator
from graph.hierarchies.locations import Location
from graph.server.admission import ConcurrencyLimiter
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from store.api_keys import add_key, new_key, revoke_key
from store.connect import open_store
from tests.graph.small_app import small_app
from tests.proxy import Proxy
from tests.serving import serving
from tests.systems.asking import plant

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NEVADA", "STATE"), ("FR", "COUNTRY"),
]  # fmt: skip
RENAME = {
    "query": """mutation {
      updateLocation(input: {node: {path: "US/NE"}, name: "Nebraska"}) { node { name changedBy } } }"""
}
HELLO = {"query": "{ hello }"}
HELLO_TYPE = {"query": "{ __typename }"}
LOOK = {"query": '{ location(path: "US/NE") { path } }'}


@pytest.fixture
def url(tmp_path, monkeypatch):
    """The address of a store with some places, which is also what servers will serve."""
    address = f"sqlite:///{tmp_path / 'clade.db'}"

    async def fill():
        async with open_store(address) as store:
            await store.create()
            await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])

    asyncio.run(fill())
    monkeypatch.setenv("CLADE_STORE", address)
    return address


@pytest.fixture
def server(url, monkeypatch):
    """Starts a server with some settings, and asks it."""

    @contextmanager
    def start(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(f"CLADE_{name.upper()}", value)
        with serving(create_app()) as address, httpx.Client(base_url=address) as client:
            yield client

    return start


def key_for(url, *grants, revoked=False, until=None):
    key, text = new_key("shop", grants, until)

    async def add():
        async with open_store(url) as store:
            await add_key(store, key)
            if revoked:
                await revoke_key(store, key.id)

    asyncio.run(add())
    return text


def bearer(text):
    return {"authorization": f"Bearer {text}"}


def code_of(answer):
    (error,) = answer.json()["errors"]
    return error["extensions"]["code"]


def test_by_default_everybody_reads_and_nobody_writes(server):
    with server() as client:
        assert client.post("/graphql", json=LOOK).json() == {"data": {"location": {"path": "US/NE"}}}
        assert code_of(client.post("/graphql", json=RENAME)) == "FORBIDDEN"


def test_the_scheme_is_case_insensitive(server, url):
    text = key_for(url, "write:location")
    with server(writes="granted") as client:
        for scheme in ("Bearer", "bearer", "BEARER"):
            answer = client.post("/graphql", json=RENAME, headers={"authorization": f"{scheme} {text}"})
            assert answer.json()["data"]["updateLocation"]["node"] == {"name": "Nebraska", "changedBy": "shop"}


def test_a_malformed_credential_is_rejected_without_details(server):
    with server() as client:
        for bad in ("Bearer", "Bearer ~", "Bearer clade_", f"Bearer clade_{'0' * 16}_{'A' * 43}", "Bearer a.b.c",
                    "Bearer é", f"Bearer {'~' * 9_000}"):  # fmt: skip
            answer = client.post("/graphql", json=LOOK, headers={"authorization": bad.encode()})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert code_of(answer) == "UNAUTHENTICATED"
            assert answer.text.count("~") == answer.text.count("clade_") == 0


def test_all_invalid_credentials_get_the_same_response(server, url):
    texts = [
        key_for(url, "read:location", revoked=True),
        key_for(url, "read:location", until=1),
        key_for(url, "read:location")[:-1] + "-",
        new_key("", ["read:location"], None)[1],
    ]
    with server() as client:
        answers = [client.post("/graphql", json=LOOK, headers=bearer(text)) for text in texts]
        assert {(one.status_code, one.content) for one in answers} == {(401, answers[0].content)}


def test_a_credential_is_checked_before_the_query(server):
    with server() as client:
        assert client.post("/graphql", content=b"no JSON", headers=bearer("x")).status_code == 401
        assert client.get("/graphql", params=LOOK, headers=bearer("x")).status_code == 401


@pytest.mark.parametrize("reads", ["open", "granted"])
def test_a_credential_without_bearer_is_rejected_and_not_ignored(server, url, reads):
    key = key_for(url, "read:location")
    with server(reads=reads) as client:
        for sent in (key, f"Token {key}", f"ApiKey {key}", f"bearer:{key}", f"Basic {key}",
                     "Basic cHJveHk6c2VjcmV0", f"Bearer,{key}", "Negotiate x"):  # fmt: skip
            answer = client.post("/graphql", json=LOOK, headers={"authorization": sent})
            assert (answer.status_code, code_of(answer)) == (401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == 'Bearer realm="clade"'
            assert "Authorization: Bearer" in answer.json()["errors"][0]["message"]
            assert key not in answer.text
        assert client.post("/graphql", json=LOOK, headers=bearer(key)).json()["data"]["location"]
        assert "errors" not in client.post("/graphql", json=HELLO_TYPE, headers={"authorization": ""}).json()


def test_with_granted_reads_data_needs_a_credential_and_the_schema_does_not(server, url):
    data = [
        LOOK, RENAME, {"query": "{ __typename locations { nodes { path } } }"}, {"query": '{ node(id: "x") { id } }'},
        {"query": "{ ...F } fragment F on Query { locations { nodes { path } } }"},
        {"query": "{ ... { locations { nodes { path } } } }"},
        {"query": "{ __typename: locations { nodes { path } } }"},
    ]  # fmt: skip
    schema = ["{ __typename }", "{ __schema { queryType { name } } }", '{ __type(name: "City") { name } }',
              "{ _service { sdl } }"]  # fmt: skip
    with server(reads="granted", writes="granted") as client:
        for body in data:
            answer = client.post("/graphql", json=body)
            assert (answer.status_code, code_of(answer)) == (401, "UNAUTHENTICATED"), body
            assert answer.headers["www-authenticate"] == 'Bearer realm="clade"'
            assert "Authorization: Bearer" in answer.json()["errors"][0]["message"]
        assert client.get("/graphql", params=LOOK).status_code == 401
        for query in schema:
            answer = client.post("/graphql", json={"query": query})
            assert (answer.status_code, "errors" in answer.json()) == (200, False), query
        assert client.get("/readyz").status_code == client.get("/healthz").status_code == 200
        nothing = bearer(key_for(url, "read:location/FR"))  # who is known and sees nothing is told nothing
        assert client.post("/graphql", json=LOOK, headers=nothing).json() == {"data": {"location": None}}


async def test_lookups_of_unknown_keys_are_limited_like_requests(engine):
    released = asyncio.Event()

    async def held(call, forward):
        await released.wait()
        return await forward(call.body)

    async with Proxy(engine.url) as proxy:
        url = engine.address(f"clade-{uuid.uuid4().hex}")
        async with open_store(url) as store:
            await store.create()
        behind, gate = open_store(url.replace(engine.url, proxy.url)), ConcurrencyLimiter(3)
        app = small_app(behind, limiter=gate, authenticator=Authenticator(ApiKeyAuthenticator(behind)))
        with serving(app) as base:
            proxy.spoil("BatchGetItem", *[held] * 8)
            async with httpx.AsyncClient(base_url=base, timeout=60) as client:
                keys = [bearer(new_key("", ["read:location"], None)[1]) for _ in range(8)]
                asked = [asyncio.create_task(client.post("/graphql", json=HELLO, headers=key)) for key in keys]
                first = [await one for _, one in zip(range(5), asyncio.as_completed(asked, timeout=60), strict=False)]
                assert {code_of(one) for one in first} == {"OVERLOADED"}
                released.set()
                answers = await asyncio.gather(*asked)
                assert proxy.count("BatchGetItem") == 3
                assert sorted(map(code_of, answers)) == ["OVERLOADED"] * 5 + ["UNAUTHENTICATED"] * 3
                assert (await client.post("/graphql", json=HELLO)).json() == {"data": {"hello": "Hello world!"}}
        assert gate.running == 0


# -- who needs no grant to write ---------------------------------------------------------------------------------------


def test_local_callers_write_where_that_is_enabled(server):
    with server(writes="on") as client:
        assert "errors" not in client.post("/graphql", json=RENAME).json()


@pytest.mark.parametrize("settings", [{"production": "1"}, {"writes": "granted"}])
def test_a_public_server_requires_a_grant_of_local_callers(server, url, settings):
    text = key_for(url, "write:location/US/NE")
    with server(**{"writes": "on", **settings}) as client:
        assert code_of(client.post("/graphql", json=RENAME)) == "FORBIDDEN"
        by_name = {"host": "clade.example"}  # as a proxy on this machine hands it on
        expected = 200 if "production" in settings else 403
        assert client.post("/graphql", json=LOOK, headers=by_name).status_code == expected
        assert "errors" not in client.post("/graphql", json=RENAME, headers=bearer(text)).json()


def test_with_granted_reads_nobody_writes_without_a_grant(server):
    with server(writes="on", reads="granted") as client:
        assert code_of(client.post("/graphql", json=RENAME)) == "UNAUTHENTICATED"


def test_a_request_from_a_proxy_is_not_local(server):
    with server(writes="on") as client:
        for name in ("forwarded", "x-forwarded-for", "X-Forwarded-Proto", "X-Real-IP", "Via"):
            assert code_of(client.post("/graphql", json=RENAME, headers={name: "for=203.0.113.7"})) == "FORBIDDEN"


@pytest.mark.parametrize("origins", ["*", "https://shop.example", ""])
def test_a_page_of_another_origin_is_not_local(server, origins):
    with server(writes="on", cors_origins=origins) as client:
        own = str(client.base_url).rstrip("/")
        for origin in (
            "https://shop.example",
            "null",
            "http://localhost:1",
            own.replace("http:", "https:"),
            f"{own}0",
            "",
        ):
            answer = client.post("/graphql", json=RENAME, headers={"origin": origin})
            assert code_of(answer) == "FORBIDDEN", origin
            assert client.post("/graphql", json=LOOK, headers={"origin": origin}).json()["data"]["location"]
        for headers in ({}, {"origin": own}):
            assert "errors" not in client.post("/graphql", json=RENAME, headers=headers).json()


def test_a_key_is_limited_to_its_grants_where_local_callers_write(server, url):
    with server(writes="on") as client:
        answer = client.post("/graphql", json=RENAME, headers=bearer(key_for(url, "write:location/FR")))
        assert code_of(answer) == "FORBIDDEN"


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_responses_are_private_and_their_tags_depend_on_the_caller(server, url):
    headers = [bearer(key_for(url, grant)) for grant in ("read:location", "read:location/US", "write:location/US")]
    with server(reads="granted") as client:
        answers = [client.get("/graphql", params=LOOK, headers=one) for one in headers]
        assert {one.json()["data"]["location"]["path"] for one in answers} == {"US/NE"}
        assert {one.headers["cache-control"] for one in answers} == {"private, no-cache"}
        assert {one.headers["vary"] for one in answers} == {"accept, authorization"}
        whole, some, same = [one.headers["etag"] for one in answers]
        assert whole != some == same
        again = client.get("/graphql", params=LOOK, headers={**headers[1], "if-none-match": some})
        other = client.get("/graphql", params=LOOK, headers={**headers[0], "if-none-match": some})
        assert (again.status_code, other.status_code) == (304, 200)


def test_a_tag_matches_in_a_list_and_when_weakened_by_a_proxy(server, url):
    with server() as client:
        tag = client.get("/graphql", params=LOOK).headers["etag"]
        for sent in (f"W/{tag}", f'"x", {tag}', f'"x",W/{tag} , "y"', "*"):
            answer = client.get("/graphql", params=LOOK, headers={"if-none-match": sent})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
        for sent in ("", '"x"', tag.strip('"'), f"{tag}x"):
            assert client.get("/graphql", params=LOOK, headers={"if-none-match": sent}).status_code == 200


def test_a_response_without_a_tag_is_not_stored_by_proxies(server, url):
    headers = bearer(key_for(url, "read:location/US/NE"))
    invalid = {"query": "{ locations(first: -1) { nodes { path } } }"}
    with server(reads="granted") as client:
        answers = [
            client.get("/graphql", params=invalid, headers=headers),
            client.post("/graphql", json=LOOK, headers=headers),
            client.get("/graphql", params=RENAME, headers=headers),
            client.get("/graphql", params=LOOK, headers=bearer("clade_")),
        ]
        assert [one.status_code for one in answers] == [200, 200, 405, 401]
        assert {one.headers["cache-control"] for one in answers} == {"no-store"}
