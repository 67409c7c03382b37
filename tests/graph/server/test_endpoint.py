"""GraphQL over HTTP: accepted requests, rejected requests, and errors of execution."""

import json
import logging
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from graphql import GraphQLError

from graph.errors import format_errors
from graph.operation.limits import DocumentLimits
from tests.graph.small_app import MAX_BODY_BYTES, asking

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
AUDITS = Path(__file__).parents[2] / "clients" / "graphql-http-audits.mjs"
HELLO = {"hello": "Hello world!"}
TWICE = {"hello": "Hello world! Hello world!"}


@pytest.fixture(scope="module")
def client():
    with asking() as client:
        yield client


def ask(client, query, *, accept=GRAPHQL, headers=None, **parameters):
    return client.post("/graphql", json={"query": query, **parameters}, headers={"accept": accept, **(headers or {})})


def send(client, body, content_type=JSON):
    return client.post("/graphql", content=body, headers={"content-type": content_type, "accept": GRAPHQL})


def only_error(answer):
    body = answer.json()
    assert "data" not in body
    (error,) = body["errors"]
    return error


# Accepted requests


def test_an_operation_is_answered_by_post(client):
    two = "query A { hello } query B($times: Int!) { hello(times: $times) }"
    for query, parameters, data in (
        ("{ hello }", {"operationName": ""}, HELLO),
        (two, {"variables": {"times": 2}, "operationName": "B"}, TWICE),
        ('{ hello(name: "東京 🏙 \\u0041") }', {}, {"hello": "Hello 東京 🏙 A!"}),
    ):
        answer = ask(client, query, **parameters)
        assert (answer.status_code, answer.json()) == (200, {"data": data})
        assert data["hello"] in answer.content.decode()


def test_reads_are_reported_on_request(client):
    asked = ask(client, "{ hello }", headers={"clade-reads": "1"}).json()
    assert asked["extensions"] == {"reads": {"requests": 2, "rounds": 1, "items": 7, "units": 1}}
    traced = ask(client, "{ hello }", headers={"clade-reads": "2"}).json()["extensions"]["reads"]
    assert list(traced) == ["requests", "rounds", "items", "units", "fromCache", "calls", "moreCalls"]
    for headers in ({}, {"clade-reads": "0"}, {"clade-reads": "3"}):
        assert "extensions" not in ask(client, "{ hello }", headers=headers).json()


HIGHEST = {
    "": JSON,
    "*/*": JSON,
    f"{JSON}, {GRAPHQL}": GRAPHQL,
    f"{GRAPHQL};q=0.5, {JSON};q=0.9": JSON,
    f"{GRAPHQL}, */*": GRAPHQL,
    f"{JSON};q=0, */*": GRAPHQL,
    f"{GRAPHQL};q=0.1, application/*;q=0.5": JSON,
    "APPLICATION/JSON ; Charset=UTF-8": JSON,
    BROWSER: JSON,
    f"{GRAPHQL}, x/{'y' * 20_000}": GRAPHQL,
}


def test_the_response_has_the_media_type_of_the_highest_quality(client):
    for accept, content_type in HIGHEST.items():
        answer = ask(client, "{ hello }", accept=accept)
        assert (answer.status_code, answer.headers["content-type"]) == (200, f"{content_type}; charset=utf-8"), accept


def test_an_accept_header_without_either_type_is_406_in_json(client):
    for accept in ("image/png", "text/html", f"{JSON};q=0", "*/*;q=0", f"{GRAPHQL};q=x"):
        answer = ask(client, "{ hello }", accept=accept)
        assert (answer.status_code, answer.headers["content-type"]) == (406, f"{JSON}; charset=utf-8"), accept
        assert GRAPHQL in only_error(answer)["message"]


def test_all_spellings_of_json_in_utf_8_are_accepted(client):
    for content_type in ("Application/JSON", f"{JSON};charset=utf-8", f'{JSON}; charset="UTF-8"'):
        assert send(client, '{"query": "{ hello }"}', content_type).status_code == 200, content_type


# Rejected requests

BODY = b'{"query": "{ hello }"}'


