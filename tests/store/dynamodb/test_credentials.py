"""Credentials of every kind are refreshed before they expire, and replaced when they are rejected.

`Sources` has the protocols of IMDS, ECS, STS, SSO and its OIDC, and files.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import certifi
import pytest
from aiobotocore.credentials import AioRefreshableCredentials, AioSSOProvider
from aiobotocore.tokens import AioSSOTokenProvider
from aiohttp import web

from store.dynamodb.store import DynamoDBStore
from store.engine.usage import ReadUsage
from store.errors import Unavailable
from store.model.items import Item, Put
from store.model.ranges import subtree
from tests.engines import Engine
from tests.proxy import Call, Fault, Proxy, refused

ITEMS: list[Item] = [{"pk": "t", "sk": f"#{name}#", "name": name} for name in ("a", "b")]


ROLE = "arn:aws:iam::123456789012:role/clade"
PORTAL = "http://portal.example/start"
ROLE_PROFILE = "sso_account_id = 123456789012\nsso_role_name = clade\nregion = eu-west-1\n"
STS = """\
<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><Credentials>
<AccessKeyId>{AccessKeyId}</AccessKeyId><SecretAccessKey>{SecretAccessKey}</SecretAccessKey>
<SessionToken>{Token}</SessionToken><Expiration>{Expiration}</Expiration>
</Credentials></{0}Result></{0}Response>"""


class Sources:
    """All sources, which give the credentials that were issued last.

    `given` counts how often a server gave some; `shown` are the tokens that its callers proved themselves with.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.patch = monkeypatch
        self.given = 0
        self.shown: list[str] = []
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        bundle = Path(certifi.where()).read_text()  # each client parses it, although none uses TLS: the first is enough
        self._write("bundle", bundle[: bundle.index("-----END CERTIFICATE-----") + 26])
        monkeypatch.setenv("AWS_CA_BUNDLE", str(folder / "bundle"))

    def issue(self, key: str, minutes: float) -> None:
        """Credentials with an access key, which expire after some minutes."""
        expiration = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._issued = {"AccessKeyId": key, "SecretAccessKey": f"secret of {key}", "Token": f"token of {key}"}
        self._issued["Expiration"] = expiration
        process = {"Version": 1, **self._issued, "SessionToken": self._issued["Token"]}
        self._write("issued.json", json.dumps(process))
        self._write("token", f"proof for {key}")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def _write_profile(self, text: str) -> None:
        self._write("config", f"[default]\n{text}")

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def use_process(self) -> None:
        self._write_profile(f"credential_process = cat {self.folder / 'issued.json'}\n")

    def use_container(self) -> None:
        self.patch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{self.url}/container")
        self.patch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(self.folder / "token"))

    def use_instance(self) -> None:
        self.patch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        self.patch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", self.url)

    def use_assumed_role(self) -> None:
        self.patch.setenv("AWS_ENDPOINT_URL_STS", self.url)
        source = "[profile source]\naws_access_key_id = SOURCE\naws_secret_access_key = secret\n"
        self._write_profile(f"role_arn = {ROLE}\nsource_profile = source\n{source}")

    def use_web_identity(self) -> None:
        self.patch.setenv("AWS_ENDPOINT_URL_STS", self.url)
        self.patch.setenv("AWS_ROLE_ARN", ROLE)
        self.patch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(self.folder / "token"))

    def use_sso(self) -> None:
        self._write_profile(f"{ROLE_PROFILE}sso_start_url = {PORTAL}\nsso_region = eu-west-1\n")
        self._sign_in(PORTAL)

    def use_sso_session(self) -> None:
        session = f"[sso-session work]\nsso_start_url = {PORTAL}\nsso_region = eu-west-1\n"
        self._write_profile(f"{ROLE_PROFILE}sso_session = work\n{session}")
        self.patch.setenv("AWS_ENDPOINT_URL_SSO_OIDC", self.url)
        self._sign_in("work")

    def use_file(self) -> None:
        """A file of static credentials, which a program of the user replaces."""
        issued = self._issued
        self._write(
            "credentials",
            f"[default]\naws_access_key_id = {issued['AccessKeyId']}\n"
            f"aws_secret_access_key = {issued['SecretAccessKey']}\naws_session_token = {issued['Token']}\n",
        )

    def use_environment(self) -> None:
        for name, value in zip(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"), self._issued.values()):  # noqa: B905
            self.patch.setenv(f"AWS_{name}", value)

    def _sign_in(self, name: str) -> None:
        """The token that `aws sso login` writes, which expires soon."""
        self.patch.setenv("AWS_ENDPOINT_URL_SSO", self.url)
        for provider in (AioSSOProvider, AioSSOTokenProvider):
            self.patch.setattr(provider, "_SSO_TOKEN_CACHE_DIR", str(self.folder))
        soon, later = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (5, 600))
        token = {"startUrl": PORTAL, "region": "eu-west-1", "accessToken": "access 0", "expiresAt": soon.isoformat()}
        client = {"clientId": "a client", "clientSecret": "a secret", "registrationExpiresAt": later.isoformat()}
        name = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
        self._write(f"{name}.json", json.dumps({**token, **client, "refreshToken": "refresh 0"}))

    # -- servers -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        application = web.Application()
        role = "/latest/meta-data/iam/security-credentials/"
        application.add_routes([
            web.put("/latest/api/token", self._imds_token), web.get(role, self._imds_role),
            web.get(f"{role}clade", self._imds), web.get("/container", self._container), web.post("/", self._sts),
            web.get("/federation/credentials", self._sso), web.post("/token", self._oidc),
        ])  # fmt: skip
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _give(self, proof: str) -> dict[str, str]:
        self.given += 1
        self.shown.append(proof)
        return self._issued

    async def _imds_token(self, request: web.Request) -> web.Response:
        assert int(request.headers["x-aws-ec2-metadata-token-ttl-seconds"]) > 0
        return web.Response(text="a token of IMDSv2")

    async def _imds_role(self, request: web.Request) -> web.Response:
        return web.Response(text="clade")

    async def _imds(self, request: web.Request) -> web.Response:
        return web.json_response({"Code": "Success", **self._give(request.headers["x-aws-ec2-metadata-token"])})

    async def _container(self, request: web.Request) -> web.Response:
        return web.json_response(self._give(request.headers["Authorization"]))

    async def _sts(self, request: web.Request) -> web.Response:
        asked = await request.post()
        assert asked["RoleArn"] == ROLE
        proof = asked.get("WebIdentityToken") or request.headers["Authorization"]
        text = STS.format(asked["Action"], **self._give(str(proof)))
        return web.Response(text=text, content_type="text/xml")

    async def _sso(self, request: web.Request) -> web.Response:
        assert (request.query["role_name"], request.query["account_id"]) == ("clade", "123456789012")
        issued = self._give(request.headers["x-amz-sso_bearer_token"])
        expiration = datetime.fromisoformat(issued["Expiration"]).timestamp() * 1000
        names = {"accessKeyId": "AccessKeyId", "secretAccessKey": "SecretAccessKey", "sessionToken": "Token"}
        given = {name: issued[of] for name, of in names.items()}
        return web.json_response({"roleCredentials": {**given, "expiration": int(expiration)}})

    async def _oidc(self, request: web.Request) -> web.Response:
        number = int((await request.json())["refreshToken"].split()[-1]) + 1
        token = {"accessToken": f"access {number}", "refreshToken": f"refresh {number}", "tokenType": "Bearer"}
        return web.json_response({**token, "expiresIn": 300})


