"""DynamoDB client: session, calls, and translation of errors.

aioboto3 makes the client, one of aiobotocore, whose version it pins (`docs/decisions/aioboto3.md`). botocore finds
endpoints and credentials, and retries. A parser for successful responses replaces its own, which takes nine tenths of
the time of a large Query; and Query and BatchGetItem are sent past it (`store/dynamodb/fast_reads.py`).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, NoReturn, Self, cast

import aioboto3
import aiohttp
import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.parsers import AioJSONParser, AioResponseParserFactory
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError, NoRegionError, SSLError
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError
from botocore.session import Session as BotocoreSession

from store.dynamodb.attempts import Attempts, is_from_dynamodb
from store.dynamodb.aws.credentials import REJECTED, SEARCH_ERRORS, SessionCredentials
from store.dynamodb.aws.tls import VerifiedSession
from store.dynamodb.circuit_breaker import CircuitBreaker
from store.dynamodb.codec import INVALID_BODY, Answer, parse_answer
from store.dynamodb.fast_reads import FastReads
from store.engine import COMMAND_PATIENCE, REQUEST_PATIENCE, CallStats, Patience
from store.errors import BadInput, NoTable, Unavailable

CONNECTIONS = 64
SILENT_SECONDS = 1.0  # a call that is cancelled after so long without a response counts as a timeout

_HOT = frozenset({"query", "batch_get_item"})
_ATTEMPTS: ContextVar[Attempts] = ContextVar("attempts")


class Refused(Unavailable):
    """An error response; `name` is its code, `reasons` are the codes of a cancelled transaction, change by change."""

    def __init__(self, message: str, name: str, reasons: list[str]) -> None:
        super().__init__(message)
        self.name = name
        self.reasons = reasons


# Messages of error codes.
_REASONS = {
    "AccessDeniedException": "may not be used with these credentials",
    "UnrecognizedClientException": "rejects the credentials",
    "InvalidSignatureException": "rejects the credentials",
    "MissingAuthenticationTokenException": "rejects the credentials",
    "ExpiredTokenException": "rejects the credentials, which have expired",
    "ProvisionedThroughputExceededException": "is overloaded; try again",
    "RequestLimitExceeded": "is overloaded; try again",
    "ThrottlingException": "is overloaded; try again",
    "InternalServerError": "fails; try again",
    "ServiceUnavailable": "fails; try again",
    "TransactionInProgressException": "is still carrying out this transaction; try again",
}

UNKNOWN_OPERATION = frozenset({"UnknownOperationException", "NotImplemented", "InvalidAction"})
"""Error codes of engines that lack an operation."""

_THROTTLED = frozenset({"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"})

# Every response of DynamoDB to such a call has one of these members.
_MEMBERS = {
    "query": {"Items", "Nodes", "Count"},
    "scan": {"Items"},
    "batch_get_item": {"Responses"},
    "describe_table": {"Table"},
    "describe_time_to_live": {"TimeToLiveDescription"},
    "describe_continuous_backups": {"ContinuousBackupsDescription"},
}


class DynamoDBClient:
    """Calls to DynamoDB for one table, as an async context manager."""

    def __init__(
        self, table: str, region: str | None, endpoint: str | None, patience: Patience = COMMAND_PATIENCE
    ) -> None:
        self.table = table
        self.region = region
        self.endpoint = endpoint
        self._opened = contextlib.AsyncExitStack()
        self._client: Any = None
        self._patience = patience
        self._is_reached = False
        self._credentials = SessionCredentials(region, endpoint)
        self._fast_reads: FastReads | None = None
        self._circuit = CircuitBreaker()
        self.calls = CallStats()

    async def __aenter__(self) -> Self:
        """Open the session, without a call; raises BadInput for invalid settings."""
        try:
            session = VerifiedSession()
            session.register_component("data_loader", _loader())
            session.register_component("credential_provider", self._credentials)
            session.register_component("response_parser_factory", _ParserFactory())
            await session.get_credentials()
            region = self.region or session.get_config_variable("region") or ("us-east-1" if self.endpoint else None)
            settings: dict[str, Any] = {"config": _config(self._make_fast_reads, self._patience)}
            if self.endpoint and self.endpoint.lower().startswith("http://"):
                settings["verify"] = False  # it needs no certificates, which take a while
            aws = aioboto3.Session(botocore_session=session)
            client = aws.client("dynamodb", region_name=region, endpoint_url=self.endpoint, **settings)
            self._client = await self._opened.enter_async_context(client)
            self._client.meta.events.register_first("needs-retry.dynamodb", self._record_attempt)
        except NoRegionError as error:
            raise BadInput(f"No AWS region is set; write dynamodb://{self.table}?region=REGION.") from error
        except (BotoCoreError, ValueError) as error:  # a ValueError: the endpoint is no URL
            raise BadInput(f"DynamoDB cannot be used with these settings: {error}") from error
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._opened.aclose()
        self._client = None

    async def call(
        self,
        operation: str,
        *,
        parse: Callable[[bytes], Answer] = parse_answer,
        attempts: Attempts | None = None,
        **parameters: object,
    ) -> Answer:
        """The response to one call; `parse` parses its body where the call is made directly.

        `attempts` records each attempt. Raises NoTable, Refused for an error response, Unavailable without a response.
        """
        if self._client is None:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        credentials = await self._valid_credentials()
        if not self._circuit.allows_call():
            self.calls.skipped += 1
            raise Unavailable("DynamoDB has not responded for a while; try again.")
        self.calls.made += 1
        attempts = attempts or self.new_attempts()
        token = _ATTEMPTS.set(attempts)
        try:
            response = await self._respond(partial(self._send, operation, parameters, parse), credentials)
            if operation in _MEMBERS and not _MEMBERS[operation] & response.keys():
                raise _NotDynamoDB(error=f"{operation} without {' or '.join(sorted(_MEMBERS[operation]))}")
        except asyncio.CancelledError:
            if attempts.silent_seconds > SILENT_SECONDS:
                self._record_timeout()
            raise
        except (ClientError, BotoCoreError, ResponseParserError, aiohttp.ClientError, OSError) as error:
            self._raise(error, attempts)
        finally:
            _ATTEMPTS.reset(token)
        self._record_response()
        return response

    def new_attempts(self) -> Attempts:
        """The attempts of a call or a transaction; few before the first response, as the address may be wrong."""
        limit = self._patience.attempts if self._is_reached else REQUEST_PATIENCE.attempts
        return Attempts(limit, self._patience.timeouts)

    def _raise(self, error: Exception, attempts: Attempts) -> NoReturn:
        """Raise the error of the store for one of botocore."""
        if isinstance(error, ClientError):
            code = error.response["Error"]["Code"]
            if is_from_dynamodb(code):
                self._record_response()
                raise self._refusal(error, code) from error
            error = _NotDynamoDB(error=f"HTTP status {code}")
        attempts.ended(error)
        self._record_timeout()
        where = getattr(error, "kwargs", {}).get("endpoint_url", self._client.meta.endpoint_url).rstrip("/")
        if isinstance(error, SSLError):
            cause = error.kwargs.get("error")
            reason = getattr(cause, "certificate_error", cause)
            raise Unavailable(f"The TLS certificate of {where} is rejected ({reason}); see AWS_CA_BUNDLE.") from error
        if isinstance(error, _NotDynamoDB):
            raise Unavailable(f"The response of {where} is not DynamoDB's ({error.kwargs['error']}).") from error
        raise Unavailable(f"DynamoDB does not respond at {where} ({type(error).__name__}); try again.") from error

    def _record_response(self) -> None:
        self._is_reached = True
        self._circuit.record_response()
        self.calls.is_silent = False

    def _record_timeout(self) -> None:
        self.calls.failed += 1
        self._circuit.record_timeout()
        self.calls.is_silent = self._circuit.is_open

    async def _valid_credentials(self) -> ReadOnlyCredentials:
        """The credentials of this moment; called before each call, since they rotate."""
        try:
            return await self._credentials.get_frozen_credentials()
        except NoCredentialsError as error:
            raise Unavailable("DynamoDB needs AWS credentials, and none were found; see docs/dynamodb.md.") from error
        except SEARCH_ERRORS as error:
            name = type(error).__name__
            raise Unavailable(f"The AWS credentials cannot be obtained ({name}); try again.") from error

    async def _respond(
        self, send: Callable[[ReadOnlyCredentials], Awaitable[Answer]], credentials: ReadOnlyCredentials
    ) -> Answer:
        """The response to `send`, which is sent once more with new credentials if these are rejected."""
        try:
            return await send(credentials)
        except ClientError as error:
            if error.response["Error"]["Code"] not in REJECTED or not await self._credentials.renew(credentials):
                raise
        return await send(await self._valid_credentials())

    async def _send(
        self,
        operation: str,
        parameters: dict[str, Any],
        parse: Callable[[bytes], Answer],
        credentials: ReadOnlyCredentials,
    ) -> Answer:
        call = partial(getattr(self._client, operation), **parameters)
        if self._fast_reads is not None and operation in _HOT:
            return await self._fast_reads.call(operation, parameters, credentials, call, parse)
        return cast(Answer, await call())

    def _record_attempt(self, response: Any, attempts: int, caught_exception: Exception | None, **_: object) -> None:
        """botocore's event after each attempt; `response` is None where none came."""
        self.calls.retried += attempts > 1
        if response is None:
            if caught_exception is not None:
                _ATTEMPTS.get().failed(caught_exception)
            return
        code = response[1].get("Error", {}).get("Code", "")
        self.calls.throttled += code in _THROTTLED
        _ATTEMPTS.get().answered(response[0].status_code, code)

    def _make_fast_reads(self, **settings: Any) -> FastReads:
        self._fast_reads = FastReads(**settings)
        return self._fast_reads

    def _refusal(self, error: ClientError, code: str) -> Unavailable:
        if code == "ResourceNotFoundException":
            command = "clade table create, for the same CLADE_STORE or --store"
            return NoTable(f'There is no table "{self.table}"; create it with: {command}')
        reasons = [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
        reason = _REASONS.get(code, f"cannot be used now ({code})")
        return Refused(f'The table "{self.table}" {reason}.', code, reasons)


class _NotDynamoDB(HTTPClientError):
    """A response that cannot be DynamoDB's; `error` is the reason."""


class _Reason(msgspec.Struct):
    Code: str | None = None


class _ErrorBody(msgspec.Struct):
    """What botocore and `_refusal` take from the body of an error response, by the types that they expect."""

    code: str | None = msgspec.field(name="__type", default=None)
    message: str | None = None
    Message: str | None = None
    CancellationReasons: list[_Reason] | None = None


class _Parser(AioJSONParser):
    """Parses successful responses; errors, and so retries, are left to botocore, if they are DynamoDB's."""

    async def _do_parse(self, response: dict[str, Any], shape: object) -> Answer:
        try:
            return parse_answer(response["body"])
        except INVALID_BODY as error:
            raise _NotDynamoDB(error=f"no JSON of its kind: {error}") from error

    def _is_generic_error_response(self, response: dict[str, Any]) -> bool:
        """Whether its status is all that is known: botocore expects any other body to be an error of DynamoDB."""
        try:
            _parse_error(response["body"] or b"{}")
        except INVALID_BODY:
            return True
        return bool(super()._is_generic_error_response(response))  # type: ignore[misc]  # untyped


class _ParserFactory(AioResponseParserFactory):
    def create_parser(self, protocol_name: str) -> Any:
        return _PARSER if protocol_name == "json" else super().create_parser(protocol_name)


_PARSER = _Parser()
_parse_error = msgspec.json.Decoder(_ErrorBody).decode


@cache
def _loader() -> Loader:
    """The loader of botocore's descriptions of services, which remembers what it has parsed, for all sessions."""
    return cast(Loader, BotocoreSession().get_component("data_loader"))


def _config(make_http_session: Callable[..., AIOHTTPSession], patience: Patience) -> AioConfig:
    return AioConfig(
        http_session_cls=cast(Any, make_http_session),  # any callable that returns one
        user_agent="clade",  # botocore would build its own for each call
        parameter_validation=False,
        connect_timeout=patience.connect_seconds,
        read_timeout=patience.read_seconds,
        max_pool_connections=CONNECTIONS,
        # The mode whose delays are DynamoDB's own, from 50 ms on. "standard" waits up to 1 s, then 2, so that an engine
        # that is down costs a call seconds; "adaptive" slows all trees down for the one that is throttled.
        retries={"mode": "legacy", "total_max_attempts": patience.attempts},
    )
