"""Drives as `examples/drive.py` has them, each for one account: over HTTP, with keys of `clade key create`."""

import asyncio
import os
import shutil
import subprocess

import httpx
import pytest

from examples.drive import DriveNode
from graph.app import create_app
from graph.settings import Settings
from store.connect import open_store
from tests.conftest import CLADE
from tests.serving import serving
from tests.systems.asking import plant

HIERARCHIES = "examples.drive"
FILES = [
    ("a91", "DRIVE"), ("a91/photos", "FOLDER"), ("a91/photos/beach.jpg", "FILE"),
    ("a91/docs", "FOLDER"), ("a91/docs/taxes.pdf", "FILE"),
    ("a911", "DRIVE"), ("a911/diary.txt", "FILE"), ("b20", "DRIVE"), ("b20/photos", "FOLDER"),
]  # fmt: skip
LISTING = "{ drives { nodes { path descendants { nodes { path } } } } }"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file with the drives, and the keys of two accounts."""
    file = tmp_path_factory.mktemp("drives") / "clade.db"
    address = f"sqlite:///{file}"

    async def fill():
        async with open_store(address) as store:
            await store.create()
            await plant(store, DriveNode, [(tuple(path.split("/")), level) for path, level in FILES])

    asyncio.run(fill())
    command = [CLADE, "key", "create", "--store", address]
    environment = {**os.environ, "CLADE_HIERARCHIES": HIERARCHIES}
    keys = {
        account: subprocess.check_output(
            [*command, "--name", account, "--grant", f"write:drive/{account}"], env=environment, text=True, timeout=60
        ).strip()
        for account in ("a91", "a911")
    }
    return file, keys


@pytest.fixture
def ask(made, tmp_path):
    """Asks a server of drives as an account, or as nobody."""
    file, keys = made
    store = f"sqlite:///{shutil.copy(file, tmp_path)}"
    app = create_app(Settings(store=store, hierarchies=HIERARCHIES, reads="granted", writes="granted"))
    with serving(app) as url, httpx.Client() as client:

        def post(account, query, **variables):
            headers = {"authorization": f"Bearer {keys[account]}"} if account else {}
            return client.post(f"{url}/graphql", json={"query": query, "variables": variables}, headers=headers).json()

        yield post


def test_an_account_reads_only_its_own_drive(ask):
    for account in ("a91", "a911"):
        (drive,) = ask(account, LISTING)["data"]["drives"]["nodes"]
        paths = [drive["path"], *(one["path"] for one in drive["descendants"]["nodes"])]
        assert paths == [path for path, _ in sorted(FILES) if path.split("/")[0] == account]
        for path, _ in FILES:
            found = ask(account, "query($p: Path!) { driveNode(path: $p) { path level } }", p=path)
            assert "errors" not in found
            assert (found["data"]["driveNode"] is not None) == (path.split("/")[0] == account)
    (error,) = ask(None, LISTING)["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"


def test_an_account_writes_only_its_own_drive(ask):
    make = """mutation($parent: Path!) {
      createDriveNode(parent: $parent, key: "new", name: "new", attributes: { folder: {} }) {
        node { path changedBy } } }"""
    made = ask("a91", make, parent="a91/docs")
    assert made["data"]["createDriveNode"]["node"] == {"path": "a91/docs/new", "changedBy": "a91"}
    for parent in ("a911", "b20/photos", "nobody"):
        (error,) = ask("a91", make, parent=parent)["errors"]
        assert error["extensions"]["code"] == "NOT_FOUND"
        assert error["message"] == (
            f"There is no drive at {parent}; write the current path, since former paths are redirected only in reads."
        )
    move = "mutation($p: Path!, $to: Path) { moveDriveNode(path: $p, to: $to) { node { path } } }"
    assert ask("a91", move, p="a91/photos", to="a911")["errors"][0]["extensions"]["code"] == "NOT_FOUND"
    assert ask("a91", move, p="a911/diary.txt", to="a91")["errors"][0]["extensions"]["code"] == "NOT_FOUND"
    assert ask("a91", move, p="a91/photos", to="a91/docs")["data"]["moveDriveNode"]["node"]["path"] == "a91/docs/photos"
