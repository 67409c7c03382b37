"""DynamoDB client: calls to one table, their retries, and the translation of their errors.

Reads and writes of data are requests of our own (`signature.py`, `http_connection.py`): botocore takes ten times as
long to build one. Calls that create or describe the table go by a client of aioboto3. Both have the same retries.
"""

import asyncio
import contextlib
import logging
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Self, cast
from urllib.parse import urlsplit

import aiohttp
import httptools
import msgspec
import orjson
from aiobotocore.config import AioConfig
from botocore import xform_name
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from store.dynamodb.aws_session import (
    REJECTED,
    SEARCH_ERRORS,
    Credentials,
    make_client,
    open_session,
    verifying_context,
)
from store.dynamodb.codec import INVALID_BODY, Answer, parse_answer
from store.dynamodb.http_connection import NotConnected, Pool, Reply
from store.dynamodb.retries import THROTTLED, Attempts, CircuitBreaker, Refused, RetryQuota, Silent
from store.dynamodb.signature import Signer
from store.engine.protocol import COMMAND_PATIENCE, REQUEST_PATIENCE, Patience
from store.engine.usage import CallStats
from store.errors import BadInput, NoTable, Unavailable

CONNECTIONS = 64
SILENT_SECONDS = 1.0  # a call that is cancelled after so long without a response counts as a timeout
SKEW_SECONDS = 240.0  # of the clock, from which on a rejected signature is taken for one of a wrong time

logger = logging.getLogger("clade")

_ADMINISTRATION = frozenset({
    "CreateTable", "DescribeContinuousBackups", "DescribeTable", "DescribeTimeToLive", "ListTagsOfResource",
    "UpdateContinuousBackups", "UpdateTimeToLive",
})  # fmt: skip
"""The operations that go by aioboto3."""
_OF_A_WRONG_TIME = frozenset({
    "InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed",
})  # fmt: skip
_NO_CREDENTIALS = ReadOnlyCredentials("none", "none", None)

# Messages of error codes.
_REASONS = {
    "AccessDeniedException": "may not be used with these credentials",
    "UnrecognizedClientException": "rejects the credentials",
    "InvalidSignatureException": "rejects the credentials",
    "MissingAuthenticationTokenException": "rejects the credentials",
    "ExpiredTokenException": "rejects the credentials, which have expired",
    **dict.fromkeys(THROTTLED, "is overloaded; try again"),
    "InternalServerError": "fails; try again",
    "ServiceUnavailable": "fails; try again",
    "TransactionInProgressException": "is still carrying out this transaction; try again",
}

# Every response of DynamoDB to such a call has one of these members.
_MEMBERS = {
    "Query": {"Items", "Nodes", "Count"},
    "Scan": {"Items"},
    "BatchGetItem": {"Responses"},
    "CreateTable": {"TableDescription"},
    "DescribeTable": {"Table"},
    "DescribeTimeToLive": {"TimeToLiveDescription"},
    "DescribeContinuousBackups": {"ContinuousBackupsDescription"},
}


