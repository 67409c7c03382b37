"""AWS session: credentials of every kind that botocore finds, TLS that verifies, and clients of DynamoDB.

Clients are made by aioboto3, or by aiobotocore if aioboto3 is not installed. A client of aioboto3 is a client of
aiobotocore, whose version it pins (`docs/decisions/aiobotocore.md`). aiobotocore 2 does not check host names, and
behind an HTTP proxy it verifies nothing at all.

botocore refreshes credentials that expire. Other changes it does not notice: a file with another session, a role whose
sessions were revoked. DynamoDB then rejects the requests, and the credentials are searched again.
"""

import asyncio
import ssl
import time
from functools import cache
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioCredentials
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from botocore.httpsession import get_cert_path
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError
from botocore.session import Session as BotocoreSession

aioboto3: Any
try:
    import aioboto3
except ImportError:
    aioboto3 = None

# Of clients of credential providers, such as STS; botocore would wait a minute for each attempt.
CONNECT_SECONDS, READ_SECONDS = 2, 4
SEARCH_SECONDS = 5.0  # between two searches anew, which read files and may send requests

# Error codes of requests that are signed with credentials that are no longer valid.
REJECTED = frozenset({"ExpiredTokenException", "UnrecognizedClientException"})

# Errors of a provider: of AWS, the network, a program, a response that cannot be parsed or lacks something.
SEARCH_ERRORS = (
    BotoCoreError, ClientError, ResponseParserError, aiohttp.ClientError, OSError, RuntimeError, ValueError, KeyError,
)  # fmt: skip


# -- credentials -------------------------------------------------------------------------------------------------------


class Credentials:
    """The credentials of one client.

    `region` and `endpoint` are those of the client, None for those of the AWS configuration. An engine on this machine
    gets dummy credentials where there are none.
    """

    def __init__(self, region: str | None, endpoint: str | None) -> None:
        self._region = region
        self._endpoint = endpoint
        self._found: AioCredentials | None = None
        self._searched_at = -SEARCH_SECONDS
        self._lock = asyncio.Lock()

    async def search(self) -> None:
        """Search them now, where an error of a provider is only one of settings; `frozen` searches again."""
        self._found = await _find(self._region, self._endpoint)

    async def frozen(self) -> ReadOnlyCredentials:
        """The credentials of this moment, refreshed where they expire soon.

        Raises NoCredentialsError where there are none, other SEARCH_ERRORS where a provider fails.
        """
        if self._found is None:
            async with self._lock:
                if self._found is None:
                    await self._search()
        if self._found is None:
            raise NoCredentialsError()
        return await self._found.get_frozen_credentials()

    async def renew(self, rejected: ReadOnlyCredentials) -> bool:
        """Whether there are other credentials than the rejected ones, after a search where it is needed."""
        async with self._lock:
            try:
                if self._found is None or await self._found.get_frozen_credentials() == rejected:
                    await self._search(rejected)
                return self._found is not None and await self._found.get_frozen_credentials() != rejected
            except SEARCH_ERRORS:
                return False  # the rejection is reported

    async def _search(self, rejected: ReadOnlyCredentials | None = None) -> None:
        """Search in all places, of which nothing is remembered, and take what is not the rejected credentials."""
        if time.monotonic() < self._searched_at + SEARCH_SECONDS:
            return
        self._searched_at = time.monotonic()
        found = await _find(self._region, self._endpoint)
        if found is not None and (rejected is None or await found.get_frozen_credentials() != rejected):
            self._found = found


async def _find(region: str | None, endpoint: str | None) -> AioCredentials | None:
    session = VerifiedSession()
    if region:
        session.set_config_variable("region", region)  # STS is called there
    if not (endpoint and _is_loopback(endpoint)):
        return await session.get_credentials()
    session.get_component("credential_provider").remove("iam-role")  # a request to the network, which takes seconds
    return await session.get_credentials() or AioCredentials("local", "local")


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


# -- TLS ---------------------------------------------------------------------------------------------------------------


def verifying_context(bundle: str | bool | None) -> ssl.SSLContext:
    """A TLS context that trusts the authorities of a file, those of certifi or botocore if there is none."""
    return ssl.create_default_context(cafile=get_cert_path(bundle or True))  # type: ignore[arg-type]  # wrong in the stubs


class VerifiedHTTPSession(AIOHTTPSession):
    """The HTTP session of one client of aiobotocore."""

    def __init__(self, **settings: Any) -> None:
        # An empty AWS_CA_BUNDLE would turn verification off; only a client of a plain HTTP endpoint does.
        verify = settings.get("verify")
        super().__init__(**{**settings, "verify": verify if verify is False else verify or True})

    def _get_ssl_context(self) -> ssl.SSLContext:
        return verifying_context(self._verify)  # type: ignore[attr-defined]  # unknown to the stubs

    def _setup_proxy_ssl_context(self, proxy_url: str) -> ssl.SSLContext:
        """The TLS context for connections through a proxy, and to a proxy with https."""
        made = super()._setup_proxy_ssl_context(proxy_url)  # type: ignore[misc]  # unknown to the stubs
        return made or self._get_ssl_context()


class VerifiedSession(AioSession):
    """A session whose clients all verify, also those of credential providers, as STS, which have timeouts as well."""

    def create_client(self, *names: Any, **settings: Any) -> Any:
        config: Any = settings.get("config") or AioConfig()
        if getattr(config, "http_session_cls", AIOHTTPSession) is AIOHTTPSession:  # SSO's is one of botocore
            config = AioConfig(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS).merge(config)
            config.http_session_cls = VerifiedHTTPSession
        settings["config"] = config
        return super().create_client(*names, **settings)


# -- clients -----------------------------------------------------------------------------------------------------------


@cache
def _loader() -> Loader:
    """The loader of botocore's descriptions of services, which remembers what it has parsed, for all sessions."""
    return cast(Loader, BotocoreSession().get_component("data_loader"))


def open_session() -> VerifiedSession:
    """A session with the AWS configuration of the environment and its files."""
    session = VerifiedSession()
    session.register_component("data_loader", _loader())
    return session


def make_client(session: VerifiedSession, endpoint: str | None, **settings: Any) -> Any:
    """The context manager of a client of DynamoDB. A plain HTTP endpoint needs no certificates, which take a while."""
    settings["endpoint_url"] = endpoint
    if endpoint and endpoint.lower().startswith("http://"):
        settings["verify"] = False
    if aioboto3 is None:
        return session.create_client("dynamodb", **settings)
    return aioboto3.Session(botocore_session=session).client("dynamodb", **settings)
