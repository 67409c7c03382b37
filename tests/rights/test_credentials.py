"""Credentials over HTTP: whose a request is and what it may, why one is rejected, and what looking up a key reads."""

import json
import re
import time
from contextlib import asynccontextmanager

import httpx
import jwt
import pytest
from typer.testing import CliRunner

from commands import main
from graph.app import create_app
from graph.auth.authentication import Authenticator, Unauthenticated
from graph.auth.tokens import MAX_IGNORED
from graph.errors import RequestRejected
from graph.hierarchies.locations import Location
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings
from resolvers.access.callers import ApiKeyAuthenticator
from store.api_keys import add_key, new_key, revoke_key
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import NotFound, Unavailable, shorten
from tests.abuse.test_tokens import RSA, jwk
from tests.readme import DOCS, blocks
from tests.rights.asking import caller_of
from tests.systems.asking import plant

TREES = [("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NEVADA", "STATE"), ("FR", "COUNTRY")]
RENAME = {
    "query": 'mutation { updateLocation(input: {node: {path: "US/NE"}, name: "Nebraska"}) { node { '
    "changedBy } userErrors { code } } }"
}
LOOK = {"query": '{ location(path: "US/NE") { path } }'}
SECRET, OTHER = "a secret of thirty-two bytes or more", "another secret of thirty-two bytes!!"
ISSUER, AUDIENCE = "https://issuer.example", "clade"
JWT = {"jwt_secret": SECRET, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
HERE = "http://127.0.0.1:8000"


@pytest.fixture
async def url(tmp_path):
    """The URL of a store with some places."""
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(address) as store:
        await store.create()
        await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])
    return address


@asynccontextmanager
async def serving(url, **settings):
    """A client on this machine, of an application over this store."""
    app = create_app(Settings(store=url, **settings))
    async with app.lifespan(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE) as client:
        yield client


async def key_for(url, *grants, until=None, name="shop", revoked=False):
    """The id of a new key, and the header with it."""
    async with open_store(url) as store:
        key, text = await given_out(store, *grants, until=until, name=name)
        if revoked:
            await revoke_key(store, key.id)
    return key.id, f"Bearer {text}"


async def given_out(store, *grants, until=None, name="shop"):
    key, text = new_key(name, grants, until)
    await add_key(store, key)
    return key, text


def token(secret=SECRET, algorithm="HS256", **changes):
    claims = {"sub": "ana", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600, "grants": ["read:location"]}
    known = {name: value for name, value in (claims | changes).items() if value is not ...}
    return f"Bearer {jwt.encode(known, secret, algorithm=algorithm)}"


async def ask(client, body=LOOK, credential=None, **headers):
    sent = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
    if credential is not None:
        sent["authorization"] = credential.encode()
    return await client.post("/graphql", json=body, headers=sent)


def code_of(answer):
    """The code of the only error or user error of a response, None without one."""
    codes = [error["extensions"]["code"] for error in answer.json().get("errors", [])]
    payloads = [one for one in (answer.json().get("data") or {}).values() if isinstance(one, dict)]
    codes += [fault["code"] for payload in payloads for fault in payload.get("userErrors", [])]
    assert len(codes) <= 1
    return codes[0] if codes else None


# -- who may read and write --------------------------------------------------------------------------------------------

NO_CREDENTIAL = {
    "default": ({}, None, "FORBIDDEN"),
    "writes=on": ({"writes": "on"}, None, None),
    "writes=granted": ({"writes": "granted"}, None, "FORBIDDEN"),
    "production": ({"writes": "on", "production": True}, None, "FORBIDDEN"),
    "reads=granted": ({"writes": "on", "reads": "granted"}, "UNAUTHENTICATED", "UNAUTHENTICATED"),
}


