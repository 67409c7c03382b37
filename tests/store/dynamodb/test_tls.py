"""TLS: the certificate of an engine is verified on every path to it: authority, dates and name."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from store.dynamodb.store import DynamoDBStore
from store.engine.patience import REQUEST_PATIENCE
from store.engine.usage import ReadUsage
from store.errors import BadInput, Unavailable
from store.model.items import Item, Put
from store.model.ranges import subtree
from tests.certificate_authority import Authority
from tests.connect_proxy import Tunnel
from tests.engines import Engine
from tests.proxy import Call, Proxy

ITEM: Item = {"pk": "t", "sk": "#a#", "name": "a"}
EVERYTHING = subtree("t", "#")
REJECTED = ["another name", "an unknown authority", "expired"]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The one that clients trust."""
    made = Authority(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(made.bundle))
    return made


@pytest.fixture(params=REJECTED)
def rejected(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> object:
    """The TLS of a server that is not the one that was asked for."""
    match request.param:
        case "another name":
            return authority.server("other.example")
        case "expired":
            return authority.server("127.0.0.1", days=-1)
        case _:
            return Authority(tmp_path, "stranger").server("127.0.0.1")


@pytest.fixture
async def tunnel(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tunnel]:
    """The proxy by which all clients go."""
    async with Tunnel() as opened:
        monkeypatch.setenv("HTTPS_PROXY", opened.url)
        monkeypatch.setenv("NO_PROXY", "")
        yield opened


def store_at(url: str) -> DynamoDBStore:
    return DynamoDBStore(f"clade-{uuid.uuid4().hex}", region="eu-west-1", endpoint=url, patience=REQUEST_PATIENCE)


def by_the_library(call: Call) -> bool:
    return "amz-sdk-request" in call.headers


async def fill(store: DynamoDBStore) -> None:
    await store.create()
    await store.commit([Put(ITEM)])
    assert await store.range(EVERYTHING, ReadUsage()) == [ITEM]


async def test_the_right_name_is_accepted_on_both_paths(engine: Engine, authority: Authority) -> None:
    async with Proxy(engine.url, authority.server("127.0.0.1")) as proxy, store_at(proxy.url) as store:
        assert proxy.url.startswith("https:")
        await fill(store)
        proxy.calls.clear()
        await store.commit([Put(ITEM)])
        assert await store.range(EVERYTHING, ReadUsage()) == [ITEM]
        assert [(call.operation, by_the_library(call)) for call in proxy.calls] == [
            ("TransactWriteItems", True), ("Query", False),
        ]  # fmt: skip


async def test_any_other_certificate_is_refused_by_the_library(engine: Engine, rejected: object) -> None:
    async with Proxy(engine.url, rejected) as proxy, store_at(proxy.url) as store:  # type: ignore[arg-type]
        with pytest.raises(Unavailable, match="certificate"):
            await store.commit([Put(ITEM)])
        with pytest.raises(Unavailable, match="certificate"):
            await store.health()
        assert proxy.calls == []


async def test_any_other_certificate_is_refused_by_direct_calls(
    engine: Engine, authority: Authority, rejected: object
) -> None:
    async with Proxy(engine.url, authority.server("127.0.0.1")) as proxy:
        store = store_at(proxy.url)
        await store.__aenter__()
        await fill(store)
    port = int(proxy.url.rpartition(":")[2])
    async with Proxy(engine.url, authority.server("127.0.0.1"), port) as again:
        assert await store.range(EVERYTHING, ReadUsage()) == [ITEM]
        assert [by_the_library(call) for call in again.calls] == [False]
    async with Proxy(engine.url, rejected, port) as other:  # type: ignore[arg-type]
        with pytest.raises(Unavailable, match="certificate"):
            await store.range(EVERYTHING, ReadUsage())
        assert other.calls == []
    await store.__aexit__(None, None, None)


async def test_a_proxy_changes_nothing_for_the_right_name(engine: Engine, authority: Authority, tunnel: Tunnel) -> None:
    async with Proxy(engine.url, authority.server("127.0.0.1")) as proxy, store_at(proxy.url) as store:
        await fill(store)
        assert await store.range(EVERYTHING, ReadUsage()) == [ITEM]
        assert all(map(by_the_library, proxy.calls))
        assert set(tunnel.opened) == {proxy.url.removeprefix("https://")}


async def test_a_proxy_changes_nothing_for_any_other(engine: Engine, rejected: object, tunnel: Tunnel) -> None:
    async with Proxy(engine.url, rejected) as proxy, store_at(proxy.url) as store:  # type: ignore[arg-type]
        with pytest.raises(Unavailable, match="certificate"):
            await store.commit([Put(ITEM)])
        assert proxy.calls == []
        assert tunnel.opened


async def test_no_variable_turns_the_verification_off(
    engine: Engine, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")
    async with Proxy(engine.url, authority.server("127.0.0.1")) as proxy:
        with pytest.raises((BadInput, Unavailable), match=r"certificate|Invalid CA bundle"):  # newer ones of botocore
            async with store_at(proxy.url) as store:
                await store.commit([Put(ITEM)])
        assert proxy.calls == []


@pytest.mark.parametrize(("name", "is_shown"), [("127.0.0.1", True), ("other.example", False)])
async def test_a_token_is_never_shown_to_an_sts_of_another_name(
    name: str, is_shown: bool, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal shown
        shown += 1
        return web.Response(status=403)

    application = web.Application()
    application.add_routes([web.post("/", answer)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server(name)).start()
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    (tmp_path / "token").write_text("a token of the platform")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/clade")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"https://127.0.0.1:{runner.addresses[0][1]}")
    async with DynamoDBStore("clade", region="eu-west-1", patience=REQUEST_PATIENCE) as store:
        with pytest.raises(Unavailable, match="credentials cannot be obtained"):
            await store.health()
    await runner.cleanup()
    assert (shown > 0) == is_shown
