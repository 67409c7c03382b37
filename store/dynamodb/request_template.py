"""Request templates: a request of botocore, to be sent again with another body and a new signature (SigV4)."""

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Self, cast
from urllib.parse import SplitResult, urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.credentials import ReadOnlyCredentials

_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[^/]+/[0-9]{8}/(?P<scope>[^,]+), "
    r"SignedHeaders=(?P<names>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
_START = "POST / HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\n"
_MADE_ANEW = frozenset({"authorization", "content-length", "host", "x-amz-date"})
_OF_ONE_ATTEMPT = frozenset({"amz-sdk-invocation-id", "amz-sdk-request"})  # of botocore's retries


@dataclass(repr=False)  # it has a secret
class RequestTemplate:
    """The constant parts of the requests of one operation, and the credentials that they are signed with.

    Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """

    url: SplitResult
    credentials: ReadOnlyCredentials
    head: str
    scope: str
    names: str
    signed_before: str
    signed_behind: str
    _keys: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, request: AWSPreparedRequest, credentials: ReadOnlyCredentials) -> Self | None:
        """The template of a signed request; None where it does not reproduce the request's signature."""
        url = urlsplit(request.url)
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        signed = _SIGNED.fullmatch(headers.get("authorization", ""))
        if not signed or (request.method, url.path or "/", url.query) != ("POST", "/", ""):
            return None
        names = signed["names"].split(";")
        constant = {
            name: value
            for name, value in headers.items()
            if name not in _MADE_ANEW and (name in names or name not in _OF_ONE_ATTEMPT)
        }
        lines = [f"{name}:{url.netloc if name == 'host' else headers.get(name, '')}\n" for name in names]
        date = names.index("x-amz-date") if "x-amz-date" in names else len(names)
        template = cls(
            url, credentials,
            head=_START.format(host=url.netloc) + "".join([f"{name}: {value}\r\n" for name, value in constant.items()]),
            scope=signed["scope"], names=signed["names"],
            signed_before="POST\n/\n\n" + "".join(lines[:date]), signed_behind="".join(lines[date + 1 :]),
        )  # fmt: skip
        is_right = template._signature(cast(bytes, request.body), headers.get("x-amz-date", "")) == signed["signature"]
        return template if is_right else None

    def filled(self, body: bytes, date: str) -> bytes:
        """The serialized request with a body, signed for a time (`20261120T215900Z`)."""
        credential = f"{self.credentials.access_key}/{date[:8]}/{self.scope}"
        authorization = (
            f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={self.names}, "
            f"Signature={self._signature(body, date)}"
        )
        head = f"{self.head}X-Amz-Date: {date}\r\nContent-Length: {len(body)}\r\nAuthorization: {authorization}\r\n\r\n"
        return head.encode() + body

    def _signature(self, body: bytes, date: str) -> str:
        headers = f"{self.signed_before}x-amz-date:{date}\n{self.signed_behind}"
        request = f"{headers}\n{self.names}\n{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        signed = f"AWS4-HMAC-SHA256\n{date}\n{date[:8]}/{self.scope}\n{digest}"
        return hmac.digest(self._key(date[:8]), signed.encode(), "sha256").hex()

    def _key(self, day: str) -> bytes:
        if day not in self._keys:
            key = f"AWS4{self.credentials.secret_key}".encode()
            for part in (day, *self.scope.split("/")):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keys = {day: key}
        return self._keys[day]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
