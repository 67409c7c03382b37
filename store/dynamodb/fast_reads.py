"""Hot reads sent straight to the engine, since botocore's walk from parameters to a request is ten times their price.

The first call of an operation goes by the library, and its request is kept as a form. Later ones fill it: the same
address, headers and credentials, another body, signed anew. Only a plain good answer is taken. Whatever else a direct
call brings is handed to an ordinary call as the outcome of its first attempt, which it tells or tries again as ever;
so there is nothing here about throttling, errors and how often to ask.
"""

import contextlib
import time
import zlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import httptools
import msgspec
import orjson
from aiobotocore.awsrequest import AioAWSResponse
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from store.dynamodb.codec import Answer, parse_answer
from store.dynamodb.http_connection import Pool, Reply
from store.dynamodb.request_template import RequestTemplate
from store.dynamodb.tls import VerifiedHTTPSession


@dataclass
class _Call:
    """A call on its way through the library, and the outcome of its first attempt where that was made directly."""

    operation: str
    credentials: ReadOnlyCredentials
    outcome: Reply | Exception | None


_CALL: ContextVar[_Call | None] = ContextVar("call", default=None)


class FastReads(VerifiedHTTPSession):
    """The library's own session, which learns from what it sends and makes direct calls beside it.

    aiobotocore makes it for a client with the settings that it found: proxies, certificates, timeouts. Behind a proxy
    or with a client's certificate there are no direct calls.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        connect_seconds, read_seconds = settings["timeout"]
        whole = connect_seconds + read_seconds  # else whoever sends a byte now and then is waited for without end
        self._timeout = aiohttp.ClientTimeout(whole, sock_connect=connect_seconds, sock_read=read_seconds)
        self._may_learn = not settings["proxies"] and not settings["client_cert"]
        self._forms: dict[str, RequestTemplate] = {}
        self._pool = Pool(
            settings["max_pool_connections"], connect_seconds, read_seconds, make_tls=self._get_ssl_context
        )

    async def __aexit__(self, *error: Any) -> None:
        self._pool.close()
        await super().__aexit__(*error)

    async def call(
        self,
        operation: str,
        parameters: dict[str, Any],
        credentials: Any,
        ordinary: Callable[[], Awaitable[Answer]],
        parse: Callable[[bytes], Answer] = parse_answer,
    ) -> Answer:
        """The answer to a read: directly where that is known how, else as the `ordinary` call tells or raises it.

        `parse` is for direct answers alone; it raises msgspec.DecodeError where a body is none.
        """
        frozen = await credentials.get_frozen_credentials()  # asked each time, since they rotate
        form = self._forms.get(operation)
        outcome: Reply | Exception | None = None
        if form is not None and form.credentials == frozen:
            outcome = await self._ask(form, parameters)
            if isinstance(outcome, Reply) and outcome.status == 200:
                with contextlib.suppress(msgspec.DecodeError):
                    return parse(outcome.body)
        return await self._go_by_the_library(_Call(operation, frozen, outcome), ordinary)

    async def _ask(self, form: RequestTemplate, parameters: dict[str, Any]) -> Reply | Exception:
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        try:
            reply = await self._pool.post(form.url, form.filled(orjson.dumps(parameters), date))
        except (OSError, httptools.HttpParserError) as error:  # a TimeoutError is an OSError
            return error
        checksum = reply.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(zlib.crc32(reply.body)):
            return OSError("The answer is not what its checksum says.")
        return reply

    async def _go_by_the_library(self, call: _Call, ordinary: Callable[[], Awaitable[Answer]]) -> Answer:
        token = _CALL.set(call)
        try:
            return await ordinary()
        finally:
            _CALL.reset(token)

    async def send(self, request: Any) -> Any:
        """What the library calls for each attempt."""
        call = _CALL.get()
        if call is None:
            return await super().send(request)
        outcome, call.outcome = call.outcome, None
        if isinstance(outcome, TimeoutError):
            raise ReadTimeoutError(error=outcome, endpoint_url=request.url)
        if isinstance(outcome, Exception):
            raise ConnectionClosedError(error=outcome, endpoint_url=request.url)  # tried again, as others are not
        if outcome is not None:
            return AioAWSResponse(request.url, outcome.status, cast(Any, outcome.headers), _Body(outcome.body))
        response = await super().send(request)
        if self._may_learn and response.status_code == 200 and (form := RequestTemplate.of(request, call.credentials)):
            self._forms[call.operation] = form
        return response


class _Body:
    """A body that was read already, for those who read it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body
