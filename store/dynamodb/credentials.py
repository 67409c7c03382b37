"""AWS by aioboto3: credentials of every kind that botocore finds, the endpoint; Signature Version 4; TLS that verifies.

botocore refreshes credentials that expire. Other changes it does not notice: a file with another session, a role whose
sessions were revoked. DynamoDB then rejects the requests, and the credentials are searched again.

A client of aioboto3 is one of aiobotocore, whose version it pins (`docs/decisions/aioboto3.md`). aiobotocore 2 does not
check host names, and behind an HTTP proxy it verifies nothing at all.
"""

import asyncio
import hashlib
import hmac
import os
import ssl
import time
from functools import cache
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, quote, urlsplit

import aioboto3
import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioCredentials
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore.credentials import ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError
from botocore.httpsession import get_cert_path
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError

from store.concurrency import in_task
from store.errors import BadInput, Unavailable, shorten

SEARCH_SECONDS = 5.0  # between two searches anew, which read files and may send requests

# Error codes of requests that are signed with credentials that are no longer valid.
REJECTED = frozenset({"ExpiredTokenException", "UnrecognizedClientException"})

# Errors of a provider: of AWS, the network, a program, a response that cannot be parsed or lacks something.
SEARCH_ERRORS = (
    BotoCoreError, ClientError, ResponseParserError, aiohttp.ClientError, OSError, RuntimeError, ValueError, KeyError,
)  # fmt: skip

# Of clients of credential providers, such as STS; botocore would wait a minute for each attempt.
CONNECT_SECONDS, READ_SECONDS = 2, 4

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
PROFILES = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")  # in botocore's order

# Providers of botocore by their methods; the others are named by these.
_BY_PROFILE = frozenset({"shared-credentials-file", "config-file", "assume-role", "custom-process", "sso"})
_BY_OTHERS = {
    "explicit": "Clade, which found none",
    "env": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "assume-role-with-web-identity": "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE",
}

DEFAULT_REGION = "us-east-1"  # of an endpoint that is not AWS's own, which needs one for its signatures

_CONTENT_TYPE = "application/x-amz-json-1.0"
_PORTS = {"http": 80, "https": 443}


# -- credentials -------------------------------------------------------------------------------------------------------


class Credentials:
    """The credentials of one client.

    `region` and `endpoint` are those of the client. An engine on this machine gets dummy credentials where there are
    none.
    """

    def __init__(self, region: str, endpoint: str) -> None:
        self.region = region
        self._endpoint = endpoint
        self._found: AioCredentials | None = None
        self._searched_at = -SEARCH_SECONDS
        self._lock = asyncio.Lock()

    @property
    def source(self) -> str:
        """What the present credentials were found by, for a message; nothing of it is secret."""
        method = "explicit" if self._found is None else self._found.method
        if method in _BY_PROFILE:
            names = [os.environ[name] for name in PROFILES if os.environ.get(name)]
            return f'the profile "{shorten((names or ["default"])[0])}" ({method})'
        return _BY_OTHERS.get(method, f"the provider {method}")

    async def search(self) -> None:
        """Search them now, where an error of a provider is one of settings; `current` searches again."""
        self._found = await find_credentials(self.region, self._endpoint)

    async def current(self) -> ReadOnlyCredentials:
        """The credentials of this moment, refreshed where they expire soon.

        Raises NoCredentialsError where there are none, other SEARCH_ERRORS where a provider fails.
        """
        if self._found is None or _is_due(self._found):  # a provider may be asked, by libraries
            await in_task()
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
        found = await find_credentials(self.region, self._endpoint)
        if found is not None and (rejected is None or await found.get_frozen_credentials() != rejected):
            self._found = found


def _is_due(credentials: AioCredentials) -> bool:
    """Whether they are refreshed before they are used again."""
    return isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed()


async def find_credentials(region: str, endpoint: str) -> AioCredentials | None:
    """The credentials that the AWS library finds, None without any; on this machine those of no account are as good."""
    session = VerifiedSession()
    session.set_config_variable("region", region)  # STS is called there
    if not _is_loopback(endpoint):
        return await session.get_credentials()
    session.get_component("credential_provider").remove("iam-role")  # a request to the network, which takes seconds
    return await session.get_credentials() or AioCredentials("local", "local")


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


# -- Signature Version 4 -----------------------------------------------------------------------------------------------


