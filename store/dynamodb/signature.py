"""Signature Version 4: requests of DynamoDB's JSON protocol, signed with the credentials and the time of each attempt.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
import time
from urllib.parse import SplitResult, quote

from botocore.credentials import ReadOnlyCredentials

CONTENT_TYPE = "application/x-amz-json-1.0"
_VERSION = "DynamoDB_20120810"
_PORTS = {"http": 80, "https": 443}


class Signer:
    """The signed requests to one endpoint."""

    def __init__(self, url: SplitResult, region: str) -> None:
        self._host = _host_of(url)
        self._path = url.path or "/"
        self._canonical_path = quote(self._path, safe="/~")
        self._region = region
        self._keys: dict[tuple[ReadOnlyCredentials, str], bytes] = {}

    def request(self, operation: str, body: bytes, credentials: ReadOnlyCredentials, now: float) -> bytes:
        """The serialized request, signed for a time; raises ValueError for credentials that no header can hold."""
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        target, token = f"{_VERSION}.{operation}", credentials.token
        names, signed_token, sent_token = "content-type;host;x-amz-date;x-amz-target", "", ""
        if token:
            names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
            signed_token, sent_token = f"x-amz-security-token:{token}\n", f"X-Amz-Security-Token: {token}\r\n"
        canonical = (
            f"POST\n{self._canonical_path}\n\n"
            f"content-type:{CONTENT_TYPE}\nhost:{self._host}\nx-amz-date:{date}\n{signed_token}x-amz-target:{target}\n"
            f"\n{names}\n{hashlib.sha256(body).hexdigest()}"
        )
        scope = f"{date[:8]}/{self._region}/dynamodb/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(credentials, date[:8]), text.encode(), "sha256").hex()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: clade\r\nAccept-Encoding: identity\r\n"
            f"Content-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nX-Amz-Target: {target}\r\n"
            f"X-Amz-Date: {date}\r\n{sent_token}Authorization: AWS4-HMAC-SHA256 "
            f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}\r\n\r\n"
        )
        return head.encode() + body

    def _key(self, credentials: ReadOnlyCredentials, day: str) -> bytes:
        """The key of a day, which is derived once."""
        key = self._keys.get((credentials, day))
        if key is None:
            if not f"{credentials.access_key}{credentials.token or ''}".isprintable():
                raise ValueError("The credentials contain a line break or another control character.")
            key = f"AWS4{credentials.secret_key}".encode()
            for part in (day, self._region, "dynamodb", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keys = {(credentials, day): key}
        return key


def _host_of(url: SplitResult) -> str:
    """The header `Host`, without the port that belongs to the scheme."""
    host = url.netloc.rpartition("@")[2]
    return host.removesuffix(f":{url.port}") if url.port == _PORTS.get(url.scheme) else host
