"""A connection to DynamoDB: its session, the calls, and what their failures mean.

botocore knows endpoints, credentials, errors and when to try again; what it would spend on walking answers by their
shapes, nine tenths of a large Query, is saved by a parser of our own for the answers that succeed, and what it would
spend on making requests by direct calls of the reads that are hot (`store/direct.py`).
"""

import contextlib
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import aioboto3
import aiohttp
import msgspec
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.parsers import AioJSONParser, AioResponseParserFactory
from aiobotocore.session import AioSession
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError, NoRegionError

from store.calls import Calls
from store.circuit import Circuit
from store.direct import Direct
from store.errors import BadInput, NoTable, Unavailable
from store.wire import Answer, parse_answer

CONNECTIONS = 64
CONNECT_SECONDS = 2
READ_SECONDS = 5  # two attempts of a silent call fit into a request
ATTEMPTS = 5  # for a call that meets a 5xx, throttling or a lost connection

_HOT = frozenset({"query", "batch_get_item"})


class Refused(Unavailable):
    """DynamoDB said no; `name` is the wire's for it, `reasons` those of a transaction, change by change."""

    def __init__(self, message: str, name: str, reasons: list[str]) -> None:
        super().__init__(message)
        self.name = name
        self.reasons = reasons


class Silent(Unavailable):
    """There was no answer, so that what was asked may be done or not."""


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
}

_THROTTLED = frozenset({"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"})


class Connection:
    """Calls of one table, for as long as it is open."""

    def __init__(self, table: str, region: str | None, endpoint: str | None) -> None:
        self.table = table
        self.region = region
        self.endpoint = endpoint
        self._opened = contextlib.AsyncExitStack()
        self._client: Any = None
        self._credentials: Any = None
        self._direct: Direct | None = None
        self._circuit = Circuit()
        self.calls = Calls()

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
            self._client.meta.events.register_first("needs-retry.dynamodb", self._count_attempt)
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
        self, operation: str, *, parse: Callable[[bytes], Answer] = parse_answer, **parameters: object
    ) -> Answer:
        """The answer to one call, perhaps as `parse` reads its body.

        Raises NoTable, Refused where the answer says no, and Unavailable where there is none.
        """
        if self._client is None:
            raise RuntimeError("The store is not open; use it as an async context manager.")
        if not self._circuit.lets_through():
            self.calls.spared += 1
            raise Unavailable("DynamoDB has not answered for a while; try again.")
        self.calls.made += 1
        try:
            answer = await self._answer(operation, parameters, parse)
        except ClientError as error:
            self._circuit.answered()
            raise self._translate(error) from error
        except NoCredentialsError as error:
            raise Unavailable("DynamoDB needs AWS credentials, and there are none.") from error
        except (BotoCoreError, aiohttp.ClientError, OSError, TimeoutError) as error:
            self.calls.failed += 1
            self._circuit.was_silent()
            self.calls.is_silent = self._circuit.is_open
            where, kind = self._client.meta.endpoint_url, type(error).__name__
            raise Silent(f"DynamoDB does not answer at {where} ({kind}); try again.") from error
        self._circuit.answered()
        self.calls.is_silent = False
        return answer

    async def _answer(self, operation: str, parameters: dict[str, Any], parse: Callable[[bytes], Answer]) -> Answer:
        ordinary = partial(getattr(self._client, operation), **parameters)
        if self._direct is not None and self._credentials is not None and operation in _HOT:
            return await self._direct.call(operation, parameters, self._credentials, ordinary, parse)
        return cast(Answer, await ordinary())

    def _count_attempt(self, response: Any, attempts: int, **_: object) -> None:
        """What botocore tells of each attempt; `response` is None where none came."""
        self.calls.retried += attempts > 1
        if response is not None and response[1].get("Error", {}).get("Code") in _THROTTLED:
            self.calls.throttled += 1

    def _direct_session(self, **settings: Any) -> Direct:
        self._direct = Direct(**settings)
        return self._direct

    def _translate(self, error: ClientError) -> Unavailable:
        code = error.response["Error"]["Code"]
        if code == "ResourceNotFoundException":
            return NoTable(f'There is no table "{self.table}"; make it with: clade table create')
        reasons = [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
        reason = _REASONS.get(code, f"cannot be used now ({code})")
        return Refused(f'The table "{self.table}" {reason}.', code, reasons)


class _Parser(AioJSONParser):
    """Leaves the answers that succeed as they are; all others, and so errors and retries, stay botocore's."""

    async def _do_parse(self, response: dict[str, Any], shape: object) -> Answer:
        try:
            return parse_answer(response["body"])
        except msgspec.DecodeError as error:
            raise HTTPClientError(error=error) from error


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
    session = AioSession()
    session.register_component("response_parser_factory", _ParserFactory())
    if endpoint and _is_loopback(endpoint):
        session.get_component("credential_provider").remove("iam-role")  # asking the network takes seconds
        if await session.get_credentials() is None:
            session.set_credentials("local", "local")
    return session


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
