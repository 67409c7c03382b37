"""Drives as `clade/examples/drive.py` has them, each for one account: over HTTP, with keys of `clade key create`."""

import asyncio
import subprocess

import httpx
import pytest

from clade.examples.drive import DriveNode
from graph.app import create_app
from store.connect import open_store
from tests.conftest import CLADE
from tests.serving import serving
from tests.systems.asking import plant

FILES = [
    ("a91", "DRIVE"), ("a91/photos", "FOLDER"), ("a91/photos/beach.jpg", "FILE"),
    ("a91/docs", "FOLDER"), ("a91/docs/taxes.pdf", "FILE"),
    ("a911", "DRIVE"), ("a911/diary.txt", "FILE"), ("b20", "DRIVE"), ("b20/photos", "FOLDER"),
]  # fmt: skip
LISTING = "{ drives { nodes { path descendants { nodes { path } } siblings { nodes { path } } } } }"


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks a server of drives as an account, or as nobody."""
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    environment = {
        "CLADE_STORE": address, "CLADE_HIERARCHIES": "clade.examples.drive", "CLADE_READS": "granted",
        "CLADE_WRITES": "granted",
    }  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def fill():
        async with open_store(address) as store:
            await store.create()
            await plant(store, DriveNode, [(tuple(path.split("/")), level) for path, level in FILES])

    asyncio.run(fill())
    keys = {
        account: subprocess.check_output(
            [CLADE, "key", "create", "--name", account, "--grant", f"write:drive/{account}"], text=True, timeout=60
        ).strip()
        for account in ("a91", "a911")
    }
    with serving(create_app()) as url, httpx.Client() as client:

        def post(account, query, **variables):
            headers = {"authorization": f"Bearer {keys[account]}"} if account else {}
            return client.post(f"{url}/graphql", json={"query": query, "variables": variables}, headers=headers).json()

        yield post


def test_an_account_reads_only_its_own_drive(ask):
    for account in ("a91", "a911"):
        (drive,) = ask(account, LISTING)["data"]["drives"]["nodes"]
        paths = [drive["path"], *(one["path"] for one in drive["descendants"]["nodes"])]
        assert paths == [path for path, _ in sorted(FILES) if path.split("/")[0] == account]
        assert drive["siblings"]["nodes"] == []
        for path, _ in FILES:
            found = ask(account, "query($p: Path!) { driveNode(path: $p) { path level } }", p=path)
            assert "errors" not in found
            assert (found["data"]["driveNode"] is not None) == (path.split("/")[0] == account)
    (error,) = ask(None, LISTING)["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"


def test_an_account_writes_only_its_own_drive(ask):
    make = """mutation($parent: Path!) {
      createDriveNode(input: {parent: {path: $parent}, key: "new", name: "new", attributes: { folder: {} }}) {
        node { path changedBy } userErrors { code message field } } }"""
    made = ask("a91", make, parent="a91/docs")
    assert made["data"]["createDriveNode"]["node"] == {"path": "a91/docs/new", "changedBy": "a91"}
    for parent in ("a911", "b20/photos", "nobody"):
        (fault,) = ask("a91", make, parent=parent)["data"]["createDriveNode"]["userErrors"]
        assert fault["code"] == "NOT_FOUND"
        assert fault["message"] == (
            f"There is no drive at {parent}; write the current path, since former paths are redirected only in reads."
        )
    move = """mutation($p: Path!, $to: Path!) {
      moveDriveNode(input: {node: {path: $p}, to: {parent: {path: $to}}}) { node { path } userErrors { code } } }"""
    for path, to in (("a91/photos", "a911"), ("a911/diary.txt", "a91")):
        refused = ask("a91", move, p=path, to=to)["data"]["moveDriveNode"]
        assert refused == {"node": None, "userErrors": [{"code": "NOT_FOUND"}]}
    moved = ask("a91", move, p="a91/photos", to="a91/docs")["data"]["moveDriveNode"]
    assert moved == {"node": {"path": "a91/docs/photos"}, "userErrors": []}
