"""DynamoDB client: calls to one table, their retries, and the translation of their errors.

All calls are requests of our own (`credentials.py`, `http.py`), since botocore takes ten times as long to build one
(`docs/decisions/direct-calls.md`).
"""

import asyncio
import logging
import re
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Self

import msgspec
import orjson
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ConnectTimeoutError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
    SSLError,
)

from store.concurrency import RetryPolicy
from store.dynamodb.codec import INVALID_BODY, Answer, parse_answer
from store.dynamodb.credentials import REJECTED, SEARCH_ERRORS, Credentials, Signer, find_endpoint
from store.dynamodb.http import NOT_CONNECTED, Pool, Reply
from store.engine import COMMAND_PATIENCE, REQUEST_PATIENCE, CallStats, Patience
from store.errors import BadInput, NoTable, Unavailable, quantity

SILENT_SECONDS = 1.0  # a call that is cancelled after so long without a response counts as a timeout
SKEW_SECONDS = 240.0  # from which on a clock is wrong; DynamoDB accepts signatures of up to five minutes

# The delays are DynamoDB's own, from 50 ms on. Those of AWS's "standard" mode are up to 1 s, then 2, so that an engine
# that is down would cost a call seconds; its "adaptive" mode slows all trees down for the one that is throttled.
RETRIES = RetryPolicy(0.05, 20.0)  # as many attempts as `Patience` allows

IN_PROGRESS = "TransactionInProgressException"
"""The error code of a transaction of which an earlier attempt is still being carried out."""
UNKNOWN_OPERATION = frozenset({"UnknownOperationException", "NotImplemented", "InvalidAction"})
"""Error codes of engines that lack an operation."""
THROTTLED = frozenset({"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"})
"""Error codes of calls of which there are too many."""

logger = logging.getLogger("clade")

_TRANSIENT_STATUS = frozenset({429, 500, 502, 503, 504, 509})
# Of requests that were perhaps signed for another time than that of their arrival: those that AWS's own clients repeat.
_UNTIMELY = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
_PERHAPS_UNTIMELY = _UNTIMELY | {"AuthFailure", "InvalidSignatureException", "SignatureDoesNotMatch"}

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})
"""Reasons of OpenSSL, by its version, where the other side does not speak TLS."""

_UNITS = [(86_400, "day"), (3_600, "hour"), (60, "minute")]

# Messages of error codes.
_REASONS = {
    "AccessDeniedException": "may not be used with these credentials",
    "UnrecognizedClientException": "rejects the credentials",
    "MissingAuthenticationTokenException": "rejects the credentials",
    **dict.fromkeys(_PERHAPS_UNTIMELY, "rejects the credentials"),
    **dict.fromkeys(_UNTIMELY, "rejects the time of the requests; set the clock of this machine"),
    "ExpiredTokenException": "rejects the credentials, which have expired",
    **dict.fromkeys(THROTTLED, "is overloaded; try again"),
    "InternalServerError": "fails; try again",
    "ServiceUnavailable": "fails; try again",
    IN_PROGRESS: "is still carrying out this transaction; try again",
}

# Every response of DynamoDB to such a call has one of these members.
_MEMBERS = {
    "Query": {"Items", "Nodes", "Count"},
    "Scan": {"Items"},
    "BatchGetItem": {"Responses"},
    "DescribeTable": {"Table"},
    "DescribeTimeToLive": {"TimeToLiveDescription"},
    "DescribeContinuousBackups": {"ContinuousBackupsDescription"},
}


class Refused(Unavailable):
    """An error response; `name` is its code, `reasons` are the codes of a cancelled transaction, change by change.

    `is_untimely` is whether its request was perhaps signed for another time than DynamoDB's.
    """

    timed_out = False

    def __init__(self, message: str, name: str, status: int, reasons: list[str], *, is_untimely: bool) -> None:
        super().__init__(message)
        self.name = name
        self.reasons = reasons
        self.is_transient = name in THROTTLED or status in _TRANSIENT_STATUS
        self.is_uncertain = status >= 500 or name == IN_PROGRESS
        self.is_untimely = is_untimely


