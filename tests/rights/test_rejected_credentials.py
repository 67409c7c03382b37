"""Rejected credentials: the log of a server says why, the response does not; and callers whose grants are useless."""

import asyncio
import json
import time

import httpx
import jwt
import pytest

from store.api_keys import add_key, new_key, revoke_key
from store.connect import open_store
from store.model.items import Put
from tests.servers import Server

SECRET, OTHER = "a secret of thirty-two bytes or more", "another secret of thirty-two bytes!!"
ISSUER, AUDIENCE = "https://issuer.example", "clade"
LOOK = {"query": "{ locations { nodes { path } } }"}


def token(secret=SECRET, algorithm="HS256", **changes):
    claims = {"sub": "ana", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600, "grants": ["read:location"]}
    known = {name: value for name, value in (claims | changes).items() if value is not ...}
    return f"Bearer {jwt.encode(known, secret, algorithm=algorithm)}"


async def api_keys(url):
    """API keys that are revoked, expired, and unknown, and the id of each."""
    async with open_store(url) as store:
        await store.create()
        made = [new_key(name, ["read:location"], until) for name, until in (("gone", None), ("old", 1), ("new", None))]
        for key, _ in made[:2]:
            await add_key(store, key)
        await revoke_key(store, made[0][0].id)
    return [(key.id, f"Bearer {text}") for key, text in made]


@pytest.fixture
async def server(tmp_path):
    """A server that needs grants to read, and the API keys of its store."""
    url = f"sqlite:///{tmp_path}/clade.db"
    settings = {"jwt_secret": SECRET, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "reads": "granted"}
    running = Server(tmp_path, "server", store=url, **settings)
    try:
        running.store, running.api_keys = url, await api_keys(url)
        await running.start()
        yield running
    finally:
        await running.close()


async def logged(server, count):
    """The log, as soon as it has so many lines of requests."""
    for _ in range(200):
        lines = [json.loads(line) for line in server.said.read_text().splitlines() if line.startswith("{")]
        if sum(line["message"] == "request" for line in lines) >= count:
            return lines
        await asyncio.sleep(0.05)
    raise AssertionError(server.said.read_text())


async def test_the_log_has_the_reason_of_each_rejected_credential_and_the_response_has_none(server):
    (gone, revoked), (old, expired), (unknown, stranger) = server.api_keys
    sent = [
        (None, "The request has no credential."),
        ("Basic YTpi", "The Authorization header has another scheme than Bearer."),
        (f"Bearer {'x' * 9_000}", "The credential is longer than 8,192 bytes or not ASCII."),
        ("Bearer clade_x", "The API key is malformed."),
        (revoked, f"The API key {gone} is revoked."),
        (expired, f"The API key {old} has expired."),
        (stranger, f"There is no API key {unknown}."),
        (f"{revoked[:-43]}{'A' * 43}", f"The API key {gone} was sent with another secret."),
        ("Bearer a.b.c", "The token is malformed."),
        (token(exp=1_000_000_000), "The token has expired."),
        (token(nbf=9_000_000_000), "The token is not valid yet."),
        (token(exp=...), "The token has no claim exp."),
        (token(aud="other"), "The token is for another audience than CLADE_JWT_AUDIENCE."),
        (token(iss="https://other.example"), "The token is from another issuer than CLADE_JWT_ISSUER."),
        (token(OTHER), "The signature of the token does not match its content and key."),
        (token(SECRET * 2, "HS512"), "The token is signed by an algorithm that is not accepted."),
        (token(grants=["all"]), '"all" is not a grant; write read:location or write:location/US/NE.'),
    ]
    answers = []
    async with httpx.AsyncClient() as client:
        for header, _ in sent:
            headers = {} if header is None else {"authorization": header}
            answers.append(await client.post(f"{server.url}/graphql", json=LOOK, headers=headers))
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers[2:]}) == 1
    lines = await logged(server, len(sent))
    assert [line.get("reason") for line in lines if line["message"] == "request"] == [reason for _, reason in sent]
    assert {line["level"] for line in lines if line["message"] == "request"} == {"info"}
    text = server.said.read_text()
    secrets = [header.removeprefix("Bearer ") for header, _ in sent[4:] if header]
    assert [secret for secret in secrets if secret in text or secret[-43:] in text] == []


async def test_a_damaged_api_key_is_bad_data(server):
    damages = [
        {"name": 7}, {"hash": "x"}, {"hash": None}, {"grants": "read:location"}, {"grants": ["all"]}, {"grants": [[]]},
        {"created_at": 1}, {"created_at": None}, {"until": "x"}, {"revoked_at": {}},
    ]  # fmt: skip
    made = [new_key("damaged", ["read:location"], None) for _ in damages]
    async with open_store(server.store) as store:
        for (key, _), damage in zip(made, damages, strict=True):
            await store.commit([Put(key.item() | damage)])
    async with httpx.AsyncClient() as client:
        for key, text in made:
            headers = {"authorization": f"Bearer {text}"}
            answer = await client.post(f"{server.url}/graphql", json=LOOK, headers=headers)
            (error,) = answer.json()["errors"]
            assert (answer.status_code, error["extensions"]["code"]) == (500, "BAD_DATA")
            assert key.id in error["message"]


async def test_a_caller_whose_grants_are_useless_is_logged_once(server):
    bearers = {"ana": ["read:location"], "ben": [], "eva": ["read:locations", "write:shops/A"]}
    async with httpx.AsyncClient() as client:
        for turn in range(3):  # tokens that differ, of the same subjects
            for subject, grants in bearers.items():
                headers = {"authorization": token(sub=subject, grants=grants, jti=str(turn))}
                answer = await client.post(f"{server.url}/graphql", json=LOOK, headers=headers)
                assert answer.json() == {"data": {"locations": {"nodes": []}}}
    warned = [line["message"] for line in await logged(server, 9) if line["level"] == "warning"]
    way_out = "so it sees nothing; add a grant such as read:category, for one of category, location."
    assert warned == [f"sub:ben has no grants, {way_out}", f"sub:eva has only grants for locations, shops, {way_out}"]


async def test_a_server_without_tokens_says_so(tmp_path):
    server = Server(tmp_path, "server", store=f"sqlite:///{tmp_path}/clade.db")
    try:
        await server.start()
        async with httpx.AsyncClient() as client:
            await client.post(f"{server.url}/graphql", json=LOOK, headers={"authorization": token()})
        reasons = [line.get("reason") for line in await logged(server, 1)]
    finally:
        await server.close()
    assert "It is not an API key, and tokens need CLADE_JWT_SECRET or CLADE_JWT_KEYS." in reasons
