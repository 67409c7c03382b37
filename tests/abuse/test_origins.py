"""CORS: only origins that the settings name may send requests."""

import httpx
import pytest

from tests.graph.small_app import SmallStore, small_app
from tests.serving import serving

SHOP, EVIL = "https://shop.example", "https://shop.example.evil.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
BODY = {"query": "{ hello }"}


@pytest.fixture(scope="module")
def closed():
    with serving(small_app(SmallStore())) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def opened():
    with serving(small_app(SmallStore(), settings={"cors_origins": SHOP})) as url, httpx.Client(base_url=url) as client:
        yield client


def allowed(answer):
    return answer.headers.get("access-control-allow-origin")


def test_no_origin_is_allowed_by_default(closed):
    for origin in (SHOP, "null"):
        preflight = closed.options("/graphql", headers={"origin": origin, **PREFLIGHT})
        assert (preflight.status_code, allowed(preflight)) == (405, None)
        assert allowed(closed.post("/graphql", json=BODY, headers={"origin": origin})) is None


def test_an_allowed_origin_may_send_keys_but_no_cookies(opened):
    preflight = opened.options("/graphql", headers={"origin": SHOP, **PREFLIGHT})
    assert (preflight.status_code, allowed(preflight)) == (200, SHOP)
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    answer = opened.post("/graphql", json=BODY, headers={"origin": SHOP})
    assert (answer.json(), allowed(answer)) == ({"data": {"hello": "Hello world!"}}, SHOP)
    for one in (preflight, answer):
        assert "origin" in one.headers["vary"].lower()
        assert "access-control-allow-credentials" not in one.headers
        assert "set-cookie" not in one.headers
        assert one.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("origin", [EVIL, "http://shop.example", "null", "https://SHOP.example.", ""])
def test_another_origin_is_not_allowed(opened, origin):
    preflight = opened.options("/graphql", headers={"origin": origin, **PREFLIGHT})
    assert (preflight.status_code, allowed(preflight)) == (400, None)
    assert allowed(opened.post("/graphql", json=BODY, headers={"origin": origin})) is None
