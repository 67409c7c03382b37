"""CORS: only origins that the settings name may send requests, and each of them may."""

import json
import os
import shutil
import subprocess

import httpx
import pytest

from graph.settings import cors_origins
from store.errors import BadInput
from tests.conftest import CLADE
from tests.graph.small_app import SmallStore, small_app
from tests.servers import Server
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


async def test_an_origin_of_the_settings_is_compared_as_browsers_send_it(tmp_path):
    server = Server(tmp_path, "server", store=f"sqlite:///{tmp_path}/clade.db", cors_origins=" , ".join(WRITTEN))
    try:
        await server.start()
        async with httpx.AsyncClient() as client:
            for origin in [*WRITTEN.values(), EVIL]:
                asked = {"origin": origin, "sec-fetch-mode": "cors", "sec-fetch-site": "cross-site", **PREFLIGHT}
                preflight = await client.options(f"{server.url}/graphql", headers=asked)
                expected = (400, None) if origin == EVIL else (200, origin)
                assert (preflight.status_code, allowed(preflight)) == expected
    finally:
        await server.close()


@pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
def test_origins_are_written_as_the_url_standard_serializes_them():
    script = "console.log(JSON.stringify(process.argv.slice(1).map((word) => new URL(word).origin)))"
    ended = subprocess.run(["node", "-e", script, *WRITTEN], capture_output=True, check=True, timeout=60)
    assert json.loads(ended.stdout) == list(WRITTEN.values())
    assert cors_origins(",".join(WRITTEN)) == list(dict.fromkeys(WRITTEN.values()))


@pytest.mark.parametrize(("words", "reason"), NEVER.items())
def test_what_equals_no_origin_is_refused_with_a_way_out(words, reason):
    with pytest.raises(BadInput, match=r"^CLADE_CORS_ORIGINS has .*[;,].*\.$") as refused:
        cors_origins(f"http://localhost:5173 {words}" if "*," not in words else words)
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_server_does_not_start_with_what_equals_no_origin(tmp_path):
    environment = {**os.environ, "CLADE_STORE": f"sqlite:///{tmp_path}/clade.db", "CLADE_CORS_ORIGINS": "shop.example"}
    ended = subprocess.run([CLADE, "serve", "--port", "0"], env=environment, capture_output=True, text=True, timeout=60)
    sentence = "which has no scheme; write http://shop.example or https://shop.example."
    assert (ended.returncode, ended.stderr) == (1, f'clade: CLADE_CORS_ORIGINS has "shop.example", {sentence}\n')


@pytest.mark.parametrize("words", ["*", "chrome-extension://abcdefghijklmnop", "capacitor://localhost"])
def test_any_origin_and_those_of_extensions_and_apps_are_taken_as_they_are(words):
    assert cors_origins(words) == [words]