@pytest.mark.parametrize("name", NO_CREDENTIAL)
async def test_the_settings_decide_what_a_caller_without_a_credential_may(url, name):
    settings, read, written = NO_CREDENTIAL[name]
    key, unnamed = await key_for(url, "write:location/US/NE", name="")
    _, elsewhere = await key_for(url, "write:location/FR")
    async with serving(url, **settings) as client:
        answer = await ask(client, RENAME, unnamed.replace("Bearer", "bEARER"))
        assert code_of(answer) == (None if settings else "FORBIDDEN")
        if settings:
            assert answer.json()["data"]["updateLocation"]["node"] == {"changedBy": key}
        assert (code_of(await ask(client)), code_of(await ask(client, RENAME))) == (read, written)
        assert code_of(await ask(client, RENAME, elsewhere)) == ("NOT_FOUND" if "reads" in settings else "FORBIDDEN")


@pytest.mark.parametrize("origins", ["*", "https://shop.example", ""])
async def test_neither_a_proxy_nor_a_page_of_another_origin_is_on_this_machine(url, origins):
    others = ["https://shop.example", "null", "http://localhost:1", "https://127.0.0.1:8000", f"{HERE}0", ""]
    proxies = ("forwarded", "x_forwarded_for", "X_Forwarded_Proto", "X_Real_IP", "Via")
    async with serving(url, writes="on", cors_origins=origins) as client:
        for headers in [{"origin": origin} for origin in others] + [{name: "for=203.0.113.7"} for name in proxies]:
            assert code_of(await ask(client, RENAME, **headers)) == "FORBIDDEN", headers
            assert code_of(await ask(client, **headers)) is None
        assert code_of(await ask(client, RENAME, origin=HERE)) is None


async def test_with_granted_reads_data_needs_a_credential_and_the_schema_does_not(url):
    data = [
        "{ __typename locations { nodes { path } } }", '{ node(id: "x") { id } }',
        "{ ...F } fragment F on Query { locations { nodes { path } } }", "{ ... { locations { nodes { path } } } }",
        "{ __typename: locations { nodes { path } } }",
    ]  # fmt: skip
    schema = ["{ __typename }", "{ __schema { queryType { name } } }", '{ __type(name: "City") { name } }',
              "{ _service { sdl } }"]  # fmt: skip
    _, of_france = await key_for(url, "read:location/FR")
    async with serving(url, reads="granted", writes="granted") as client:
        for query in data:
            answer = await ask(client, {"query": query})
            assert (answer.status_code, code_of(answer)) == (401, "UNAUTHENTICATED"), query
            assert answer.headers["www-authenticate"] == 'Bearer realm="clade"'
            assert "Authorization: Bearer" in answer.json()["errors"][0]["message"]
        assert (await client.get("/graphql", params=LOOK)).status_code == 401
        for query in schema:
            answer = await ask(client, {"query": query}, "")
            assert (answer.status_code, code_of(answer)) == (200, None), query
        assert (await ask(client, LOOK, of_france)).json() == {"data": {"location": None}}


# -- tokens of identity providers --------------------------------------------------------------------------------------


def settings_in(block):
    pairs = [line.removeprefix("CLADE_").split("=", 1) for line in block.splitlines()]
    return {name.lower(): value for name, value in pairs}


