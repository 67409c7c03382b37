"""Persisted documents: ids in every form that clients send, and the rejection of other documents."""

import hashlib
import json
from itertools import product

import pytest

from graph.operation.document import read_trusted
from graph.settings import Settings
from store.errors import BadInput
from tests.graph.small_app import asking

HELLO = "query Hello($times: Int!) { hello(times: $times) }"
CHANGE = "mutation { change }"
HASHES = {document: hashlib.sha256(document.encode()).hexdigest() for document in (HELLO, CHANGE)}
DOCUMENTS = {hashed: document for document, hashed in HASHES.items()}
OTHER = "{ hello }"
MESSAGES = {
    "PERSISTED_QUERY_NOT_FOUND": "PersistedQueryNotFound",
    "PERSISTED_QUERY_NOT_SUPPORTED": "PersistedQueryNotSupported",
}  # clients compare these
GRAPHQL, JSON = "application/graphql-response+json", "application/json"
ANSWER = {"data": {"hello": "Hello world! Hello world!"}}


def by_apollo(hashed):
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": hashed}}}


@pytest.fixture(scope="module", params=["only", "prefer"])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def client(mode, tmp_path_factory):
    file = tmp_path_factory.mktemp("trusted") / "documents.json"
    file.write_text(json.dumps(DOCUMENTS))
    with asking(settings={"trusted_documents": str(file), "trusted_mode": mode}) as client:
        yield client


def ask(client, **parameters):
    return client.post("/graphql", json={"variables": {"times": 2}, **parameters}).json()


def code(body):
    (error,) = body["errors"]
    assert "data" not in body
    assert error["message"] == MESSAGES.get(error["extensions"]["code"], error["message"])
    return error["extensions"]["code"]


def test_a_persisted_document_is_executed_by_every_form_of_its_id(client):
    for parameters in (
        {"documentId": HASHES[HELLO]},
        {"documentId": f"sha256:{HASHES[HELLO]}"},
        by_apollo(HASHES[HELLO]),
        {"query": "", **by_apollo(HASHES[HELLO])},
        {"query": HELLO, **by_apollo(HASHES[HELLO])},
        {"query": HELLO},
    ):
        assert ask(client, **parameters) == ANSWER
    asked = {"variables": '{"times": 2}', "extensions": json.dumps(by_apollo(HASHES[HELLO])["extensions"])}
    assert client.get("/graphql", params=asked).json() == ANSWER
    assert client.get("/graphql", params={"documentId": HASHES[CHANGE]}).status_code == 405
    assert ask(client, documentId=HASHES[CHANGE]) == {"data": {"change": 1}}


@pytest.mark.parametrize(
    ("accept", "status", "media_type"),
    [(f"{GRAPHQL}, {JSON};q=0.1", 200, JSON), (f"{GRAPHQL}, {JSON};q=0", 400, GRAPHQL), (GRAPHQL, 400, GRAPHQL)],
)
def test_an_unknown_id_is_no_status_of_errors_to_clients_that_accept_json(client, accept, status, media_type):
    body, headers = by_apollo("0" * 64), {"accept": accept}
    assert code(ask(client, documentId="0" * 64)) == "PERSISTED_QUERY_NOT_FOUND"
    for asked in (
        client.post("/graphql", json=body, headers=headers),
        client.get("/graphql", params={"extensions": json.dumps(body["extensions"])}, headers=headers),
    ):
        assert code(asked.json()) == "PERSISTED_QUERY_NOT_FOUND"
        assert (asked.status_code, asked.headers["content-type"]) == (status, f"{media_type}; charset=utf-8")
        assert asked.headers["cache-control"] == "no-store"


def test_other_documents_are_accepted_only_in_mode_prefer(client, mode):
    for parameters in ({"query": OTHER}, {"query": OTHER, **by_apollo("0" * 64)}, {"query": f"{HELLO} "}):
        body = ask(client, **parameters)
        if mode == "only":
            assert code(body) == "FORBIDDEN"  # nothing is gained by sending the text again
        else:
            assert "errors" not in body


def test_a_known_id_is_refused_beside_another_text(client):
    for given, query in product(({"documentId": HASHES[HELLO]}, by_apollo(HASHES[HELLO])), (OTHER, CHANGE)):
        for _ in range(2):
            asked = client.post("/graphql", json={"variables": {"times": 2}, "query": query, **given})
            assert (asked.status_code, "data" in asked.json()) == (400, False)
            assert asked.json()["errors"][0]["message"] == "provided sha does not match query"


def test_without_persisted_documents_an_id_is_not_supported():
    with asking() as client:
        assert code(ask(client, **by_apollo(HASHES[HELLO]))) == "PERSISTED_QUERY_NOT_SUPPORTED"
        assert ask(client, query=HELLO, **by_apollo(HASHES[HELLO])) == ANSWER


def test_an_id_that_is_no_string_is_ignored(client):
    for sent in (7, None, [], {"a": 1}, ""):
        assert code(ask(client, documentId=sent)) == "BAD_REQUEST"
        assert code(ask(client, **by_apollo(sent))) == "BAD_REQUEST"


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_file_is_read_with_or_without_prefixes(tmp_path):
    file = tmp_path / "documents.json"
    file.write_text(json.dumps({f"sha256:{HASHES[HELLO]}": HELLO, HASHES[CHANGE]: CHANGE}))
    assert read_trusted(str(file)) == {HASHES[HELLO]: HELLO, HASHES[CHANGE]: CHANGE}


def test_an_id_may_be_any_text_that_a_client_can_send(tmp_path):
    file = tmp_path / "documents.json"
    ids = ["menu-v1", hashlib.blake2b(HELLO.encode()).hexdigest(), "0" * 64, "md5:x"]
    file.write_text(json.dumps({**dict.fromkeys(ids, HELLO), f"sha256:{ids[0]}": HELLO}))
    assert read_trusted(str(file)) == dict.fromkeys(ids, HELLO)
    with asking(settings={"trusted_documents": str(file)}) as client:
        assert [ask(client, documentId=one) for one in ids] == [ANSWER] * len(ids)


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ({"": HELLO}, 'has "" as the id of a document, which no client sends; write its hash.'),
        ({"sha256:": HELLO}, 'has "sha256:" as the id of a document, which no client sends; write its hash.'),
        (
            {"a": HELLO, "sha256:a": CHANGE},
            'has two documents with the id a, once with "sha256:"; leave out one of them.',
        ),
    ],
)
def test_an_id_that_no_client_sends_or_that_is_of_two_documents_is_rejected_at_the_start(tmp_path, documents, reason):
    file = tmp_path / "documents.json"
    file.write_text(json.dumps(documents))
    with pytest.raises(BadInput) as refused:
        Settings(trusted_documents=str(file))
    assert str(refused.value) == f"CLADE_TRUSTED_DOCUMENTS: {file} {reason}"


def test_a_file_that_is_missing_or_has_no_documents_by_id_is_rejected_at_the_start(tmp_path, monkeypatch):
    file = tmp_path / "documents.json"
    monkeypatch.setenv("CLADE_TRUSTED_DOCUMENTS", str(file))
    with pytest.raises(BadInput, match=r"documents\.json cannot be read: no such file"):
        Settings()
    for content in ("", "{", "[]", '"x"', '{"a": 1}', '{"a": {"body": "{ a }"}}'):
        file.write_text(content)
        with pytest.raises(BadInput, match=r"CLADE_TRUSTED_DOCUMENTS: .* must be JSON such as"):
            Settings()
