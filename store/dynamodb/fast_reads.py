"""Fast reads: Query and BatchGetItem without botocore, which takes ten times as long to build a request.

The first call of an operation is made by botocore, and its request becomes a template. Later calls fill the template:
the same address, headers and credentials, another body, a new signature. Only a successful response is used. Any other
outcome is passed to a call of botocore as that of its first attempt, so botocore reports or retries it; there is no
code for throttling, errors and retries here.
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
import orjson
from aiobotocore.awsrequest import AioAWSResponse
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from store.dynamodb.aws.tls import VerifiedHTTPSession
from store.dynamodb.codec import INVALID_BODY, Answer
from store.dynamodb.http_connection import Pool, Reply
from store.dynamodb.request_template import RequestTemplate


@dataclass
class _Call:
    """A call of botocore, with the outcome of its first attempt where that was made directly."""

    operation: str
    credentials: ReadOnlyCredentials
    outcome: Reply | Exception | None


_CALL: ContextVar[_Call | None] = ContextVar("call", default=None)


class FastReads(VerifiedHTTPSession):
    """The HTTP session of aiobotocore, which makes templates of the requests that it sends, and direct calls with them.

    aiobotocore constructs it with the settings of a client: proxies, certificates, timeouts. Behind a proxy or with a
    client certificate there are no direct calls.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        connect_seconds, read_seconds = settings["timeout"]
        whole = connect_seconds + read_seconds  # else a response of a byte now and then would never time out
        self._timeout = aiohttp.ClientTimeout(whole, sock_connect=connect_seconds, sock_read=read_seconds)
        # Its other names are NO_PROXY's, and those of variables of other programs that end in the same way.
        has_proxy = not {"http", "https"}.isdisjoint(settings["proxies"] or ())
        self._makes_templates = not has_proxy and not settings["client_cert"]
        self._templates: dict[str, RequestTemplate] = {}
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
        credentials: ReadOnlyCredentials,
        library_call: Callable[[], Awaitable[Answer]],
        parse: Callable[[bytes], Answer],
    ) -> Answer:
        """The response to a read: of a direct call where there is a template, else of `library_call`.

        `credentials` are those of this moment: with others than its template's the library makes the call, and a new
        template. `parse` parses the body of a direct response; it raises one of `INVALID_BODY` for an invalid one.
        """
        template = self._templates.get(operation)
        outcome: Reply | Exception | None = None
        if template is not None and template.credentials == credentials:
            outcome = await self._post(template, parameters)
            if isinstance(outcome, Reply) and outcome.status == 200:
                with contextlib.suppress(*INVALID_BODY):
                    return parse(outcome.body)
        token = _CALL.set(_Call(operation, credentials, outcome))
        try:
            return await library_call()
        finally:
            _CALL.reset(token)

    async def _post(self, template: RequestTemplate, parameters: dict[str, Any]) -> Reply | Exception:
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        try:
            reply = await self._pool.post(template.url, template.filled(orjson.dumps(parameters), date))
        except (OSError, httptools.HttpParserError) as error:  # a TimeoutError is an OSError
            return error
        checksum = reply.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(zlib.crc32(reply.body)):
            return OSError("The checksum of the response is wrong.")
        return reply

    async def send(self, request: Any) -> Any:
        """Send a request of botocore, which calls this for each attempt."""
        call = _CALL.get()
        if call is None:
            return await super().send(request)
        outcome, call.outcome = call.outcome, None
        if isinstance(outcome, TimeoutError):
            raise ReadTimeoutError(error=outcome, endpoint_url=request.url)
        if isinstance(outcome, Exception):
            raise ConnectionClosedError(error=outcome, endpoint_url=request.url)  # which botocore retries
        if outcome is not None:
            return AioAWSResponse(request.url, outcome.status, cast(Any, outcome.headers), _Body(outcome.body))
        response = await super().send(request)
        if (
            self._makes_templates
            and response.status_code == 200
            and (template := RequestTemplate.of(request, call.credentials))
        ):
            self._templates[call.operation] = template
        return response


class _Body:
    """The stream of a body that was read already."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def read(self) -> bytes:
        return self._body
