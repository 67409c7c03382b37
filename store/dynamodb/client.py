"""A connection to DynamoDB: its session, the calls, and what their failures mean.

botocore knows endpoints, credentials, errors and when to try again; what it would spend on walking answers by their
shapes, nine tenths of a large Query, is saved by a parser of our own for the answers that succeed, and what it would
spend on making requests by direct calls of the reads that are hot (`store/dynamodb/fast_reads.py`).
"""

import asyncio
import contextlib
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self, cast
from urllib.parse import urlsplit

import aioboto3
import aiohttp
import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.parsers import AioJSONParser, AioResponseParserFactory
from aiobotocore.session import AioSession
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from store.dynamodb.attempts import Attempts, is_from_dynamodb
from store.dynamodb.circuit_breaker import CircuitBreaker
from store.dynamodb.codec import Answer, parse_answer
from store.dynamodb.fast_reads import FastReads
from store.dynamodb.tls import VerifiedSession
from store.engine.call_stats import CallStats
from store.errors import BadInput, NoTable, Unavailable

CONNECTIONS = 64
CONNECT_SECONDS = 2
READ_SECONDS = 4  # two attempts that time out fit into a request
SILENT_SECONDS = 1.0  # a call that is cancelled after so long without an answer counts as one without any
ATTEMPTS = 5  # for a call that meets a 5xx, throttling or a lost connection

_HOT = frozenset({"query", "batch_get_item"})
_ATTEMPTS: ContextVar[Attempts] = ContextVar("attempts")


class Refused(Unavailable):
    """DynamoDB said no; `name` is the wire's for it, `reasons` those of a transaction, change by change."""

    def __init__(self, message: str, name: str, reasons: list[str]) -> None:
        super().__init__(message)
        self.name = name
        self.reasons = reasons


# What the error names of the wire mean.
_REASONS = {
    "AccessDeniedException": "may not be used with these credentials",
    "UnrecognizedClientException": "refuses the credentials",
    "InvalidSignatureException": "refuses the credentials",
    "MissingAuthenticationTokenException": "refuses the credentials",
    "ExpiredTokenException": "refuses the credentials, which have run out",
    "ProvisionedThroughputExceededException": "is overloaded; try again",
    "RequestLimitExceeded": "is overloaded; try again",
    "ThrottlingException": "is overloaded; try again",
    "InternalServerError": "fails; try again",
    "ServiceUnavailable": "fails; try again",
    "TransactionInProgressException": "is still at work on this transaction; try again",
}

_THROTTLED = frozenset({"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"})

# Of each of these every answer of DynamoDB has one of these members.
_MEMBERS = {
    "query": {"Items", "Nodes", "Count"},
    "scan": {"Items"},
    "batch_get_item": {"Responses"},
    "describe_table": {"Table"},
    "describe_time_to_live": {"TimeToLiveDescription"},
    "describe_continuous_backups": {"ContinuousBackupsDescription"},
}