class Silent(Unavailable):
    """An attempt without a response, or with one that is not DynamoDB's.

    `is_transient` is whether another attempt may get one, `is_uncertain` whether DynamoDB may have received this one.
    """

    name = ""

    def __init__(self, message: str, *, is_transient: bool, is_uncertain: bool = True, timed_out: bool = False) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.is_uncertain = is_uncertain
        self.timed_out = timed_out


class Attempts:
    """The attempts of one call, or of all calls of one transaction.

    `uncertain` once an attempt ended without a response of DynamoDB that states its outcome. At most `limit` attempts
    fail, and `max_timeouts` of them by a timeout.
    """

    def __init__(self, limit: int, max_timeouts: int) -> None:
        self.uncertain = False
        self._limit = limit
        self._max_timeouts = max_timeouts
        self._failures = self._timeouts = 0
        self._pauses = RETRIES.pauses()
        self._answered_at = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last response of DynamoDB, or since the start."""
        return time.monotonic() - self._answered_at

    async def again(self, failure: Refused | Silent) -> bool:
        """Record a failed attempt, and wait for the next one; False where there is none."""
        self.uncertain |= failure.is_uncertain
        if isinstance(failure, Refused):
            self._answered_at = time.monotonic()
        if not failure.is_transient:
            return False
        self._failures += 1
        self._timeouts += failure.timed_out
        if self._failures >= self._limit or self._timeouts >= self._max_timeouts:
            return False
        await asyncio.sleep(next(self._pauses))
        return True


class CircuitBreaker:
    """Rejects calls to an engine that does not respond: opens after `FAILURES` successive calls without a response.

    While it is open, one call in `REST_SECONDS` is allowed as a probe, all others are rejected at once. Any response
    closes it, an error too. A call that succeeds after retries is a success.
    """

    FAILURES = 5
    REST_SECONDS = 1.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self.FAILURES

    def allows_call(self) -> bool:
        """Whether a call may be made now: the circuit is closed, or a probe is due."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + self.REST_SECONDS
        return True

    def record_response(self) -> None:
        """Record a call that got a response."""
        self._failures = 0

    def record_timeout(self) -> None:
        """Record a call without a response."""
        self._failures += 1
        if self._failures == self.FAILURES:
            self._next_probe = self._clock() + self.REST_SECONDS


Send = Callable[[ReadOnlyCredentials], Awaitable[Answer]]
"""One attempt of a call, with the credentials of its moment."""