class Signer:
    """The signed requests to one endpoint, in DynamoDB's JSON protocol.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """

    def __init__(self, url: SplitResult, region: str) -> None:
        host = url.netloc
        self._host = host.removesuffix(f":{url.port}") if url.port == _PORTS[url.scheme] else host
        self._path = url.path or "/"
        self._canonical_path = quote(self._path, safe="/~")
        self._region = region
        self._keys: dict[tuple[ReadOnlyCredentials, str], bytes] = {}

    def request(self, operation: str, body: bytes, credentials: ReadOnlyCredentials, now: float) -> bytes:
        """The serialized request, signed for a time; raises Unavailable for credentials that no header can hold."""
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        target, token = f"DynamoDB_20120810.{operation}", credentials.token
        names, signed_token, sent_token = "content-type;host;x-amz-date;x-amz-target", "", ""
        if token:
            names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
            signed_token, sent_token = f"x-amz-security-token:{token}\n", f"X-Amz-Security-Token: {token}\r\n"
        canonical = (
            f"POST\n{self._canonical_path}\n\n"
            f"content-type:{_CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{date}\n{signed_token}x-amz-target:{target}\n"
            f"\n{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{date[:8]}/{self._region}/dynamodb/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(credentials, date[:8]), text.encode(), "sha256").hex()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: clade\r\nAccept-Encoding: identity\r\n"
            f"Content-Type: {_CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nX-Amz-Target: {target}\r\n"
            f"X-Amz-Date: {date}\r\n{sent_token}Authorization: AWS4-HMAC-SHA256 "
            f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}\r\n\r\n"
        )
        return head.encode() + body

    def _key(self, credentials: ReadOnlyCredentials, day: str) -> bytes:
        """The key of a day, which is derived once."""
        key = self._keys.get((credentials, day))
        if key is None:
            if not f"{credentials.access_key}{credentials.token or ''}".isprintable():
                raise Unavailable(
                    "The AWS credentials have a line break or another control character; see their source."
                )
            key = f"AWS4{credentials.secret_key}".encode()
            for part in (day, self._region, "dynamodb", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keys = {(credentials, day): key}
        return key


# -- TLS ---------------------------------------------------------------------------------------------------------------


def verifying_context(bundle: str | bool | None) -> ssl.SSLContext:
    """A TLS context that trusts the authorities of a file, those of botocore if there is none."""
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
    """A session whose clients all verify, also those of credential providers, as STS, which have timeouts as well.

    AWS_REGION comes before AWS_DEFAULT_REGION, as for AWS's other clients
    (https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-envvars.html); botocore reads the latter alone. It
    takes an empty AWS_PROFILE for the name of a profile.
    """

    def __init__(self) -> None:
        regions, profiles = ([name for name in names if os.environ.get(name)] for names in (REGIONS, PROFILES))
        variables = {"region": ("region", regions, None, None), "profile": (None, profiles, None, None)}
        super().__init__(session_vars=variables)

    def create_client(self, *names: Any, **settings: Any) -> Any:
        config: Any = settings.get("config") or AioConfig()
        if getattr(config, "http_session_cls", AIOHTTPSession) is AIOHTTPSession:  # SSO's is one of botocore
            config = AioConfig(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS).merge(config)
            config.http_session_cls = VerifiedHTTPSession
        settings["config"] = config
        return super().create_client(*names, **settings)


# -- endpoint ----------------------------------------------------------------------------------------------------------


@cache
def _loader() -> Loader:
    """The loader of botocore's descriptions of services, which remembers what it has parsed, for all sessions."""
    return cast(Loader, VerifiedSession().get_component("data_loader"))


class Endpoint(NamedTuple):
    """An address of DynamoDB; `in_aws` unless the URL of the store or the AWS configuration sets another than AWS's."""

    url: SplitResult
    region: str
    tls: ssl.SSLContext | None
    in_aws: bool


async def find_endpoint(region: str | None, endpoint: str | None) -> Endpoint:
    """The endpoint of a region and an address; None for those of the AWS configuration.

    Raises NoRegionError, another BotoCoreError, BadInput or OSError for invalid settings.
    """
    session = VerifiedSession()
    session.register_component("data_loader", _loader())
    session.set_credentials("none", "none")  # so that the client, which makes no call, searches for none
    region = region or session.get_config_variable("region")

    async def address(*, without_configuration: bool | None = None) -> str:
        # The client verifies no certificate since it reads none; reading those of authorities takes a while.
        async with aioboto3.Session(botocore_session=session).client(
            "dynamodb", region_name=region or DEFAULT_REGION, endpoint_url=endpoint, verify=False,
            config=AioConfig(ignore_configured_endpoint_urls=without_configuration),
        ) as aws:  # fmt: skip
            return aws.meta.endpoint_url

    try:
        found = await address()
        url = urlsplit(found)
        if url.scheme not in _PORTS or url.port == 0:  # a port that is no number is a ValueError
            raise ValueError(url.scheme)
    except ValueError:  # which may show a password
        raise BadInput("The endpoint of DynamoDB is no address of http or https; see docs/dynamodb.md.") from None
    in_aws = not endpoint and found == await address(without_configuration=True)
    if in_aws and not region:
        raise NoRegionError()
    if "@" in url.netloc:
        raise BadInput("The endpoint of DynamoDB has a user name or password, which no request uses; leave it out.")
    tls = verifying_context(session.get_config_variable("ca_bundle")) if url.scheme == "https" else None
    return Endpoint(url, region or DEFAULT_REGION, tls, in_aws)