EXPIRING: dict[str, Callable[[Sources], None]] = {
    "process": Sources.use_process,
    "container": Sources.use_container,
    "instance": Sources.use_instance,
    "assumed role": Sources.use_assumed_role,
    "web identity": Sources.use_web_identity,
    "sso": Sources.use_sso,
    "sso session": Sources.use_sso_session,
}
"""The kinds that botocore refreshes before they expire."""


class CheckingProxy(Proxy):
    """Proxy that rejects the access keys in `rejected`, as DynamoDB does."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.rejected: set[str] = set()
        self.code = "ExpiredTokenException"

    def fault_for(self, call: Call) -> Fault:
        return refused(self.code) if key_of(call) in self.rejected else super().fault_for(call)


def key_of(call: Call) -> str:
    return call.headers["Authorization"].partition("Credential=")[2].partition("/")[0]


def keys_of(proxy: Proxy) -> list[str]:
    """The keys of the calls since the last time, each of which had the session token of its key."""
    assert all(call.headers["X-Amz-Security-Token"] == f"token of {key_of(call)}" for call in proxy.calls)
    found = [key_of(call) for call in proxy.calls]
    proxy.calls.clear()
    return found


@pytest.fixture(scope="module")
def table(engine: Engine) -> str:
    """The name of a table with the items."""

    async def fill() -> None:
        async with DynamoDBStore(name, region="eu-west-1", endpoint=engine.url) as store:
            await store.create()
            await store.commit([Put(item) for item in ITEMS])

    name = f"clade-{uuid.uuid4().hex}"
    asyncio.run(fill())
    return name


@pytest.fixture
async def proxy(engine: Engine) -> AsyncIterator[CheckingProxy]:
    async with CheckingProxy(engine.url) as opened:
        yield opened


@pytest.fixture
async def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sources]:
    async with Sources(tmp_path, monkeypatch) as opened:
        yield opened


def store_at(proxy: Proxy, table: str) -> DynamoDBStore:
    """The store by an address that is not recognized as one of this machine, where roles of instances are not used."""
    return DynamoDBStore(table, region="eu-west-1", endpoint=proxy.url.replace("127.0.0.1", "0.0.0.0"))  # noqa: S104  # nothing is bound


async def read(store: DynamoDBStore) -> None:
    assert await store.range(subtree("t", "#"), ReadUsage()) == ITEMS


@pytest.mark.parametrize("kind", EXPIRING)
async def test_credentials_are_refreshed_before_they_expire_and_replaced_when_they_are_rejected(
    kind: str, sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 5)  # botocore asks for others fifteen minutes before the end, with each call
    EXPIRING[kind](sources)
    async with store_at(proxy, table) as store, contextlib.AsyncExitStack() as hours:
        for _ in range(2):  # the second read is made directly
            await read(store)
        assert keys_of(proxy) == ["FIRST"] * 2
        sources.issue("SECOND", 600)
        if kind == "instance":  # whose credentials botocore uses for longer, whatever their expiry
            patch = hours.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(AioRefreshableCredentials, "_advisory_refresh_timeout", 24 * 3600)
        for _ in range(2):
            await read(store)
        assert keys_of(proxy) == ["SECOND"] * 2
        await hours.aclose()
        given = sources.given
        await expect_renewal(store, proxy, sources, "SECOND", "THIRD")
    assert sources.given - given == (0 if kind == "process" else 1)
    if kind in ("container", "web identity"):
        assert (sources.shown[0], sources.shown[-1]) == ("proof for FIRST", "proof for THIRD")
    if kind == "sso session":
        assert sources.shown == [f"access {number + 1}" for number in range(sources.given)]


async def expect_renewal(store: DynamoDBStore, proxy: CheckingProxy, sources: Sources, old: str, new: str) -> None:
    """Rejected credentials are replaced, for reads and writes at the same time."""
    proxy.rejected.add(old)
    sources.issue(new, 600)
    await asyncio.gather(*[read(store) for _ in range(10)], store.commit([Put(ITEMS[0])]))
    keys_of(proxy)
    await read(store)
    assert keys_of(proxy) == [new]


@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
async def test_rejected_credentials_of_a_file_are_replaced_by_those_that_it_has_now(
    code: str, sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    proxy.code = code
    sources.issue("FIRST", 600)
    sources.use_file()
    async with store_at(proxy, table) as store:
        await read(store)
        sources.issue("SECOND", 600)
        sources.use_file()
        await expect_renewal(store, proxy, sources, "FIRST", "SECOND")


@pytest.mark.parametrize("kind", ["environment", "container"])
async def test_credentials_that_stay_rejected_are_reported_and_searched_once(
    kind: str, sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 600)
    {**EXPIRING, "environment": Sources.use_environment}[kind](sources)
    async with store_at(proxy, table) as store:
        given = sources.given
        proxy.rejected.add("FIRST")
        for _ in range(5):
            with pytest.raises(Unavailable, match="expired"):
                await store.range(subtree("t", "#"), ReadUsage())
    assert len(proxy.calls) == 5
    assert sources.given - given == (kind == "container")


async def test_a_source_that_fails_is_reported_until_it_works_again(
    sources: Sources, proxy: CheckingProxy, table: str
) -> None:
    sources.issue("FIRST", 5)
    sources.use_process()
    async with store_at(proxy, table) as store:
        await read(store)
        proxy.calls.clear()
        (sources.folder / "issued.json").unlink()
        for _ in range(20):
            with pytest.raises(Unavailable, match="credentials cannot be obtained"):
                await store.range(subtree("t", "#"), ReadUsage())
        assert proxy.calls == []
        sources.issue("SECOND", 60)
        await read(store)
        assert keys_of(proxy) == ["SECOND"]


async def test_credentials_that_come_after_the_start_are_found(
    sources: Sources, proxy: CheckingProxy, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.dynamodb.aws.credentials.SEARCH_SECONDS", 0)
    async with store_at(proxy, table) as store:
        with pytest.raises(Unavailable, match="none were found"):
            await read(store)
        sources.issue("FIRST", 600)
        sources.use_file()
        await read(store)
