"""AWS credentials of the requests to DynamoDB, of every kind that botocore finds.

botocore refreshes those that expire. Other changes it does not notice: a file with another session, a role whose
sessions were revoked, a wrong clock. DynamoDB then rejects the requests, and the credentials are searched again.
"""

import asyncio
import time
from urllib.parse import urlsplit

import aiohttp
from aiobotocore.credentials import AioCredentials
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from botocore.parsers import ResponseParserError

from store.dynamodb.aws.tls import VerifiedSession

SEARCH_SECONDS = 5.0  # between two searches anew, which read files and may send requests

# Error codes of requests that are signed with credentials that are no longer valid.
REJECTED = frozenset({"ExpiredTokenException", "UnrecognizedClientException"})

# Errors of a provider: of AWS, the network, a program, a response that cannot be parsed or lacks something.
SEARCH_ERRORS = (
    BotoCoreError, ClientError, ResponseParserError, aiohttp.ClientError, OSError, RuntimeError, ValueError, KeyError,
)  # fmt: skip


class SessionCredentials(AioCredentials):
    """The credentials of one client; botocore and the direct calls get them by `get_frozen_credentials`.

    `region` and `endpoint` are those of the client, None for those of the AWS configuration. An engine on this machine
    gets dummy credentials where there are none.
    """

    def __init__(self, region: str | None, endpoint: str | None) -> None:
        self.method = "clade"
        self._region = region
        self._endpoint = endpoint
        self._found: AioCredentials | None = None
        self._searched_at = -SEARCH_SECONDS
        self._lock = asyncio.Lock()

    async def load_credentials(self) -> "SessionCredentials":
        """Search for the session of a client, of which this is the credential provider; raises SEARCH_ERRORS."""
        self._found = await _find(self._region, self._endpoint)
        return self

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:  # type: ignore[override]  # not so in the stubs
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

    async def get_account_id(self) -> str | None:  # type: ignore[override]  # either is accepted
        return (await self.get_frozen_credentials()).account_id

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