class DynamoDBClient:
    """Calls of one table, for as long as it is open."""

    def __init__(self, table: str, region: str | None, endpoint: str | None) -> None:
        self.table = table
        self.region = region
        self.endpoint = endpoint
        self._opened = contextlib.AsyncExitStack()
        self._client: Any = None
        self._credentials: Any = None
        self._direct: FastReads | None = None
        self._circuit = CircuitBreaker()
        self.calls = CallStats()

    async def __aenter__(self) -> Self:
        """Makes no call yet; raises BadInput where the settings cannot be meant."""
        try:
            session = await _session(self.endpoint)
            region = self.region or session.get_config_variable("region") or ("us-east-1" if self.endpoint else None)
            self._credentials = await session.get_credentials()
            client = aioboto3.Session(botocore_session=session).client(
                "dynamodb", region_name=region, endpoint_url=self.endpoint, config=_config(self._direct_session)
            )
            self._client = await self._opened.enter_async_context(client)
            self._client.meta.events.register_first("needs-retry.dynamodb", self._ended)
        except NoRegionError as error:
            raise BadInput(f"No AWS region is set; write dynamodb://{self.table}?region=REGION.") from error
        except (BotoCoreError, ValueError) as error:  # a ValueError is of an endpoint that is no URL
            raise BadInput(f"DynamoDB cannot be used with these settings: {error}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """The answer to one call, perhaps as `parse` reads its body; `attempts` records what became of each attempt.

        Raises NoTable, Refused where the answer says no, and Unavailable where there is none.
        """
        if self._client is None:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if not self._circuit.lets_through():
            self.calls.spared += 1
            raise Unavailable("DynamoDB has not answered for a while; try again.")
        self.calls.made += 1
        attempts = Attempts() if attempts is None else attempts
        token = _ATTEMPTS.set(attempts)
        try:
            answer = await self._answer(operation, parameters, parse)
            if operation in _MEMBERS and not _MEMBERS[operation] & answer.keys():
                raise _NotDynamoDB(error=f"{operation} without {' or '.join(sorted(_MEMBERS[operation]))}")
        except asyncio.CancelledError:
            if attempts.silent_seconds > SILENT_SECONDS:
                self._was_silent()
            raise
        except (ClientError, BotoCoreError, ResponseParserError, aiohttp.ClientError, OSError) as error:
            self._raise(error, attempts)
        finally:
            _ATTEMPTS.reset(token)
        self._was_answered()
        return answer

    def _raise(self, error: Exception, attempts: Attempts) -> NoReturn:
        """Raise the error of the store for one of the library's."""
        if isinstance(error, ClientError):
            code = error.response["Error"]["Code"]
            if is_from_dynamodb(code):
                self._was_answered()
                raise self._refusal(error, code) from error
            error = _NotDynamoDB(error=f"HTTP status {code}")
        if isinstance(error, NoCredentialsError):
            raise Unavailable("DynamoDB needs AWS credentials, and there are none.") from error
        attempts.ended(error)
        self._was_silent()
        where = getattr(error, "kwargs", {}).get("endpoint_url", self._client.meta.endpoint_url).rstrip("/")
        if isinstance(error, SSLError):
            cause = error.kwargs.get("error")
            reason = getattr(cause, "certificate_error", cause)
            raise Unavailable(f"The TLS certificate of {where} is rejected ({reason}); see AWS_CA_BUNDLE.") from error
        if isinstance(error, _NotDynamoDB):
            raise Unavailable(f"The answer of {where} is not DynamoDB's ({error.kwargs['error']}).") from error
        raise Unavailable(f"DynamoDB does not answer at {where} ({type(error).__name__}); try again.") from error

    def _was_answered(self) -> None:
        self._circuit.answered()
        self.calls.is_silent = False

    def _was_silent(self) -> None:
        self.calls.failed += 1
        self._circuit.was_silent()
        self.calls.is_silent = self._circuit.is_open

    async def _answer(self, operation: str, parameters: dict[str, Any], parse: Callable[[bytes], Answer]) -> Answer:
        ordinary = partial(getattr(self._client, operation), **parameters)
        if self._direct is not None and self._credentials is not None and operation in _HOT:
            return await self._direct.call(operation, parameters, self._credentials, ordinary, parse)
        return cast(Answer, await ordinary())

    def _ended(self, response: Any, attempts: int, caught_exception: Exception | None, **_: object) -> None:
        """What botocore tells of each attempt; `response` is None where none came."""
        self.calls.retried += attempts > 1
        if response is None:
            if caught_exception is not None:
                _ATTEMPTS.get().failed(caught_exception)
            return
        code = response[1].get("Error", {}).get("Code", "")
        self.calls.throttled += code in _THROTTLED
        _ATTEMPTS.get().answered(response[0].status_code, code)

    def _direct_session(self, **settings: Any) -> FastReads:
        self._direct = FastReads(**settings)
        return self._direct

    def _refusal(self, error: ClientError, code: str) -> Unavailable:
        if code == "ResourceNotFoundException":
            return NoTable(f'There is no table "{self.table}"; make it with: clade table create')
        reasons = [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
        reason = _REASONS.get(code, f"cannot be used now ({code})")
        return Refused(f'The table "{self.table}" {reason}.', code, reasons)


class _NotDynamoDB(HTTPClientError):
    """An answer that cannot be DynamoDB's; `error` says why."""


class _Parser(AioJSONParser):
    """Leaves the answers that succeed as they are; all others, and so errors and retries, stay botocore's."""

    async def _do_parse(self, response: dict[str, Any], shape: object) -> Answer:
        try:
            return parse_answer(response["body"])
        except msgspec.DecodeError as error:
            raise _NotDynamoDB(error=f"no JSON of its kind: {error}") from error


class _ParserFactory(AioResponseParserFactory):
    def create_parser(self, protocol_name: str) -> Any:
        return _PARSER if protocol_name == "json" else super().create_parser(protocol_name)


_PARSER = _Parser()


def _config(make_http_session: Callable[..., AIOHTTPSession]) -> AioConfig:
    return AioConfig(
        http_session_cls=cast(Any, make_http_session),  # whatever makes one will do
        user_agent="clade",  # botocore's own is made anew for each call
        parameter_validation=False,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=CONNECTIONS,
        # The mode whose delays are DynamoDB's own, from 50 ms on. "standard" waits up to 1 s, then 2, so that an engine
        # that is down costs a call seconds; "adaptive" slows all trees down for the one that is throttled.
        retries={"mode": "legacy", "total_max_attempts": ATTEMPTS},
    )


async def _session(endpoint: str | None) -> AioSession:
    """A session with the parser; where a local engine asks for credentials and there are none, any will do."""
    session = VerifiedSession()
    session.register_component("response_parser_factory", _ParserFactory())
    if endpoint and _is_loopback(endpoint):
        session.get_component("credential_provider").remove("iam-role")  # asking the network takes seconds
        if await session.get_credentials() is None:
            session.set_credentials("local", "local")
    return session


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