class DynamoDBClient:
    """Calls to DynamoDB for one table, as an async context manager; `in_aws` once it is open and no other engine's."""

    _told_offset = 0.0  # the last offset of the clock that was logged, for all clients of the process

    def __init__(
        self, table: str, region: str | None, endpoint: str | None, patience: Patience = COMMAND_PATIENCE
    ) -> None:
        self.table = table
        self.in_aws = False
        self._region = region
        self._endpoint = endpoint
        self.calls = CallStats()
        self._pool: Pool | None = None
        self._patience = patience
        self._is_reached = False
        self._circuit = CircuitBreaker()
        self._clock_offset = 0.0  # seconds that DynamoDB's clock is ahead of this machine's
        self._date: str | None = None  # of the last response whose time was compared with this machine's

    async def __aenter__(self) -> Self:
        """Open the session, without a call; raises BadInput for invalid settings."""
        try:
            url, region, tls, self.in_aws = await find_endpoint(self._region, self._endpoint)
            self._credentials = Credentials(region, url.geturl())
            await self._credentials.search()
            self._signer, self._pool = Signer(url, region), Pool(url, self._patience, tls)
        except NoRegionError as error:
            raise BadInput(
                f"No AWS region is set; write dynamodb://{self.table}?region=REGION, or set AWS_REGION."
            ) from error
        except (BotoCoreError, ValueError, OSError) as error:
            reason = re.sub(r"//\S*@", "//", str(error))  # botocore shows addresses with their passwords
            raise BadInput(f"DynamoDB cannot be used with these settings: {reason}") from error
        self._url = url.geturl().rstrip("/")
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    async def call(
        self,
        operation: str,
        *,
        parse: Callable[[bytes], Answer] = parse_answer,
        attempts: Attempts | None = None,
        **parameters: object,
    ) -> Answer:
        """The response to one call; `parse` parses its body.

        `attempts` records each attempt. Raises NoTable, Refused for an error response, Unavailable without a response.
        """
        if self._pool is None:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        send = partial(self._attempt, self._pool, operation, parameters, parse)
        credentials = await self._valid_credentials()
        if not self._circuit.allows_call():
            self.calls.skipped += 1
            raise Unavailable("DynamoDB has not responded for a while; try again.")
        self.calls.made += 1
        attempts = attempts or self.new_attempts()
        try:
            answer = await self._repeat(send, credentials, attempts)
        except asyncio.CancelledError:
            if attempts.silent_seconds > SILENT_SECONDS:
                self._record_timeout()
            raise
        except Silent:
            self._record_timeout()
            raise
        except (Refused, NoTable):
            self._record_response()
            raise
        self._record_response()
        return answer

    def now(self) -> float:
        """The time in seconds since 1970, DynamoDB's where the clock of this machine is wrong."""
        return time.time() + self._clock_offset

    def new_attempts(self) -> Attempts:
        """The attempts of a call or a transaction; few before the first response, as the address may be wrong."""
        limit = self._patience.attempts if self._is_reached else REQUEST_PATIENCE.attempts
        return Attempts(limit, self._patience.timeouts)

    async def _repeat(self, send: Send, credentials: ReadOnlyCredentials, attempts: Attempts) -> Answer:
        """The response to `send`, which is called until it succeeds or may not be retried; raises its last failure."""
        corrected: set[bool] = set()  # the time of its signature (True), its credentials (False): once each
        while True:
            try:
                return await send(credentials)
            except (Refused, Silent) as failure:
                self.calls.throttled += failure.name in THROTTLED
                is_untimely = isinstance(failure, Refused) and failure.is_untimely
                if is_untimely not in corrected and (is_untimely or await self._renewed(failure.name, credentials)):
                    corrected.add(is_untimely)
                elif not await attempts.again(failure):
                    raise
            self.calls.retried += 1
            credentials = await self._valid_credentials()

    async def _renewed(self, code: str, credentials: ReadOnlyCredentials) -> bool:
        """Whether the error is a rejection of the credentials, and there are others."""
        return code in REJECTED and await self._credentials.renew(credentials)

    def _clock_is_wrong(self, reply: Reply, signed_at: float, offset: float) -> bool:
        """Whether the time that a request was signed for, this machine's and an offset, is not DynamoDB's.

        The next requests are then signed for DynamoDB's. The process may have been suspended before it sent the request
        or read the response, so the date of the response may be any between. A date is that of a second, so of all
        responses of one only the first and the errors are looked at.
        """
        text = reply.headers.get("date", "")
        if text == self._date and reply.status == 200:
            return False
        self._date = text
        try:
            date = parsedate_to_datetime(text).timestamp()
        except ValueError:  # it is missing or no date
            return False
        now = time.time()
        if signed_at - SKEW_SECONDS < date < now + offset + SKEW_SECONDS:
            return False
        self._clock_offset = date - now
        if abs(self._clock_offset - DynamoDBClient._told_offset) > SKEW_SECONDS:
            DynamoDBClient._told_offset = self._clock_offset
            if abs(self._clock_offset) > SKEW_SECONDS:  # else somebody has set the clock
                logger.warning(
                    "The clock of this machine is %s %s DynamoDB's, whose time is used; set the clock.",
                    _duration(abs(self._clock_offset)),
                    "behind" if self._clock_offset > 0 else "ahead of",
                )
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
            return await self._credentials.current()
        except NoCredentialsError as error:
            raise Unavailable(
                "DynamoDB needs AWS credentials, and none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE; see docs/dynamodb.md."
            ) from error
        except SEARCH_ERRORS as error:
            name = type(error).__name__
            raise Unavailable(f"The AWS credentials cannot be obtained ({name}); try again.") from error

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _attempt(
        self,
        pool: Pool,
        operation: str,
        parameters: dict[str, Any],
        parse: Callable[[bytes], Answer],
        credentials: ReadOnlyCredentials,
    ) -> Answer:
        """Raises NoTable, Refused or Silent."""
        offset = self._clock_offset
        signed_at = self.now()
        try:
            request = self._signer.request(operation, orjson.dumps(parameters), credentials, signed_at)
            reply = await pool.post(request)
            sent = reply.headers.get("x-amz-crc32")
            if sent is not None and sent != (found := str(zlib.crc32(reply.body))):
                raise ChecksumError(checksum_type="crc32", expected_checksum=sent, actual_checksum=found)
        except BotoCoreError as error:
            raise self._silence(error) from error
        is_untimely = self._clock_is_wrong(reply, signed_at, offset)
        if reply.status != 200:
            raise self._error_of(reply, is_untimely=is_untimely)
        try:
            answer = parse(reply.body)
        except INVALID_BODY as error:
            raise self._foreign(f"no JSON of its kind: {error}") from error
        if operation in _MEMBERS and not _MEMBERS[operation] & answer.keys():
            raise self._foreign(f"{operation} without {' or '.join(sorted(_MEMBERS[operation]))}")
        return answer

    def _silence(self, error: BotoCoreError) -> Silent:
        """The failure of an attempt without a response."""
        message = f"DynamoDB does not respond at {self._url} ({type(error).__name__}); try again."
        if isinstance(error, SSLError):
            reason = error.kwargs["error"]
            message = f"TLS with {self._url} fails ({reason}); try again."
            if isinstance(reason, ssl.SSLCertVerificationError):
                message = f"The TLS certificate of {self._url} is rejected ({reason}); see AWS_CA_BUNDLE."
            elif getattr(reason, "reason", None) in _NO_TLS:
                message = f"{self._url} speaks HTTP without TLS; write http:// in the endpoint, or use another port."
        timed_out = isinstance(error, ConnectTimeoutError | ReadTimeoutError)
        is_sent = not isinstance(error, NOT_CONNECTED)
        return Silent(message, is_transient=True, is_uncertain=is_sent, timed_out=timed_out)

    def _foreign(self, reason: str, status: int = 200) -> Silent:
        """The failure of an attempt whose response is not DynamoDB's."""
        message = f"The response of {self._url} is not DynamoDB's ({reason})."
        return Silent(message, is_transient=status in _TRANSIENT_STATUS)

    def _error_of(self, reply: Reply, *, is_untimely: bool) -> Refused | NoTable | Silent:
        """The failure that an error response tells."""
        try:
            error = _parse_error(reply.body)
        except INVALID_BODY:
            error = _ErrorBody()
        if not error.code:
            return self._foreign(f"HTTP status {reply.status}", reply.status)
        name = error.code.partition(":")[0].rpartition("#")[2]
        if name == "ResourceNotFoundException":
            command = "clade table create, for the same CLADE_STORE or --store"
            return NoTable(f'There is no table "{self.table}"; create it with: {command}')
        reason = _REASONS.get(name, f"cannot be used now ({name})")
        message = f'The table "{self.table}" {reason}.'
        if "credentials" in reason:
            source, region = self._credentials.source, self._credentials.region
            message += f" They come from {source}, and were sent to {self._url} in {region}; check all three."
        reasons = [one.Code or "" for one in error.CancellationReasons or ()]
        is_untimely = name in _PERHAPS_UNTIMELY or (is_untimely and name in REJECTED)  # the only code of some engines
        return Refused(message, name, reply.status, reasons, is_untimely=is_untimely)


def _duration(seconds: float) -> str:
    """`10 minutes`, `3 hours`, `365 days`: in the largest unit of which there are at least two."""
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= 2 * unit), _UNITS[-1])
    return quantity(round(seconds / unit), name)


class _Reason(msgspec.Struct):
    Code: str | None = None


class _ErrorBody(msgspec.Struct):
    """The body of an error response."""

    code: str | None = msgspec.field(name="__type", default=None)
    CancellationReasons: list[_Reason] | None = None


_parse_error = msgspec.json.Decoder(_ErrorBody).decode