def test_another_content_type_or_method_and_a_batch_are_rejected_with_the_way_out(client):
    for method, sent, status, allowed, said in (
        *[
            ("POST", {"content": BODY, "headers": {"content-type": kind}}, 415, None, JSON)
            for kind in ("", "text/plain", f"{JSON}; charset=utf-16", "multipart/form-data")
        ],
        ("PUT", {}, 405, "GET, HEAD, POST", "PUT"),
        ("GET", {"params": {"query": "mutation { change }"}}, 405, "POST", "POST"),
        ("POST", {"json": [{"query": "{ hello }"}]}, 400, None, "in a separate request"),
    ):
        answer = client.request(method, "/graphql", **sent)
        assert (answer.status_code, answer.headers.get("allow")) == (status, allowed)
        assert said in only_error(answer)["message"]


def test_a_body_at_the_limit_is_accepted_and_one_byte_more_is_413(client):
    body = BODY.ljust(MAX_BODY_BYTES)
    assert send(client, body).status_code == 200
    answer = send(client, body + b" ")
    assert answer.status_code == 413
    assert str(MAX_BODY_BYTES) in only_error(answer)["message"]


def test_a_body_without_a_length_is_cut_off_at_the_limit(client):
    assert send(client, (b" " * 1_000 for _ in range(100))).status_code == 413
    assert send(client, iter([b'{"query": ', b'"{ hello }"}'])).status_code == 200


def test_a_get_without_a_query_is_400_for_a_client_and_a_page_for_a_browser(client):
    assert only_error(client.get("/graphql"))["extensions"] == {"code": "BAD_REQUEST"}
    assert client.get("/graphql", headers={"accept": BROWSER}).headers["content-type"] == "text/html; charset=utf-8"
    asked = client.get("/graphql", params={"query": "{ hello }"}, headers={"accept": BROWSER})
    assert asked.json() == {"data": HELLO}


BODIES = [
    *(b"", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 10_000, b"null", b"7", b'"{ hello }"', b"{}"),
    *(b'{"query": %s}' % query for query in (b"null", b"7", b'["{ hello }"]', b'"\xff"', b'"\\ud800"')),
    *(
        b'{"query": "{ hello }", %s}' % more
        for more in (
            *(b'"variables": []', b'"variables": "{}"', b'"variables": {"a": NaN}'),
            *(b'"operationName": 0', b'"operationName": {}', b'"extensions": false'),
            b'"variables": ' + b'{"a": ' * 2_000 + b"1" + b"}" * 2_000,
        )
    ),
]
QUERY_STRINGS = ["query=%FF", *[f"query={{hello}}&{more}" for more in ("variables={", "variables=7", "extensions=[]")]]


def test_an_invalid_body_or_query_string_is_400(client):
    refused = [send(client, body) for body in BODIES] + [client.get(f"/graphql?{one}") for one in QUERY_STRINGS]
    assert [answer.status_code for answer in refused] == [400] * len(refused)
    assert [only_error(answer)["extensions"] for answer in refused] == [{"code": "BAD_REQUEST"}] * len(refused)
    assert only_error(client.get("/graphql", params={"query": ""}))["extensions"]["code"] == PARSE


@pytest.mark.parametrize("number", ["-1e400", "9" * 400])
def test_the_error_of_a_number_that_no_float_holds_names_the_range(client, number):
    way_out = "is not JSON in UTF-8 whose numbers are less than 1.8e308."
    sent = send(client, b'{"query": "{ hello }", "variables": {"a": %s}}' % number.encode())
    asked = client.get("/graphql", params={"query": "{ hello }", "variables": f'{{"a": {number}}}'})
    assert [only_error(one)["message"] for one in (sent, asked)] == [f"The body {way_out}", f'"variables" {way_out}']


PARSE, INVALID, INPUT = "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT"
LIMIT = "LIMIT_EXCEEDED"
NO_OPERATION = "OPERATION_RESOLUTION_FAILURE"