COGNITO, AUTH0, KEYCLOAK, ENTRA = [
    settings_in(block)
    for block in blocks("text", (DOCS / "rights.md").read_text("utf-8"))
    if block.startswith("CLADE_JWT_KEYS=")
]
API, APP, V1 = AUTH0["jwt_audience"], ENTRA["jwt_audience"], "https://sts.windows.net/TENANT-ID/"
ACCESS = {
    "client_id": "2another98765432", "token_use": "access", "scope": "openid profile", "username": "ana",
    "cognito:groups": ["admins", "eu-west-1_AbCdEfGhI_Google", "read:location/US"],
}  # fmt: skip
ID = {"aud": "2another98765432", "token_use": "id", "cognito:groups": ["read:location/US"]}
PERMISSIONS = {
    "aud": [API, "https://shop.eu.auth0.com/userinfo"], "azp": "x", "scope": "openid", "gty": "password",
    "permissions": ["create:users", "read:location/US"],
}  # fmt: skip
ROLES = {
    "aud": ["clade", "account"], "azp": "shop", "typ": "Bearer", "allowed-origins": ["*"],
    "realm_access": {"roles": ["offline_access", "uma_authorization", "read:location/US"]},
    "resource_access": {"account": {"roles": ["manage-account"]}, "my.shop": {"roles": ["read:location/US"]}, "my": 1},
}  # fmt: skip
V1_TOKEN = {"iss": V1, "aud": f"api://{APP}", "appid": "x", "ver": "1.0", "roles": ["read:location/US"]}
V2_TOKEN = {"aud": APP, "azp": "x", "ver": "2.0", "scp": "Clade.Read", "roles": ["read:location/%55S"]}
PROVIDERS = [
    (COGNITO, ACCESS, True), (COGNITO, ACCESS | {"client_id": "1example23456789"}, True),
    *[(COGNITO, ACCESS | {"client_id": other}, False) for other in ("3stranger", 7, None, "")], (COGNITO, ID, False),
    (COGNITO | {"jwt_audience_claim": "aud"}, ID, True), (COGNITO | {"jwt_audience_claim": "aud"}, ACCESS, False),
    (COGNITO | {"jwt_audience": "2another98765432 ,"}, ACCESS, True),
    (AUTH0, PERMISSIONS, True), (AUTH0, PERMISSIONS | {"aud": "https://shop.eu.auth0.com/userinfo"}, False),
    (AUTH0 | {"jwt_grants_claim": f"{API}/grants"}, {"aud": API, f"{API}/grants": ["read:location/US"]}, True),
    (AUTH0 | {"jwt_grants_claim": "scope"}, {"aud": API, "scope": "openid read:location/US"}, True),
    (KEYCLOAK, ROLES, True), (KEYCLOAK, ROLES | {"aud": "account"}, False),
    (KEYCLOAK | {"jwt_grants_claim": "resource_access.my.shop.roles"}, ROLES, True),
    (KEYCLOAK | {"jwt_grants_claim": "a.b"}, ROLES | {"a.b": ["read:location/US"], "a": {"b": []}}, True),
    (ENTRA, V2_TOKEN, True), (ENTRA, V1_TOKEN, False), (ENTRA, V2_TOKEN | {"iss": V1}, False),
    (ENTRA | {"jwt_issuer": V1, "jwt_audience": f"api://{APP}"}, V1_TOKEN, True),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "claims", "accepted"), PROVIDERS, ids=range(len(PROVIDERS)))
async def test_tokens_of_identity_providers_are_accepted_by_their_settings(url, tmp_path, settings, claims, accepted):
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [jwk(RSA, "r", use="sig"), jwk(RSA, "e", use="enc", alg="RSA-OAEP")]}))
    whole = {"iss": settings["jwt_issuer"], "sub": "auth0|5", "exp": int(time.time()) + 600} | claims
    credential = f"Bearer {jwt.encode(whole, RSA, 'RS256', headers={'kid': 'r'})}"
    async with serving(url, reads="granted", **settings | {"jwt_keys": str(keys)}) as client:
        answer = await ask(client, LOOK, credential)
        assert answer.status_code == (200 if accepted else 401)
        if accepted:  # these grants and no others
            assert answer.json() == {"data": {"location": {"path": "US/NE"}}}
            elsewhere = await ask(client, {"query": '{ location(path: "FR") { path } }'}, credential)
            assert elsewhere.json() == {"data": {"location": None}}


