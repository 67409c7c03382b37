"""Signature: requests are signed as botocore signs them."""

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore import auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from store.dynamodb.signature import Signer

KEYS = ReadOnlyCredentials("AKID", "secret", None)
SESSION_KEYS = ReadOnlyCredentials("ASIA", "another secret", "a session's token==")
NOW = 1_790_000_000.0


def signed_by_botocore(url: str, body: bytes, credentials: ReadOnlyCredentials, at: datetime) -> dict[str, str]:
    """The headers of a request as the library signs it."""
    headers = {"X-Amz-Target": "DynamoDB_20120810.Query", "Content-Type": "application/x-amz-json-1.0"}
    request = AWSRequest("POST", url, data=body, headers=headers)
    with patch.object(auth, "get_current_datetime", lambda: at):
        SigV4Auth(credentials, "dynamodb", "eu-west-1").add_auth(request)
    found = {name.lower(): value for name, value in request.prepare().headers.items()}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def read(sent: bytes) -> tuple[str, dict[str, str], bytes]:
    """The first line, the headers and the body of a request."""
    head, _, body = sent.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body


@given(
    st.binary(max_size=300), st.sampled_from([KEYS, SESSION_KEYS]),
    st.sampled_from(["https://dynamodb.eu-west-1.amazonaws.com", "http://127.0.0.1:8000/", "https://[::1]/",
                     "https://example.org:443", "http://example.org:443", "http://example.org:80/a/b c%20d"]),
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 1, 1)),
)  # fmt: skip
def test_a_request_is_signed_as_botocore_signs_it(
    body: bytes, credentials: ReadOnlyCredentials, url: str, at: datetime
) -> None:
    at = at.replace(microsecond=0, tzinfo=UTC)
    signer = Signer(urlsplit(url), "eu-west-1")
    first, headers, sent = read(signer.request("Query", body, credentials, at.timestamp()))
    assert first == f"POST {urlsplit(url).path or '/'} HTTP/1.1"
    assert sent == body
    wanted = signed_by_botocore(url, body, credentials, at)
    assert {name: headers[name] for name in wanted} == wanted
    host = urlsplit(url).netloc.removesuffix(":80")
    assert headers["host"] == (host.removesuffix(":443") if url.startswith("https") else host)


def test_the_next_day_and_other_credentials_have_other_keys() -> None:
    signer = Signer(urlsplit("http://127.0.0.1:8000"), "eu-west-1")
    for credentials in (KEYS, SESSION_KEYS, KEYS):
        for now in (NOW, NOW + 86_400, NOW):
            headers = read(signer.request("Query", b"{}", credentials, now))[1]
            at = datetime.fromtimestamp(now, UTC)
            assert (
                headers["authorization"]
                == (signed_by_botocore("http://127.0.0.1:8000", b"{}", credentials, at)["authorization"])
            )


@pytest.mark.parametrize("field", ["access_key", "token"])
def test_credentials_with_a_line_break_are_never_sent(field: str) -> None:
    signer = Signer(urlsplit("http://127.0.0.1:8000"), "eu-west-1")
    with pytest.raises(ValueError, match="line break"):
        signer.request("Query", b"{}", SESSION_KEYS._replace(**{field: "a\r\nHost: other"}), NOW)
