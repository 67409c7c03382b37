"""AWS: signatures, credentials that are refreshed or rejected, and TLS, at servers that check them."""

import asyncio
import hashlib
import hmac
import json
import os
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from resolvers.access.callers import ApiKeyAuthenticator
from store.api_keys import add_key, new_key, revoke_key
from store.concurrency import started
from store.connect import open_store
from store.dynamodb.client import SKEW_SECONDS
from store.dynamodb.store import DynamoDBStore
from store.engine import REQUEST_PATIENCE, ReadUsage, Store
from store.errors import BadInput, Unavailable
from store.metadata.tree_version import LOG_SECONDS
from store.model.keys import Key, subtree
from store.model.records import Put
from store.reading import transactions
from store.writing.create_update import Create
from store.writing.edit_request import RESULT_SECONDS, EditOptions
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests import engines
from tests.certificate_authority import Authority
from tests.hierarchies import CATEGORY
from tests.loopback_server import Tunnel
from tests.proxy import HTTPServer

STORED_TIMES = {"expires", "log_expires", "at", "updated_at", "created_at", "revoked_at"}
ROLE = "arn:aws:iam::123456789012:role/clade"
VARIABLES = {
    "aws_access_key_id": "AccessKeyId",
    "aws_secret_access_key": "SecretAccessKey",
    "aws_session_token": "Token",
}
STS = """\
<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><Credentials>
<AccessKeyId>{AccessKeyId}</AccessKeyId><SecretAccessKey>{SecretAccessKey}</SecretAccessKey>
<SessionToken>{Token}</SessionToken><Expiration>{Expiration}</Expiration>
</Credentials></{0}Result></{0}Response>"""


class Table(HTTPServer):
    """An empty table; `keys` are the access keys of the requests, whose signatures it checks.

    It rejects the access keys in `rejected` with the error `code`, and signatures of other times than its own, which
    is `ahead` of this machine's; the first requests get the errors in `refusals`.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        super().__init__(tls, port)
        self.keys: list[str] = []
        self.rejected: set[str] = set()
        self.code = "ExpiredTokenException"
        self.ahead = timedelta()
        self.accepted = timedelta(minutes=5)
        self.refusals: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        key = request.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        assert request.headers["Authorization"].endswith(f"Signature={signature(request, body, f'secret of {key}')}")
        assert request.headers["X-Amz-Security-Token"] == f"token of {key}"
        sent_at = datetime.strptime(f"{request.headers['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z")
        self.keys.append(key)
        now = datetime.now(UTC) + self.ahead
        headers = {"Date": format_datetime(now, usegmt=True)}
        if self.refusals or abs(now - sent_at) > self.accepted:
            code = self.refusals.pop() if self.refusals else "InvalidSignatureException"
            body = {"__type": f"com.amazon.coral.service#{code}"}
            return web.json_response(body, status=400, headers=headers)
        if key in self.rejected:
            return web.json_response({"__type": f"com.amazonaws.dynamodb.v20120810#{self.code}"}, status=400)
        return web.json_response({"Items": [], "Count": 0, "Responses": {}}, headers=headers)

    def taken(self) -> list[str]:
        """The access keys since the last time."""
        taken, self.keys = self.keys, []
        return taken


def signature(request: web.Request, body: bytes, secret: str) -> str:
    """The signature (SigV4) of a request, by its description in the reference of IAM."""
    given = request.headers["Authorization"]
    scope = given.partition("Credential=")[2].partition(",")[0].partition("/")[2]
    names = given.partition("SignedHeaders=")[2].partition(",")[0]
    assert {"host", "x-amz-date", "x-amz-security-token", "x-amz-target"} <= {*names.split(";")}
    lines = [f"{name}:{request.headers[name]}" for name in names.split(";")]
    canonical = "\n".join(["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    told = f"AWS4-HMAC-SHA256\n{request.headers['X-Amz-Date']}\n{scope}\n{digest}"
    return hmac.digest(key, told.encode(), "sha256").hex()


class Sources(HTTPServer):
    """Sources of credentials, which give those that were issued last: files, a program, STS.

    `shown` are the tokens that callers of STS proved themselves with.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.folder = folder
        self.patch = monkeypatch
        self.shown: list[str] = []

    def issue(self, key: str, minutes: float = 600) -> None:
        """Credentials with an access key, which expire after some minutes."""
        expiration = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._issued = {"AccessKeyId": key, "SecretAccessKey": f"secret of {key}", "Token": f"token of {key}"}
        self._issued["Expiration"] = expiration
        process = {"Version": 1, **self._issued, "SessionToken": self._issued["Token"]}
        (self.folder / "issued.json").write_text(json.dumps(process))
        (self.folder / "token").write_text(f"proof for {key}")

    def use_process(self) -> None:
        (self.folder / "config").write_text(f"[default]\ncredential_process = cat {self.folder / 'issued.json'}\n")

    def use_web_identity(self) -> None:
        self.patch.setenv("AWS_ENDPOINT_URL_STS", self.url)
        self.patch.setenv("AWS_ROLE_ARN", ROLE)
        self.patch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(self.folder / "token"))

    def use_file(self) -> None:
        """A file of static credentials, which a program of the user replaces."""
        lines = [f"{name} = {self._issued[of]}\n" for name, of in VARIABLES.items()]
        (self.folder / "credentials").write_text("".join(["[default]\n", *lines]))
        self.patch.setenv("AWS_PROFILE", "")  # as containers are given it

    def use_environment(self) -> None:
        for name, of in VARIABLES.items():
            self.patch.setenv(name.upper(), self._issued[of])

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.post()
        assert asked["RoleArn"] == ROLE
        self.shown.append(str(asked["WebIdentityToken"]))
        return web.Response(text=STS.format(asked["Action"], **self._issued), content_type="text/xml")


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The one that clients trust, on a machine without a configuration of AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = Authority(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(made.bundle))
    return made


