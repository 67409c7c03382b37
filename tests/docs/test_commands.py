"""Commands of all pages: they run as they are written, here or in the test of their page."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.registry import served
from tests.docs.clade_command import CLADE, install
from tests.readme import DOCS, ROOT, blocks
from tests.serving import serving

COMMAND_SECONDS = 180
NODES = '{"path": "US", "level": "COUNTRY"}\n{"path": "US/NE", "level": "STATE"}\n'
PREPARED = {
    "docs/backup.md": ("clade import location nodes.jsonl\n", "no findings"),
    "docs/changing-a-hierarchy.md": ("clade import location nodes.jsonl\n", "unchanged: 2"),
    "docs/languages.md": ("", "added: 2 (2 COUNTRY)"),
    "docs/operation.md": ("clade import location nodes.jsonl\n", '"dryRun": true'),
    "docs/quickstart.md": ("", "added: 3 (1 COUNTRY, 1 REGION, 1 CITY)"),
    "docs/stability.md": ("", "Nothing has changed since published.graphql that breaks clients."),
}
"""Pages whose commands run here: what has to be done before them, and what they print."""

SERVERS = ("docs/caching.md", "docs/frontends.md", "docs/modelling.md")
"""Pages that start servers with settings, and have no other commands."""

OWN_TESTS = {
    "CONTRIBUTING.md": "tests/test_scripts.py",
    "README.md": "tests/test_readme.py",
    "docs/deploy.md": "tests/docs/test_deploy.py",
    "docs/dynamodb.md": "tests/docs/test_dynamodb.py",
    "docs/federation.md": "tests/federation/test_guide.py",
    "docs/following-changes.md": "tests/docs/test_following_changes.py",
    "docs/from-your-table.md": "tests/docs/test_from_your_table.py",
    "docs/importing.md": "tests/docs/test_importing.py",
    "docs/performance.md": "tests/test_bench.py",
    "docs/publishing.md": "tests/docs/test_publishing.py",
    "docs/reference/commands.md": "tests/commands/test_main.py",
    "docs/rights.md": "tests/docs/test_rights.py",
    "docs/type-ahead.md": "tests/examples/test_type_ahead.py",
    "docs/typed-clients.md": "tests/clients/test_typed_clients.py",
}
"""Tests of the commands of other pages."""


def commands(page: str) -> str:
    found = blocks("sh", (ROOT / page).read_text("utf-8"))
    if page == "docs/quickstart.md":  # the first three start servers with the demo data and ask them
        assert [block.split()[0] for block in found[:3]] == ["scripts/serve", "pip", "curl"]
        found = found[3:]
    return "\n".join(found)


def test_every_page_with_commands_has_a_test():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    found = {page.relative_to(ROOT).as_posix() for page in pages if blocks("sh", page.read_text("utf-8"))}
    assert found == PREPARED.keys() | OWN_TESTS.keys() | set(SERVERS)
    assert all((ROOT / test).exists() for test in OWN_TESTS.values())


LONG = ("docs/backup.md", "docs/changing-a-hierarchy.md")


@pytest.mark.parametrize(
    "page", [pytest.param(one, marks=pytest.mark.thorough if one in LONG else []) for one in PREPARED]
)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path):
    text = (ROOT / page).read_text("utf-8")
    (tmp_path / "nodes.jsonl").write_text(blocks("json", text)[-1] if page == "docs/quickstart.md" else NODES)
    for table in blocks("csv", text):
        (tmp_path / "countries.csv").write_text(table)
    before, printed = PREPARED[page]
    environment = install(tmp_path / "bin") | {"CLADE_STORE": "sqlite:///clade.db"}
    ran = subprocess.run(
        ["sh", "-ec", before + commands(page)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert printed in ran.stdout, ran.stdout
    for shown in {"docs/quickstart.md": blocks("text", text)[-1:], "docs/languages.md": blocks("json", text)}.get(
        page, ()
    ):
        assert shown in ran.stdout


@pytest.mark.parametrize("page", [SERVERS[0], *(pytest.param(one, marks=pytest.mark.thorough) for one in SERVERS[1:])])
def test_the_servers_of_a_page_start(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = (ROOT / page).read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "storage.py").write_text("".join(blocks("py", text)[:1]))
    (tmp_path / "documents.json").write_text("{}")
    subprocess.run([CLADE, "table", "create"], check=True, timeout=COMMAND_SECONDS)
    for line in commands(page).split("\n"):
        if line:
            *settings, program, command = shlex.split(line)
            assert (program, command) == ("clade", "serve")
            with monkeypatch.context() as patch:
                for setting in settings:
                    patch.setenv(*setting.split("=", 1))
                with serving(create_app()) as url:
                    assert httpx.get(f"{url}/readyz", timeout=30).status_code == 200


def test_the_curl_command_of_the_quickstart_gets_the_response_that_is_shown(demo_server: str):
    text = (DOCS / "quickstart.md").read_text("utf-8")
    _, url, *options = shlex.split(blocks("sh", text)[2].replace("\\\n", ""))
    body = options[options.index("-d") + 1]
    response = httpx.post(
        url.replace("http://127.0.0.1:8000", demo_server), content=body, headers={"content-type": "application/json"}
    )
    assert response.json() == httpx.Response(200, text=blocks("json", text)[0]).json()


def test_the_class_that_is_searched_is_served(tmp_path: Path):
    file = tmp_path / "assets.py"
    code = blocks("python", (DOCS / "find-nodes.md").read_text("utf-8"))[0]
    file.write_text(f'"""Assets."""\n\n{code}')
    (hierarchy,) = served(str(file))
    assert hierarchy.definition().name == "asset"


def test_the_application_that_mounts_clade_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run([CLADE, "table", "create", "--store", "sqlite:///drives.db"], check=True, timeout=COMMAND_SECONDS)
    (program,) = blocks("py", (DOCS / "mounting.md").read_text("utf-8"))
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102  # of our own page
    with serving(names["app"]) as url:
        assert httpx.get(url).text == "The drives are at /drives/graphql."
        response = httpx.post(f"{url}/drives/graphql", json={"query": "{ drives { totalCount } }"})
        assert response.json()["data"] == {"drives": {"totalCount": 0}}


def test_every_setting_that_a_page_names_exists():
    listed = set(re.findall(r"`(CLADE_\w+)`", (DOCS / "reference" / "settings.md").read_text("utf-8")))
    for page in DOCS.rglob("*.md"):
        named = set(re.findall(r"\bCLADE_(?!TEST_)[A-Z_]*[A-Z]\b", page.read_text("utf-8")))
        assert named - listed - {"CLADE"} == set(), page
