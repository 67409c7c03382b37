"""A host with users and rows of its own around Clade: its sessions decide, whatever headers a client sends."""

import json
import re
import sqlite3
from contextlib import closing

import httpx
import jwt
import pytest

from examples import joined
from store.connect import opened
from tests.readme import DOCS, ROOT, blocks
from tests.serving import serving

PAGE = (DOCS / "joining.md").read_text("utf-8")
SHOWN = {"query": "{ drives { nodes { path } } }"}
LONGEST = "9" * 128
CREATE = """
mutation($account: String!, $path: Path!) {
  drive: createDriveNode(input: {key: $account, name: "Drive", attributes: { drive: {} }}) { node { id } }
  folder: createDriveNode(input: {parent: {path: $path}, key: "in/out", name: "‮in", attributes: { folder: {}
    }}) { node { id path } }
}
"""


@pytest.fixture
async def host(tmp_path, monkeypatch):
    """A client of the host without a session; Ana and Ben have a drive each, and Eve is a user without grants."""
    store = f"sqlite:///{tmp_path / 'drives.db'}"
    async with opened(store, make=True):
        pass
    monkeypatch.setattr(joined, "SESSIONS", {"a" * 64: "ana", "b" * 64: "bén", "e" * 64: "eve"})
    monkeypatch.setattr(joined, "GRANTS", {"ana": ["write:drive/a91"], "bén": ["write:drive/b%2F7"]})
    monkeypatch.setattr(joined, "INVOICES", {})
    with serving(joined.make_app(store)) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def session(letter):
    return {"cookie": f"session={letter * 64}"}


def ask(host, headers, body=SHOWN, **variables):
    return host.post("/drives/graphql", json=body | {"variables": variables}, headers=headers)


def create(host, letter, account, path):
    data = ask(host, session(letter), {"query": CREATE}, account=account, path=path).json()["data"]
    return data["drive"]["node"]["id"], data["folder"]["node"]


def test_each_user_of_the_host_sees_and_writes_its_own_drive_alone(host):
    _, folder = create(host, "a", "a91", "a91")
    create(host, "b", "b/7", "b%2F7")
    for letter, paths in (("a", ["a91"]), ("b", ["b%2F7"]), ("e", [])):
        assert [node["path"] for node in ask(host, session(letter)).json()["data"]["drives"]["nodes"]] == paths
    delete = {
        "query": "mutation($path: Path!) { deleteDriveNode(input: {node: {path: $path}}) { userErrors { code } } }"
    }
    hidden = ask(host, session("b"), delete, path=folder["path"]).json()["data"]["deleteDriveNode"]
    assert hidden["userErrors"] == [{"code": "NOT_FOUND"}]
    (refused,) = ask(host, session("e"), delete, path=folder["path"]).json()["errors"]
    assert refused["extensions"]["code"] == "FORBIDDEN"
    history = "{ driveNode(path: %s) { history { nodes { changedBy } } } }" % '"b%2F7"'  # noqa: UP031
    (revision,) = ask(host, session("b"), {"query": history}).json()["data"]["driveNode"]["history"]["nodes"]
    assert revision == {"changedBy": "bén"}


def test_a_credential_of_a_client_counts_for_nothing(host):
    token = joined.credential("mallory", ["write:drive"])
    forged = "Bearer " + jwt.encode({"sub": "ana", "exp": 2**33, "grants": ["write:drive"]}, "0" * 64, "HS256")
    for sent in (token, token.lower(), forged, "Bearer clade_x_y", "Basic YTpi", "", LONGEST):
        assert ask(host, {"authorization": sent}).status_code == 401
        own = ask(host, session("e") | {"authorization": sent})
        assert own.json() == {"data": {"drives": {"nodes": []}}}
    twice = [("AUTHORIZATION", token), ("Authorization", token), *session("e").items()]
    assert ask(host, httpx.Headers(twice)).json() == {"data": {"drives": {"nodes": []}}}