@pytest.mark.parametrize(
    ("query", "parameters", "code"),
    [
        ("", {}, PARSE),
        ("#" * 5_000, {}, PARSE),
        ("{ box { ... {} } }", {}, PARSE),
        ("{ hello \0 }", {}, PARSE),
        ('{ hello(name: "\\uD800") }', {}, PARSE),
        ("{ box " + "{ inner " * 1_000 + "}" * 1_001, {}, PARSE),
        ("{" + " a" * 9_999 + "}", {}, LIMIT),
        ("{ nothing }", {}, INVALID),
        ("{ hello(times: %s) }" % ("9" * 5_000), {}, INVALID),
        ("subscription { hello }", {}, INVALID),
        ("fragment A on Query { hello }", {}, INVALID),
        ("query A { hello } query B { hello }", {}, NO_OPERATION),
        ("query A { hello }", {"operationName": "C"}, NO_OPERATION),
        ("query($times: Int!) { hello(times: $times) }", {"variables": {"times": "x"}}, INPUT),
        ("query($times: Int!) { hello(times: $times) }", {"variables": {"times": 10**30}}, INPUT),
    ],
)
def test_an_operation_that_cannot_run_is_a_request_error(client, query, parameters, code):
    answer = ask(client, query, **parameters)
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert "data" not in answer.json()
    assert {error["extensions"]["code"] for error in errors} == {code}
    assert not [error for error in errors if "Exceeds the limit" in error["message"]]
    in_json = ask(client, query, accept=JSON, **parameters)
    assert (in_json.status_code, in_json.json()) == (200, answer.json())


# Errors of execution


def test_an_error_of_a_field_has_its_code_and_path(client):
    answer = ask(client, "{ hello refused }")
    assert answer.status_code == 200
    assert answer.json() == {
        "errors": [
            {
                "message": '"US//NE" has an empty segment.',
                "locations": [{"line": 1, "column": 9}],
                "path": ["refused"],
                "extensions": {"code": "BAD_PATH"},
            }
        ],
        "data": {"hello": "Hello world!", "refused": None},
    }
    assert list(json.loads(answer.content)) == ["errors", "data"], "as the specification recommends"
    answer = ask(client, "{ brokenWithoutNull }")
    assert (answer.status_code, answer.json()["data"]) == (200, None), "it is no error of the request"


def test_an_unexpected_error_is_logged_and_not_sent(client, caplog):
    with caplog.at_level(logging.ERROR, logger="clade"):
        answer = ask(client, "{ hello broken }")
    (error,) = answer.json()["errors"]
    assert (error["path"], error["extensions"]) == (["broken"], {"code": "INTERNAL_SERVER_ERROR"})
    assert "secret" not in answer.text
    assert "KeyError" not in answer.text
    assert answer.json()["data"] == {"hello": "Hello world!", "broken": None}
    assert "a secret of the server" in caplog.text


def test_one_cause_of_many_errors_is_logged_once(caplog):
    cause = KeyError("once only")
    errors = [GraphQLError(str(cause), path=["hello", number], original_error=cause) for number in range(50)]
    with caplog.at_level(logging.ERROR, logger="clade"):
        told = format_errors(errors)
    assert (len(told), len(caplog.records)) == (50, 1)
    assert "once only" not in str(told)


def test_a_query_beyond_pythons_recursion_limit_is_an_error():
    query = "{ box " + "{ inner " * 180 + "{ name }" + "}" * 181
    with asking(limits=DocumentLimits(max_depth=1_000)) as client:
        answer = ask(client, query)
    assert answer.status_code == 200
    (error,) = answer.json()["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT"}
    assert "nested too deeply" in error["message"]


def test_an_internal_error_is_500_without_pythons_message(client):
    answer = ask(client, "{ unwritable }")
    assert answer.status_code == 500
    assert only_error(answer)["extensions"] == {"code": "INTERNAL_SERVER_ERROR"}
    assert "orjson" not in answer.text.lower()
    assert answer.headers.get("connection") != "close"
    assert ask(client, "{ hello }").status_code == 200


@pytest.mark.skipif(
    not shutil.which("node") or not (AUDITS.parent.parent / "node_modules" / "graphql-http").exists(),
    reason="node or graphql-http of tests/package.json is missing",
)
def test_all_61_audits_of_graphql_over_http_pass(client):
    run = subprocess.run(
        ["node", AUDITS, str(client.base_url.join("/graphql"))], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    audits = [json.loads(line) for line in run.stdout.splitlines()]
    assert [audit for audit in audits if audit["status"] != "ok"] == []
    assert Counter(audit["name"].split()[0] for audit in audits) == {"MUST": 13, "SHOULD": 23, "MAY": 25}