async def test_words_of_tokens_that_are_no_grants_give_no_rights_and_are_logged_once(url, caplog):
    caplog.set_level("INFO", "clade")
    words = ["admins", "read:location//US", "Write:location", "read:location/100%", "read:location/U\nS", "a" * 3_000]
    async with serving(url, reads="granted", **JWT) as client:
        for turn in range(2):
            for grants in ([*words, "read:location/US"], ["read:location/FR", *[f"group{n}" for n in range(200)]]):
                answer = await ask(client, LOOK, token(grants=grants, jti=str(turn)))
                assert answer.json() == {"data": {"location": {"path": "US/NE"} if grants[0] == "admins" else None}}
        assert (await ask(client, LOOK, token(grants=[words[0]]))).json() == {"data": {"location": None}}
        for turn in range(MAX_IGNORED):  # of one who uses up what is logged of its own words
            wrong = [f"read:{turn}//{number}" for number in range(300)]
            await ask(client, LOOK, token(sub="eve", grants=wrong, jti=str(turn)))
        assert await ask(client, LOOK, token(sub="ben", grants=["groups", "read:location/US//"]))
    assert len([record for record in caplog.records if '"read:location/US//"' in record.getMessage()]) == 1
    noted = [record for record in caplog.records if "gives no rights" in record.getMessage()]
    assert [
        (one.levelname == "WARNING", shorten(word) in one.getMessage())
        for one, word in zip(noted[:6], words, strict=True)
    ] == [(bool(re.match("(?i)read|write", word)), True) for word in words]
    assert noted[1].getMessage() == (
        'Tokens have "read:location//US" in grants, which gives no rights: The path has an empty key; write one '
        "separator between two keys, and none at either end."
    )
    assert len(noted) == 4 + MAX_IGNORED + MAX_IGNORED + 2  # four like grants and some others; of eve; of ben
    assert max(len(one.getMessage()) for one in noted) < 300


# -- why one is rejected -----------------------------------------------------------------------------------------------


@pytest.fixture
def lines(caplog):
    """The lines of requests in the log, and the messages of warnings."""
    caplog.set_level("INFO", "clade")

    def lines():
        found = [record for record in caplog.records if record.name.startswith("clade")]
        requests = [record for record in found if record.name == "clade.request"]
        return requests, [record.getMessage() for record in found if record not in requests]

    return lines


async def test_the_log_has_the_reason_of_each_rejected_credential_and_nobody_the_credential(url, lines, caplog):
    caplog.set_level("DEBUG")
    accepted = (await key_for(url, "read:location"))[1]
    gone, revoked = await key_for(url, "read:location", revoked=True)
    old, expired = await key_for(url, "read:location", until=1)
    key, text = new_key("", ["read:location"], None)
    scheme = "The Authorization header has another scheme than Bearer."
    sent = [
        *[(one, scheme) for one in (text, f"Token {text}", f"bearer:{text}", f"Bearer,{text}", f"Basic {text}")],
        ("Bearer", "The token is malformed."),
        (f"Bearer {'x' * 9_000}", "The credential is longer than 8,192 bytes or not ASCII."),
        ("Bearer é", "The credential is longer than 8,192 bytes or not ASCII."),
        ("Bearer clade_x", "The API key is malformed."),
        (revoked, f"The API key {gone} is revoked."),
        (expired, f"The API key {old} has expired."),
        (f"Bearer {text}", f"There is no API key {key.id}."),
        (f"{revoked[:-43]}{'A' * 43}", f"The API key {gone} was sent with another secret."),
        ("Bearer a.b.c", "The token is malformed."),
        (token(exp=1_000_000_000), "The token has expired."),
        (token(nbf=9_000_000_000), "The token is not valid yet."),
        (token(exp=...), "The token has no claim exp."),
        (token(aud="other"), "The token is for another audience than CLADE_JWT_AUDIENCE."),
        (token(iss="https://other.example"), "The token is from another issuer than CLADE_JWT_ISSUER."),
        (token(OTHER), "The signature of the token does not match its content and key."),
        (token(SECRET * 2, "HS512"), "The token is signed by an algorithm that is not accepted."),
        (token(aud=...), "The token has no claim aud; CLADE_JWT_AUDIENCE_CLAIM names that of the audience."),
        (token(grants={"read": "location"}), "The grants of the token are neither a list of strings nor a string."),
    ]
    async with serving(url, **JWT) as client:
        answers = [await ask(client, LOOK, header) for header, _ in sent]
        # A credential is checked before the body of the request.
        answers.append(await client.post("/graphql", content=b"no JSON", headers={"authorization": "Bearer a.b.c"}))
        valid = await ask(client, LOOK, accepted)
    assert valid.status_code == 200
    assert {(answer.status_code, code_of(answer)) for answer in answers} == {(401, "UNAUTHENTICATED")}
    schemes = sum(reason == scheme for _, reason in sent)
    for part in (answers[:schemes], answers[schemes:]):
        assert len({(answer.content, answer.headers["www-authenticate"]) for answer in part}) == 1
    assert "Authorization: Bearer" in answers[0].json()["errors"][0]["message"]
    assert answers[-1].headers["www-authenticate"] == 'Bearer realm="clade", error="invalid_token"'
    requests, _ = lines()
    assert [record.fields["reason"] for record in requests[:-2]] == [reason for _, reason in sent]
    assert {record.levelname for record in requests} == {"INFO"}
    told = "".join(str(vars(record)) for record in caplog.records if "http" not in record.name)
    told += "".join(f"{answer.text} {answer.headers}" for answer in (*answers, valid))
    secrets = [header.removeprefix("Bearer ") for header, _ in sent if len(header) > 20] + [accepted, SECRET, key.hash]
    assert [secret for secret in secrets if secret in told or secret[-43:] in told] == []


