"""`clade key`: API keys are created, listed and revoked."""

import json
import os
import pty
import re
import subprocess
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from commands import main
from graph.hierarchies.locations import Location
from store.connect import open_store
from store.errors import BadInput
from tests.conftest import CLADE
from tests.systems.asking import plant


@pytest.fixture
async def table(tmp_path):
    """The address of a store with an empty table."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(url) as store:
        await store.create()
    return url


@pytest.fixture
def run(table):
    def call(*arguments):
        return CliRunner().invoke(main.app_of(), ["key", *arguments], env={"CLADE_STORE": table, "COLUMNS": "200"})

    return call


KEY = re.compile(r"clade_([0-9a-f]{16})_([\w-]{43})\n")


def id_in(shown):
    return KEY.fullmatch(shown.stdout)[1]


def secret_in(shown):
    return KEY.fullmatch(shown.stdout)[2]  # it may hold underscores itself


def test_a_key_is_shown_once_then_listed_then_revoked(run):
    made = run("create", "--name", "shop", "--grant", "read:location", "--grant", "write:location/US/NE")
    key_id = id_in(made)
    assert made.exit_code == 0
    assert key_id in made.stderr
    listed = run("list").stdout
    for text in (key_id, "shop", "read:location", "write:location/US/NE", "never expires"):
        assert text in listed
    assert secret_in(made) not in listed
    assert "Revoked key" in run("revoke", key_id).stdout
    assert "revoked 20" in run("list").stdout
    assert "was already revoked" in run("revoke", key_id).stdout


def test_grants_and_names_are_listed_as_they_are_and_whole_on_a_narrow_terminal(table):
    name, grants = "[red]:smile:", ["read:category", f"read:location/US/[NE]/{'Omaha-' * 9}end"]
    settings = {**os.environ, "CLADE_STORE": table, "COLUMNS": "80"}
    words = ["key", "create", "--name", name, *[word for grant in grants for word in ("--grant", grant)]]
    CliRunner().invoke(main.app_of(), words, env=settings)
    listed = CliRunner().invoke(main.app_of(), ["key", "list"], env=settings).stdout
    assert listed.split("\t")[1:3] == [name, ", ".join(grants)], "no borders, heading and line breaks in a pipe"
    parent, child = pty.openpty()
    with os.fdopen(parent, "rb", buffering=0) as terminal, os.fdopen(child, "wb") as output:
        subprocess.run([CLADE, "key", "list"], env={**settings, "NO_COLOR": "1"}, stdout=output, timeout=60, check=True)
        lines = terminal.read(1 << 16).decode().splitlines()
    cells = [line.split("│")[1:-1] for line in lines if "│" in line]
    _, found, granted, *_ = ("".join(part.strip() for part in column) for column in zip(*cells, strict=True))
    assert (found, granted) == (name, "".join(grants))


def test_json_has_all_keys_with_their_state_and_no_secrets(run):
    made = run("create", "--name", "Läden", "--grant", "read:location/FR", "--expires", "2999-01-31", "--json")
    created = json.loads(made.stdout)
    secret = created.pop("key")
    key = {
        "id": secret.split("_")[1], "name": "Läden", "grants": ["read:location/FR"],
        "expiresAt": "2999-02-01T00:00:00.000Z",
    }  # fmt: skip
    assert (created, made.stderr) == ({**key, "pathsWithoutNodes": ["location/FR"]}, "")
    for was_revoked in (False, True):
        (listed,) = json.loads(run("list", "--json").stdout)
        assert [listed.pop(name) is not None for name in ("createdAt", "revokedAt")] == [True, was_revoked]
        assert listed == {**key, "state": "REVOKED" if was_revoked else "ACTIVE"}
        assert json.loads(run("revoke", key["id"], "--json").stdout) == {**key, "wasRevoked": was_revoked}


def test_a_key_expires_after_days_or_at_the_end_of_a_day(run):
    run("create", "--grant", "read:location", "--expires", "90d")
    run("create", "--grant", "read:location", "--expires", "2999-01-31")
    listed = run("list").stdout
    assert "until 2999-02-01 00:00" in listed
    days = [
        (datetime.fromisoformat(found) - datetime.now(UTC).replace(tzinfo=None)).days
        for found in re.findall(r"until (\S+ \S+)", listed)
    ]
    assert min(days) in (89, 90)


@pytest.fixture
async def nodes(table):
    async with open_store(table) as store:
        await plant(store, Location, [(("US",), "COUNTRY"), (("US", "North Plätte"), "STATE")])


@pytest.mark.usefixtures("nodes")
def test_a_grant_for_a_path_without_a_node_is_noted_and_the_key_is_created(run):
    grants = "write:location/US", "read:location/US/North%20Pl%c3%a4tte", "read:location/US/N%2FX", "write:location/FR"
    made = run("create", *[word for grant in (*grants, "read:category") for word in ("--grant", grant)])
    assert made.exit_code == 0
    assert id_in(made) in run("list").stdout
    assert made.stderr.splitlines()[1:] == [
        f"There is no node at location/{path}: create it, or create a key with another path."
        for path in ("FR", "US/N%2FX")
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--grant", "read:location/%C3%"), ("--grant", "read:location/A%00"),
        ("--grant", "read:nowhere"), ("--grant", "own:location"), ("--grant", "read:location//US"),
        ("--grant", "read:location", "--expires", "soon"), ("--grant", "read:location", "--expires", "2020-01-01"),
        ("--grant", "read:location", "--expires", "0h"), ("--grant", "read:location", "--expires", "00000d"),
        ("--grant", "read:location", "--expires", "9999-12-31"), ("--grant", "read:location", "--name", "a\nb"),
    ],
)  # fmt: skip
def test_an_invalid_option_creates_no_key(run, arguments):
    refused = run("create", *arguments)
    assert isinstance(refused.exception, BadInput)
    assert "clade_" not in refused.stdout


def test_a_key_needs_a_grant(run):
    assert run("create").exit_code == 2