def test_without_a_user_there_are_health_checks_and_a_401_for_everything_else(host):
    for cookie in ("", "session=", "session=nobody", f"session={'A' * 64}", f"other={'a' * 64}", "session=\xff" * 99):
        assert ask(host, {"cookie": cookie.encode("latin-1")}).status_code == 401
    assert ask(host, {}, {"query": "{ __schema { queryType { name } } }"}).json()["errors"]
    assert host.get("/invoices").status_code == 401
    html = {"accept": "text/html"}
    pages = [host.get(path, headers=html).status_code for path in ("/drives/graphql", "/drives/graphql/examples.json")]
    assert pages == [406, 404]
    assert host.get("/drives/").headers["location"] == "graphql"
    assert host.get("/drives/healthz").status_code == 200


def test_pages_of_other_sites_cannot_write_by_the_cookie(host):
    mutation = 'mutation { createDriveNode(input: {key: "a91", name: "x", attributes: { drive: {} }}) { node { id } } }'
    body = json.dumps({"query": mutation})
    kinds = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")
    for kind in kinds:
        sent = host.post("/drives/graphql", content=body, headers=session("a") | {"content-type": kind})
        assert sent.status_code == 415
    assert host.get("/drives/graphql", params={"query": mutation}, headers=session("a")).status_code == 405
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in host.options("/drives/graphql", headers=asked).headers
    assert ask(host, session("a")).json() == {"data": {"drives": {"nodes": []}}}


def test_the_rows_of_the_host_have_the_present_paths_of_their_files_in_their_order(host):
    _, folder = create(host, "a", "a91", "a91")
    other, _ = create(host, "b", "b/7", "b%2F7")
    joined.INVOICES["ana"] = [("2", folder["id"]), ("1", other), ("3", "drive:gone"), ("4", ""), ("5", folder["id"])]
    rename = {
        "query": 'mutation($path: Path!) { moveDriveNode(input: {node: {path: $path}, key: "now"}) { node { path } } }'
    }
    assert "errors" not in ask(host, session("a"), rename, path=folder["path"]).json()
    found = {"id": folder["id"], "path": "a91/now", "name": "‮in"}
    rows = host.get("/invoices", headers=session("a")).json()
    assert rows == [
        {"number": number, "file": file}
        for number, file in (("2", found), ("1", None), ("3", None), ("4", None), ("5", found))
    ]
    assert host.get("/invoices", headers=session("e")).json() == []


def test_the_limits_of_a_batch_are_those_of_the_page(host):
    by_ids = "query($list: [ID!]!) { list: nodes(ids: $list) { id } }"
    by_paths = "query($list: [Path!]!) { list: drivesByPath(paths: $list) { id } }"
    (most,) = [int(one.replace(",", "")) for one in re.findall(r"ids or paths in one request \| ([\d,]+)", PAGE)]
    for query, start in ((by_ids, "drive:"), (by_paths, "a/" * 31)):
        several = [f"{start}{number:050}" for number in range(most)]
        assert ask(host, session("a"), {"query": query}, list=several).json() == {"data": {"list": [None] * most}}
        (error,) = ask(host, session("a"), {"query": query}, list=[*several, start]).json()["errors"]
        assert error["extensions"]["code"] == "LIMIT_EXCEEDED"


def test_the_programs_of_the_page_are_those_of_the_example():
    source = (ROOT / "examples" / "joined.py").read_text("utf-8")
    programs = blocks("py", PAGE)
    assert len(programs) > 1
    for program in programs:
        for part in program.split("\n\n\n"):
            assert f"{part.rstrip()}\n" in source


def test_the_range_of_the_page_finds_what_is_below_a_path_and_nothing_else():
    *make, select = [one for one in blocks("sql", PAGE)[0].split(";") if one.strip()]
    below = ["US/NE", "US/NE/!", "US/NE/Omaha/68118", "US/NE/%2F", "US/NE/\U0010ffff"]
    others = ["US", "US/NE!", "US/NE-1/x", "US/NE0", "US/NEVADA", "US/ne/x", "US/N_/x", "\u202eUS/NE/x"]
    with closing(sqlite3.connect(":memory:")) as database:
        for statement in make:
            database.execute(statement)
        database.executemany("INSERT INTO place VALUES (?, ?)", [(path, path) for path in others + below])
        assert sorted(path for (path,) in database.execute(select)) == sorted(below)
