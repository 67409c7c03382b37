"""Request templates: filled ones equal the requests that botocore makes and signs."""

from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from store.dynamodb.request_template import RequestTemplate

KEYS = ReadOnlyCredentials("AKID", "secret", None)
SESSION_KEYS = ReadOnlyCredentials("ASIA", "another secret", "a session's token==")


def signed(body: bytes, credentials: ReadOnlyCredentials, at: str | None = None, **more: Any) -> AWSPreparedRequest:
    """A request as the library signs it, at a time where one is given."""
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.Query", "Content-Type": "application/x-amz-json-1.0", "User-Agent": "clade",
    }  # fmt: skip
    url = more.pop("url", "https://dynamodb.eu-west-1.amazonaws.com/")
    request = AWSRequest("POST", url, data=body, headers={**headers, **more})
    auth = SigV4Auth(credentials, "dynamodb", "eu-west-1")
    auth.add_auth(request)
    if at:
        request.context["timestamp"] = at
        auth._modify_request_before_signing(request)
        told = auth.string_to_sign(request, auth.canonical_request(request))
        auth._inject_signature_to_request(request, auth.signature(told, request))
    return request.prepare()


def read(sent: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = sent.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST / HTTP/1.1"
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}, body


@given(
    st.binary(max_size=300), st.sampled_from([KEYS, SESSION_KEYS]), st.sampled_from(["", ":8443"]),
    st.datetimes().map(lambda at: f"{at.year:04}{at:%m%dT%H%M%S}Z"),
)  # fmt: skip
def test_a_filled_template_is_signed_as_botocore_signs_the_same(
    body: bytes, credentials: ReadOnlyCredentials, port: str, at: str
) -> None:
    url = f"https://dynamodb.eu-west-1.amazonaws.com{port}/"
    template = RequestTemplate.of(signed(b"{}", credentials, url=url), credentials)
    assert template is not None
    headers, sent = read(template.filled(body, at))
    wanted = {name.lower(): value for name, value in signed(body, credentials, at, url=url).headers.items()}
    texts = {name: value.decode() if isinstance(value, bytes) else value for name, value in wanted.items()}
    assert headers == texts | {"host": f"dynamodb.eu-west-1.amazonaws.com{port}", "accept-encoding": "identity"}
    assert sent == body


def test_a_template_never_shows_its_secret() -> None:
    assert "secret" not in repr(RequestTemplate.of(signed(b"{}", KEYS), KEYS))