class DynamoDBClient:
    """Calls to DynamoDB for one table, as an async context manager."""

    def __init__(
        self, table: str, region: str | None, endpoint: str | None, patience: Patience = COMMAND_PATIENCE
    ) -> None:
        self.table = table
        self.region = region
        self.endpoint = endpoint
        self.calls = CallStats()
        self._opened = contextlib.AsyncExitStack()
        self._pool: Pool | None = None
        self._patience = patience
        self._is_reached = False
        self._credentials = Credentials(region, endpoint)
        self._circuit = CircuitBreaker()
        self._quota = RetryQuota()
        self._clock_offset = 0.0  # seconds that DynamoDB's clock is ahead of this machine's
        self._admin: tuple[ReadOnlyCredentials, Any] | None = None

    async def __aenter__(self) -> Self:
        """Open the session, without a call; raises BadInput for invalid settings."""
        session = open_session()
        try:
            region = self.region or session.get_config_variable("region") or ("us-east-1" if self.endpoint else None)
            if region is None:
                raise BadInput(f"No AWS region is set; write dynamodb://{self.table}?region=REGION.")
            self._region = region
            await self._credentials.search()
            self.url = self.endpoint or (await self._administration(_NO_CREDENTIALS)).meta.endpoint_url
            url = urlsplit(self.url)
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError(f"{self.url} is not the URL of an endpoint")
            tls = verifying_context(session.get_config_variable("ca_bundle")) if url.scheme == "https" else None
            self._signer = Signer(url, region)
            self._pool = Pool(url, CONNECTIONS, self._patience.connect_seconds, self._patience.read_seconds, tls)
        except (BotoCoreError, ValueError, OSError) as error:
            await self._opened.aclose()
            raise BadInput(f"DynamoDB cannot be used with these settings: {error}") from error
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        self._admin = None
        await self._opened.aclose()

    async def call(
        self,
        operation: str,
        *,
        parse: Callable[[bytes], Answer] = parse_answer,
        attempts: Attempts | None = None,
        **parameters: object,
    ) -> Answer:
        """The response to one call; `parse` parses its body where it is a read or a write of data.

        `attempts` records each attempt. Raises NoTable, Refused for an error response, Unavailable without a response.
        """
        if self._pool is None:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if operation in _ADMINISTRATION:
            send: Send = partial(self._administer, operation, parameters)
        else:
            send = partial(self._post, self._pool, operation, orjson.dumps(parameters), parse)
        credentials = await self._valid_credentials()
        if not self._circuit.allows_call():
            self.calls.skipped += 1
            raise Unavailable("DynamoDB has not responded for a while; try again.")
        self.calls.made += 1
        attempts = attempts or self.new_attempts()
        try:
            answer = await self._repeat(send, credentials, attempts)
            if operation in _MEMBERS and not _MEMBERS[operation] & answer.keys():
                raise self._foreign(f"{operation} without {' or '.join(sorted(_MEMBERS[operation]))}")
        except asyncio.CancelledError:
            if attempts.silent_seconds > SILENT_SECONDS:
                self._record_timeout()
            raise
        except Silent:
            self._record_timeout()
            raise
        except Refused as error:
            self._record_response()
            if error.name == "ResourceNotFoundException":
                command = "clade table create, for the same CLADE_STORE or --store"
                raise NoTable(f'There is no table "{self.table}"; create it with: {command}') from error
            raise
        attempts.succeeded()
        self._record_response()
        return answer

    def new_attempts(self) -> Attempts:
        """The attempts of a call or a transaction; few before the first response, as the address may be wrong."""
        limit = self._patience.attempts if self._is_reached else REQUEST_PATIENCE.attempts
        return Attempts(self._quota, limit, self._patience.timeouts)

    async def _repeat(self, send: "Send", credentials: ReadOnlyCredentials, attempts: Attempts) -> Answer:
        """The response to `send`, which is called until it succeeds or may not be retried; raises its last failure."""
        is_corrected = False
        while True:
            try:
                return await send(credentials)
            except (Refused, Silent) as failure:
                self.calls.throttled += failure.is_throttled
                if not is_corrected and isinstance(failure, Refused) and await self._correct(failure, credentials):
                    is_corrected = True
                elif not await attempts.again(failure):
                    raise
            self.calls.retried += 1
            credentials = await self._valid_credentials()

    async def _correct(self, refused: Refused, credentials: ReadOnlyCredentials) -> bool:
        """Whether a rejected request can be signed in another way: with other credentials, or for DynamoDB's time."""
        if refused.name in REJECTED:
            return await self._credentials.renew(credentials)
        if refused.name not in _OF_A_WRONG_TIME or abs(refused.date - refused.signed_at) < SKEW_SECONDS:
            return False
        offset = refused.date - time.time()
        if abs(offset - self._clock_offset) > SKEW_SECONDS:  # else another call has corrected it
            logger.warning(
                "The clock of this machine differs by %.0f s from DynamoDB's; requests use its time.", offset
            )
            self._clock_offset = offset
        return True

    def _record_response(self) -> None:
        self._is_reached = True
        self._circuit.record_response()
        self.calls.is_silent = False

    def _record_timeout(self) -> None:
        self.calls.failed += 1
        self._circuit.record_timeout()
        self.calls.is_silent = self._circuit.is_open

    async def _valid_credentials(self) -> ReadOnlyCredentials:
        """The credentials of this moment; called before each attempt, since they rotate."""
        try:
            return await self._credentials.frozen()
        except NoCredentialsError as error:
            raise Unavailable("DynamoDB needs AWS credentials, and none were found; see docs/dynamodb.md.") from error
        except SEARCH_ERRORS as error:
            name = type(error).__name__
            raise Unavailable(f"The AWS credentials cannot be obtained ({name}); try again.") from error

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _post(
        self,
        pool: Pool,
        operation: str,
        body: bytes,
        parse: Callable[[bytes], Answer],
        credentials: ReadOnlyCredentials,
    ) -> Answer:
        """Read or write data."""
        signed_at = time.time() + self._clock_offset
        try:
            request = self._signer.request(operation, body, credentials, signed_at)
        except ValueError as error:
            raise Unavailable(f"The AWS credentials cannot be used: {error}") from error
        try:
            reply = await pool.post(request)
            checksum = reply.headers.get("x-amz-crc32")
            if checksum is not None and checksum != str(zlib.crc32(reply.body)):
                raise ConnectionError("The checksum of the response is wrong.")
        except (OSError, httptools.HttpParserError) as error:
            raise self._silence(error) from error
        if reply.status != 200:
            raise self._error_of(reply, signed_at)
        try:
            return parse(reply.body)
        except INVALID_BODY as error:
            raise self._foreign(f"no JSON of its kind: {error}") from error

    def _silence(self, error: Exception) -> Silent:
        """The failure of an attempt without a response."""
        was_sent = not isinstance(error, NotConnected)
        cause = error if was_sent else error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            return self._rejects_certificate(cause)
        name = type(cause).__name__
        return Silent(
            f"DynamoDB does not respond at {self.url.rstrip('/')} ({name}); try again.",
            is_transient=True, was_sent=was_sent,
            timed_out=isinstance(cause, TimeoutError | ReadTimeoutError | ConnectTimeoutError),
        )  # fmt: skip

    def _rejects_certificate(self, error: object) -> Silent:
        return Silent(
            f"The TLS certificate of {self.url.rstrip('/')} is rejected ({error}); see AWS_CA_BUNDLE.",
            is_transient=False, was_sent=False,
        )  # fmt: skip

    def _foreign(self, reason: str, status: int = 200) -> Silent:
        return Silent.of_status(f"The response of {self.url.rstrip('/')} is not DynamoDB's ({reason}).", status)

    def _error_of(self, reply: Reply, signed_at: float) -> Refused | Silent:
        try:
            error = _parse_error(reply.body)
        except INVALID_BODY:
            error = _ErrorBody()
        if not error.code:
            return self._foreign(f"HTTP status {reply.status}", reply.status)
        name = error.code.rpartition("#")[2].partition(":")[0]
        refused = self._refused(name, reply.status, [reason.Code or "" for reason in error.CancellationReasons or ()])
        with contextlib.suppress(ValueError):  # raised where there is no valid date
            refused.signed_at = signed_at
            refused.date = parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
        return refused

    def _refused(self, name: str, status: int, reasons: list[str]) -> Refused:
        reason = _REASONS.get(name, f"cannot be used now ({name})")
        return Refused(f'The table "{self.table}" {reason}.', name, status, reasons)

    async def _administer(self, operation: str, parameters: dict[str, Any], credentials: ReadOnlyCredentials) -> Answer:
        """Create or describe the table."""
        try:
            client = await self._administration(credentials)
            # botocore's own timeouts are those of single bytes.
            async with asyncio.timeout(self._patience.connect_seconds + self._patience.read_seconds):
                return cast(Answer, await getattr(client, xform_name(operation))(**parameters))
        except ClientError as error:
            name = error.response["Error"]["Code"]
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if name.isdigit():  # botocore uses the HTTP status where a response has none
                raise self._foreign(f"HTTP status {name}", status) from error
            raise self._refused(name, status, []) from error
        except SSLError as error:
            cause = error.kwargs.get("error")
            raise self._rejects_certificate(getattr(cause, "certificate_error", cause)) from error
        except ResponseParserError as error:
            raise self._foreign("no JSON of its kind") from error
        except (BotoCoreError, aiohttp.ClientError, OSError) as error:
            raise self._silence(error) from error

    async def _administration(self, credentials: ReadOnlyCredentials) -> Any:
        """The client of aioboto3 with these credentials."""
        if self._admin is None or self._admin[0] != credentials:
            client = make_client(
                open_session(), self.endpoint,
                region_name=self._region,
                aws_access_key_id=credentials.access_key,
                aws_secret_access_key=credentials.secret_key,
                aws_session_token=credentials.token,
                config=AioConfig(
                    user_agent="clade",
                    parameter_validation=False,
                    connect_timeout=self._patience.connect_seconds,
                    read_timeout=self._patience.read_seconds,
                    retries={"mode": "standard", "total_max_attempts": 1},  # `retries.py` has the others
                ),
            )  # fmt: skip
            self._admin = credentials, await self._opened.enter_async_context(client)
        return self._admin[1]


Send = Callable[[ReadOnlyCredentials], Awaitable[Answer]]


class _Reason(msgspec.Struct):
    Code: str | None = None


class _ErrorBody(msgspec.Struct):
    """The body of an error response."""

    code: str | None = msgspec.field(name="__type", default=None)
    CancellationReasons: list[_Reason] | None = None


_parse_error = msgspec.json.Decoder(_ErrorBody).decode