async def test_a_caller_whose_grants_are_useless_is_logged_once(url, lines):
    bearers = {"ana": ["read:location"], "ben": [], "eva": ["read:locations", "write:shops/A"]}
    async with serving(url, reads="granted", **JWT) as client:
        for turn in range(2):  # tokens that differ, of the same subjects
            for subject, grants in bearers.items():
                answer = await ask(client, LOOK, token(sub=subject, grants=grants, jti=str(turn)))
                assert (answer.json()["data"]["location"] is None) == (subject != "ana")
    way_out = "so it sees nothing; add a grant such as read:category, for one of category, location."
    assert lines()[1] == [
        f"sub:ben has no grants, {way_out}",
        f"sub:eva has only grants for locations, shops, {way_out}",
    ]


async def test_a_server_without_tokens_says_so(url, lines):
    async with serving(url) as client:
        assert (await ask(client, LOOK, token())).status_code == 401
    ((request,), _) = lines()
    assert request.fields["reason"] == "It is not an API key, and tokens need CLADE_JWT_SECRET or CLADE_JWT_KEYS."


# -- responses in caches -----------------------------------------------------------------------------------------------


async def test_responses_are_private_and_their_tags_depend_on_the_caller(url, monkeypatch):
    grants, now = ("read:location", "read:location/US", "write:location/US"), time.time()
    keys = [(await key_for(url, grant, until=int(now) + 600))[1] for grant in grants]
    part = (await key_for(url, "read:location/US/NE"))[1]
    wrong = {"query": '{ city(path: "US/NE") { path } }'}
    async with serving(url, reads="granted") as client:

        async def get(key, query=LOOK, tag=""):
            headers = {"authorization": key} | ({"if-none-match": tag} if tag else {})
            return await client.get("/graphql", params=query, headers=headers)

        answers = [await get(key) for key in keys]
        assert {one.json()["data"]["location"]["path"] for one in answers} == {"US/NE"}
        assert {one.headers["cache-control"] for one in answers} == {"private, no-cache"}
        assert {one.headers["vary"] for one in answers} == {"accept, authorization, accept-encoding"}
        whole, some, same = [one.headers["etag"] for one in answers]
        assert whole != some == same
        assert (await get(keys[0], tag=some)).status_code == 200
        assert (await get(keys[1], tag=some)).status_code == 304
        without = [await get(part, wrong), await ask(client, LOOK, part), await get(part, RENAME), await get("x")]
        assert [one.status_code for one in without] == [200, 200, 405, 401]
        assert {one.headers["cache-control"] for one in without} == {"no-store"}
        monkeypatch.setattr(time, "time", lambda: now + 601)
        assert (await get(keys[1])).status_code == 401, "also where the response is cached"