@pytest.fixture
async def sources(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sources]:
    async with Sources(tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    async with Table() as opened:
        yield opened


def store_at(table: Table) -> DynamoDBStore:
    """The store by an address that is not recognized as one of this machine, where dummy credentials would do."""
    url = table.url.replace("http://127.0.0.1", "http://0.0.0.0")  # nothing is bound
    return DynamoDBStore("clade", region="eu-west-1", endpoint=url, patience=REQUEST_PATIENCE)


async def read(store: DynamoDBStore) -> None:
    assert await store.range(subtree("t", "#"), ReadUsage()) == []


async def in_no_task(work: Coroutine[Any, Any, None]) -> None:
    """Begin it in a callback of the event loop, as requests begin."""
    loop = asyncio.get_running_loop()
    begun: asyncio.Future[asyncio.Future[None]] = loop.create_future()
    loop.call_soon(lambda: begun.set_result(started(work)))
    await (await begun)


async def use(store: DynamoDBStore) -> None:
    """Calls of every kind, reads twice."""
    for _ in range(2):
        await read(store)
        assert await store.get([Key("t", "#é#")], ReadUsage()) == [None]
    await store.commit([Put({"pk": "t", "sk": "a"})])


# -- credentials -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["process", "web_identity"])
async def test_requests_are_signed_with_credentials_that_are_refreshed_before_they_expire(
    kind: str, sources: Sources, table: Table
) -> None:
    sources.issue("FIRST", 5)  # botocore asks for others fifteen minutes before the end, with each call
    getattr(sources, f"use_{kind}")()
    async with store_at(table) as store:
        await use(store)
        assert table.taken() == ["FIRST"] * 5
        sources.issue("SECOND")
        await in_no_task(read(store))
        await use(store)
        assert table.taken() == ["SECOND"] * 6
        table.rejected.add("SECOND")
        sources.issue("THIRD")
        before = len(sources.shown)
        await asyncio.gather(*[read(store) for _ in range(10)], store.commit([Put({"pk": "t", "sk": "a"})]))
        table.taken()
        await use(store)
        assert table.taken() == ["THIRD"] * 5
    assert len(sources.shown) - before == (0 if kind == "process" else 1)
    assert kind == "process" or (sources.shown[0], sources.shown[-1]) == ("proof for FIRST", "proof for THIRD")


@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
async def test_credentials_of_a_file_are_found_after_the_start_and_replaced_when_they_are_rejected(
    code: str, sources: Sources, table: Table
) -> None:
    table.code = code
    sources.issue("FIRST")
    async with store_at(table) as later:
        sources.use_file()
        await use(later)
        assert table.taken() == ["FIRST"] * 5
    async with store_at(table) as store:
        await use(store)
        table.rejected.add("FIRST")
        sources.issue("SECOND")
        sources.use_file()
        await use(store)
        assert table.taken() == ["FIRST"] * 6 + ["SECOND"] * 5


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("environment", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("web_identity", "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("file", 'the profile "default" (shared-credentials-file)'),
    ],
)
async def test_credentials_that_stay_rejected_are_reported_and_searched_once(
    kind: str, source: str, sources: Sources, table: Table
) -> None:
    sources.issue("FIRST")
    getattr(sources, f"use_{kind}")()
    async with store_at(table) as store:
        await read(store)
        assert table.taken() == ["FIRST"]
        before = len(sources.shown)
        table.rejected.add("FIRST")
        for _ in range(5):
            with pytest.raises(Unavailable, match="expired") as caught:
                await read(store)
            assert f"come from {source}, and were sent to http://0.0.0.0:{table.port} in eu-west-1" in str(caught.value)
            assert "of FIRST" not in str(caught.value)
    assert table.taken() == ["FIRST"] * 5
    assert len(sources.shown) - before == (kind == "web_identity")


async def test_a_source_that_fails_is_reported_until_it_works_again(sources: Sources, table: Table) -> None:
    sources.issue("FIRST", 5)
    sources.use_process()
    async with store_at(table) as store:
        await read(store)
        table.taken()
        (sources.folder / "issued.json").unlink()
        for _ in range(3):
            with pytest.raises(Unavailable, match="credentials cannot be obtained"):
                await read(store)
        assert table.taken() == []
        sources.issue("SECOND", 60)
        await read(store)
        assert table.taken() == ["SECOND"]


# -- the clock ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "accepted", "calls", "sentence"),
    [
        (timedelta(hours=-3), timedelta(minutes=5), 20, "is 3 hours ahead of DynamoDB's"),
        (timedelta(days=400), timedelta(minutes=5), 20, "is 400 days behind DynamoDB's"),
        (timedelta(minutes=10), timedelta(minutes=15), 10, "is 10 minutes behind DynamoDB's"),  # as ExtendDB
    ],
)
async def test_a_wrong_clock_is_told_once_and_costs_each_call_that_meets_it_one_more(
    ahead: timedelta, accepted: timedelta, calls: int, sentence: str, sources: Sources, table: Table,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    sources.issue("FIRST")
    sources.use_environment()
    table.ahead, table.accepted = ahead, accepted
    with caplog.at_level("WARNING", "clade"):
        async with store_at(table) as store, store_at(table) as other:
            await asyncio.gather(*[read(store) for _ in range(10)])
            assert len(table.taken()) == calls
            await use(store)
            assert len(table.taken()) == 5
            await read(other)
            (told,) = caplog.messages
            assert told == f"The clock of this machine {sentence}, whose time is used; set the clock."
            table.taken()
            table.ahead, table.accepted = ahead + timedelta(minutes=-9), timedelta(days=1000)  # a response shows it
            await read(store)
            assert abs(store.now() - (datetime.now(UTC) + table.ahead).timestamp()) < SKEW_SECONDS
            table.ahead = ahead
            await use(store)
            table.taken()
            caplog.clear()
            table.ahead, table.accepted = timedelta(), timedelta(minutes=5)  # somebody has set the clock
            await use(store)
            assert len(table.taken()) == 6
            assert caplog.messages == []


UNTIMELY = {
    **dict.fromkeys(("InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure"), "rejects the credentials"),
    **dict.fromkeys(("RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"), "rejects the time of the req"),
}


async def test_a_request_that_was_signed_long_before_it_came_is_signed_again_once(
    sources: Sources, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    sources.issue("FIRST")
    sources.use_environment()
    async with store_at(table) as store:
        for code, sentence in UNTIMELY.items():
            for work in (lambda: read(store), lambda: store.commit([Put({"pk": "t", "sk": "a"})])):
                table.refusals = [code]
                await work()
                assert table.taken() == ["FIRST"] * 2
                table.refusals = [code] * 3
                with pytest.raises(Unavailable, match=sentence):
                    await work()
                assert (len(table.taken()), len(table.refusals)) == (2, 1)
                table.refusals = []
            sources.use_file()
            table.refusals = ["ExpiredTokenException", code]
            with pytest.raises(Unavailable, match="have expired"):  # after a search, which finds the same
                await read(store)
            assert len(table.taken()) == 2
            table.refusals = []
    assert caplog.messages == []


@pytest.mark.parametrize("days", [-400, 400])
async def test_stored_times_are_those_of_the_store_on_machines_with_a_wrong_clock_too(
    days: int, engine: engines.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, right = engine.address(f"clade-{uuid.uuid4().hex}"), time.time
    key, text = new_key("", ["read:category"], int(right()) + 3600)
    async with open_store(url) as store, open_store(url) as wrong:
        await store.create()
        for number, order in enumerate([(store, wrong, store), (wrong, store, wrong)]):
            ids = []
            for one in order:  # of a mutation whose client repeats it
                seconds = days * 86_400 if one is wrong else 0
                monkeypatch.setattr(time, "time", lambda seconds=seconds: right() + seconds)
                edit = Create(CATEGORY, (f"r{number}",), "CATEGORY", "r", {})
                ids.append((await Writer(one).write(edit, ReadUsage(), EditOptions(key=f"k{number}"))).record.id)
            assert len(set(ids)) == 1
        monkeypatch.setattr(time, "time", lambda: right() + days * 86_400)
        await add_key(wrong, key)
        assert await ApiKeyAuthenticator(wrong).caller(text)
        await revoke_key(wrong, key.id)
        await Writer(wrong).write(Delete(CATEGORY, ("r1",), Policy.CASCADE), ReadUsage())
        logged = [await transactions(wrong, f"category#r{n}", None, 10, ReadUsage()) for n in range(2)]
        assert [[one.number for one in some] for some in logged] == [[1], [1, 2]]
        monkeypatch.setattr(time, "time", right)
        await are_times_of(store)


async def are_times_of(store: Store) -> None:
    """All stored times are about now, those of expiry a lifetime later."""
    now, found = store.now(), set()
    async for page in store.scan(ReadUsage()):
        for item in page:
            places = set() if "changes" in item else {"at"}  # `at` is a key in search items
            for name in STORED_TIMES & item.keys() - places:
                lifetimes = [LOG_SECONDS, RESULT_SECONDS] if "expires" in name else [0]
                value: Any = item[name]
                stored = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
                assert min(abs(stored - now - lifetime) for lifetime in lifetimes) < SKEW_SECONDS, item
                found.add(name)
    assert found >= {"expires", "log_expires", "at", "updated_at"}


# -- TLS ---------------------------------------------------------------------------------------------------------------


async def test_an_address_of_https_at_a_server_without_tls_is_told(authority: Authority, sources: Sources) -> None:
    sources.issue("FIRST")
    sources.use_environment()
    async with Table() as table:
        url = table.url.replace("http", "https")
        async with DynamoDBStore("clade", region="eu-west-1", endpoint=url, patience=REQUEST_PATIENCE) as store:
            with pytest.raises(Unavailable, match="speaks HTTP without TLS; write http://"):
                await read(store)


@pytest.fixture(params=["another name", "an unknown authority", "expired"])
def rejected(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    """The TLS of a server that is not the one that was asked for."""
    match request.param:
        case "another name":
            return authority.server("other.example")
        case "expired":
            return authority.server("127.0.0.1", days=-1)
        case _:
            return Authority(tmp_path, "stranger").server("127.0.0.1")


@pytest.mark.parametrize(
    "is_tunnelled",
    [pytest.param(False, id="directly"), pytest.param(True, id="by a proxy", marks=pytest.mark.thorough)],
)
async def test_the_right_certificate_alone_is_accepted_at_any_time_and_on_every_way(
    is_tunnelled: bool, authority: Authority, rejected: ssl.SSLContext, sources: Sources
) -> None:
    sources.issue("FIRST")
    sources.use_environment()
    async with Tunnel() as tunnel:
        if is_tunnelled:
            sources.patch.setenv("HTTPS_PROXY", tunnel.url)
            sources.patch.setenv("NO_PROXY", "")
        async with Table(authority.server("127.0.0.1")) as right:
            store = store_at(right)
            await store.__aenter__()
            await use(store)
            assert right.taken() == ["FIRST"] * 5
            port = right.port
        async with Table(rejected, port) as other, store_at(other) as fresh:
            for one in (store, fresh):
                with pytest.raises(Unavailable, match="certificate"):
                    await read(one)
                with pytest.raises(Unavailable, match="certificate"):
                    await one.commit([Put({"pk": "t", "sk": "a"})])
            assert other.taken() == []
        await store.__aexit__(None, None, None)
        assert set(tunnel.opened) == ({f"127.0.0.1:{port}"} if is_tunnelled else set())


async def test_no_variable_turns_the_verification_off(authority: Authority, sources: Sources) -> None:
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        sources.patch.setenv(name, "")
    async with Table(authority.server("127.0.0.1")) as table:
        with pytest.raises((BadInput, Unavailable), match=r"certificate|Invalid CA bundle"):  # newer ones of botocore
            async with store_at(table) as store:
                await store.commit([Put({"pk": "t", "sk": "a"})])
        assert table.taken() == []


@pytest.mark.parametrize(("name", "is_shown"), [("127.0.0.1", True), ("other.example", False)])
async def test_a_token_is_never_shown_to_an_sts_of_another_name(
    name: str, is_shown: bool, authority: Authority, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    async with Sources(tmp_path, monkeypatch, authority.server(name)) as sts:
        sts.issue("FIRST")
        sts.use_web_identity()
        async with store_at(table) as store:
            if is_shown:
                await read(store)
            else:
                with pytest.raises(Unavailable, match="credentials cannot be obtained"):
                    await read(store)
        assert (sts.shown, table.keys) == ((["proof for FIRST"], ["FIRST"]) if is_shown else ([], []))