# -- lookups of keys ---------------------------------------------------------------------------------------------------


async def test_a_known_or_unknown_key_is_looked_up_once_and_a_malformed_one_never(store: Store):
    key, text = await given_out(store, "read:location")
    unknown, keys = new_key("", ["read:location"], None)[1], ApiKeyAuthenticator(store)
    for bad in ("clade_", f"clade_{'0' * 16}_short", "clade_" + "0" * 10_000, text + "\n", text + "é", text.upper()):
        assert await caller_of(keys, bad) is None
    assert keys.reads.requests == 0
    assert [await caller_of(keys, unknown) for _ in range(3)] == [None] * 3
    assert (keys.reads.requests, keys.reads.units) == (1, 0.5)
    assert [(await caller_of(keys, text)).id for _ in range(3)] == [f"key:{key.id}"] * 3
    assert keys.reads.requests == 2
    items = [item async for page in store.scan(ReadUsage()) for item in page]
    assert text.split("_", 2)[2] not in repr(items), "the secret is stored nowhere"


async def test_a_key_that_expires_or_is_revoked_is_rejected_at_its_next_use(store: Store, monkeypatch):
    now = time.time()
    expiring = (await given_out(store, "read:location", until=int(now) + 600))[1]
    key, text = await given_out(store, "read:location")
    cached, fresh = [ApiKeyAuthenticator(store, cache_seconds=seconds) for seconds in (600.0, 0.0)]
    for keys in (cached, fresh):
        assert None not in [await caller_of(keys, one) for one in (expiring, text)]
    await revoke_key(store, key.id)
    assert await caller_of(fresh, text) is None
    is_cached = await caller_of(cached, text) is not None
    assert is_cached == (store.version() is None), "on SQLite a write is noticed"
    revoked_at = (await revoke_key(store, key.id)).revoked_at
    assert (revoked_at, (await revoke_key(store, key.id)).revoked_at) == (revoked_at, revoked_at)
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert [await caller_of(keys, expiring) for keys in (cached, fresh)] == [None, None]
    with pytest.raises(NotFound):
        await revoke_key(store, "0" * 16)


async def test_a_lookup_counts_as_a_running_request(url, tmp_path):
    _, text = await key_for(url, "read:location")
    async with open_store(url) as store:
        authenticator = Authenticator(ApiKeyAuthenticator(store))
        with ConcurrencyLimiter(1) as limiter:
            with pytest.raises(RequestRejected, match="maximum of 1 requests"):
                await authenticator.by_credential({b"authorization": text.encode()}, limiter)
            with pytest.raises(Unauthenticated):
                await authenticator.by_credential({b"authorization": b"Bearer a.b.c"}, limiter)
        assert (await authenticator.by_credential({b"authorization": text.encode()}, limiter)).name == "shop"
        assert limiter.running == 0
    async with open_store(f"sqlite:///{tmp_path / 'empty.db'}") as store:
        with pytest.raises(Unavailable):
            await caller_of(ApiKeyAuthenticator(store), text.removeprefix("Bearer "))


def test_keys_are_listed_in_the_order_of_creation(tmp_path):
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path / 'clade.db'}", "COLUMNS": "200"}

    def run(*arguments):
        return CliRunner().invoke(main.app_of(), arguments, env=environment).stdout

    run("table", "create")
    made = [run("key", "create", "--name", f"shop{n}", "--grant", "read:location").split("_")[1] for n in range(4)]
    listed = run("key", "list")
    assert sorted(made, key=listed.index) == made
