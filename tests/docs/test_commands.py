"""Commands of all pages: they run as they are written, here or in the test of their page."""

import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from store.connect import opened
from tests.conftest import CLADE
from tests.engines import Engine
from tests.ports import free_port
from tests.readme import DOCS, ROOT, blocks
from tests.serving import serving
from tests.systems.writing import Clients

COMMAND_SECONDS = 180
NODES = '{"path": "US", "level": "COUNTRY"}\n{"path": "US/NE", "level": "STATE"}\n'
IMPORT = "clade import location nodes.jsonl"
AISLES = '''from clade import Node
class Shop(Node, hierarchy="{name}"):
    """A shop."""
class Aisle(Shop, under=None):
    """An aisle."""
'''


@dataclass(frozen=True)
class Commands:
    """How the commands of a page run: between which others, with which files, and what they print."""

    printed: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    warned: str = ""
    files: dict[str, str | tuple[str, int]] = field(default_factory=dict)  # texts, or blocks of the page
    shown: tuple[tuple[str, int], ...] = ()  # blocks of the page that are printed, too
    replaced: dict[str, str] = field(default_factory=dict)
    skipped: int = 0  # blocks
    on_dynamodb: bool = False


PAGES = {
    "../README": Commands(
        ("added: 15 (2 COUNTRY, 2 STATE, 3 CITY, 4 POSTAL_CODE, 4 STORE)", "the table is made", "Copied ", "Ana Ruiz"),
        files={"shops.csv": ("csv", 0), "organisation.py": ("python", 0), "people.jsonl": ("json", -1)},
        shown=(("text", 0),),
        skipped=3,  # which start a server with the demo data, ask it, and run the tests
        on_dynamodb=True,
    ),
    "backup": Commands(("no findings",), before=IMPORT),
    "caching": Commands(before="clade table create"),
    "changing-a-hierarchy": Commands(
        ("unchanged: 2", "added: 1 (1 AISLE)"),
        before=f"{IMPORT}\nCLADE_HIERARCHIES=shop.py clade import shop goods.jsonl",
        files={
            "goods.jsonl": '{"path": "A", "level": "AISLE"}\n',
            **{f"{name}.py": AISLES.format(name=name) for name in ("shop", "market")},
        },
    ),
    "deploy": Commands(
        ("the table is made", "2 nodes among them"),
        before=f"{IMPORT} --store sqlite:///shops.db",
        on_dynamodb=True,
    ),
    "dynamodb": Commands(
        ("the table is made", "arn:aws:dynamodb:eu-west-1:123456789012:table/clade", "no findings"),
        replaced={"create --recovery": "create"},  # which the engine lacks
        on_dynamodb=True,
    ),
    "from-your-table": Commands(
        tuple(f"{added}: 6 (1 CATEGORY, 2 PRODUCT, 3 VARIANT)" for added in ("would be added", "\nadded")),
        before=f"{sys.executable} catalogue.py",
        warned="not imported: warehouse (1)",
        files={"catalogue.py": ("python", 0)},
        shown=(("text", 0), ("text", 1)),
        on_dynamodb=True,
    ),
    "frontends": Commands(before="clade table create", files={"documents.json": "{}"}),
    "importing": Commands(
        (
            "many", "2 COUNTRY, 1 STATE, 2 CITY, 3 STORE", "staedte.csv: 2 rows, 3 nodes", "added: 3 (3 CATEGORY)",
            "feed.csv: 2 rows, 6 nodes", "outline.txt: 4 rows, 4 nodes",
            "1 row with state=draft: left out by --skip.", "named.csv: 3 rows, 5 nodes",
            "shop.json: 3 rows, 3 nodes", "parents.csv: 3 rows, 3 nodes", "codes.csv: 3 rows, 3 nodes",
            "sets.csv: 4 rows, 4 nodes",
            "added: 3 (2 CATEGORY, 1 PRODUCT)", "Lincoln CITY", "Nothing would change.", "Copied ", "no findings",
            "would be moved: 1 (1 CITY)\n  US/NE/Lincoln -> US/NE/Lancaster/Lincoln\nwould be added: 1 (1 COUNTY)",
            "Proposed command:\n  clade import location stores.csv --level country=Country",
            "path,level,name,id,code,7\n",
        ),
        after="head -c 24 nodes.csv; wc -l < nebraska.jsonl",
        skipped=15,  # which tests/docs/test_importing.py runs
        replaced={"clade import category sets.csv": "CLADE_STORE=sqlite:///sets.db clade import category sets.csv"},
        warned="delimiter ;, guessed",
        files={
            "stores.csv": ("csv", 11), "staedte.csv": ("csv", 12), "feed.csv": ("csv", 13),
            "places.csv": ("csv", 14), "named.csv": ("csv", 15), "menu.csv": ("csv", 16), "parents.csv": ("csv", 17),
            "sets.csv": ("csv", 18), "codes.csv": ("csv", 19), "garden.csv": ("csv", 20), "bags.csv": ("csv", 10),
            "outline.txt": ("text", 19), "shop.json": ("text", 22),
            "tree.json": ("json", 2),
            "more.jsonl": ("json", 3), "moving.jsonl": ("json", 4), "taxonomy.txt": ("text", 23),
        },
    ),
    "languages": Commands(
        ("added: 2 (2 COUNTRY)", "changed: 2 (2 CATEGORY)"),
        files={"countries.csv": ("csv", 0), "english.txt": ("text", 0), "german.txt": ("text", 1)},
        shown=(("json", 0), ("json", 1)),
    ),
    "modelling": Commands(before="clade table create", files={"shop/storage.py": ("py", 0)}),
    "quickstart": Commands(
        ("added: 3 (1 COUNTRY, 1 REGION, 1 CITY)",),
        files={"nodes.jsonl": ("json", -1)},
        shown=(("text", -1),),
        skipped=3,  # which start servers with the demo data and ask them
    ),
    "rights": Commands(("clade_",), before=IMPORT),
    "scripting": Commands(
        ("1 COUNTRY, 1 STATE", '"unchanged":2', '"findings":0', "\nshop\tread:location\n", "deleted: 1 node (1 STATE)",
         "would be made: 2 (3 nodes, at most 2 transactions", "\nmade: 3 (4 nodes)"),
        before=IMPORT, shown=(("json", 0),), files={"edits.jsonl": ("json", 1)}, warned="would be rejected: 1 line",
    ),
    "stability": Commands(("Nothing has changed since published.graphql that breaks clients.",)),
}  # fmt: skip

OWN_TESTS = {
    "CONTRIBUTING.md", "docs/federation.md", "docs/following-changes.md", "docs/performance.md", "docs/publishing.md",
    "docs/reference/commands.md", "docs/type-ahead.md", "docs/typed-clients.md",
}  # fmt: skip
"""Pages whose commands are tested elsewhere or below."""

SHELL = f"""
serve() {{
    env "$@" --port $PORT & server=$!
    until {sys.executable} -c "from urllib.request import urlopen; urlopen('http://127.0.0.1:$PORT/readyz')" 2>&-
    do kill -0 $server; done
    kill -INT $server
    wait $server
}}
"""
"""Runs a server until it is ready."""


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text("utf-8")


def run(page: str, folder: Path, engine: Engine | None = None) -> str:
    """Run the commands of a page in a folder; what they print."""
    given, text = PAGES.get(page, Commands()), text_of(page)
    for name, content in ({"nodes.jsonl": NODES} | given.files).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else blocks(content[0], text)[content[1]])
    commands = "\n".join(blocks("sh", text)[given.skipped :])
    commands = re.sub(r"^(?=(CLADE_\S+ )*clade serve)", "serve ", commands, flags=re.MULTILINE)
    environment = {**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", "PORT": str(free_port())}
    environment["CLADE_STORE"] = "sqlite:///clade.db"
    replaced = dict(given.replaced)
    if engine is not None:
        table = f"clade-{uuid.uuid4().hex}"
        replaced |= {"http://127.0.0.1:8001": engine.url, "//clade?": f"//{table}?", "//clade-2?": f"//{table}-2?"}
        environment |= {
            "AWS_ENDPOINT_URL_DYNAMODB": engine.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
        }  # fmt: skip
    for old, new in replaced.items():
        commands = commands.replace(old, new)
    ran = subprocess.run(
        ["sh", "-ec", f"{SHELL}{given.before}\n{commands}\n{given.after}"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for words in (*given.printed, *(blocks(language, text)[number] for language, number in given.shown)):
        assert words in ran.stdout, ran.stdout
    assert given.warned in ran.stderr
    return ran.stdout


def test_every_page_with_commands_has_a_test():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    found = {page.relative_to(ROOT).as_posix() for page in pages if blocks("sh", page.read_text("utf-8"))}
    assert found == {f"docs/{page}.md".removeprefix("docs/../") for page in PAGES} | OWN_TESTS


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page == "quickstart" else pytest.mark.thorough)
        for page in PAGES
        if page != "from-your-table"
    ],
)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, request: pytest.FixtureRequest):
    run(page, tmp_path, request.getfixturevalue("engine") if PAGES[page].on_dynamodb else None)


@pytest.mark.thorough
async def test_a_table_of_other_keys_is_imported_and_answers_the_query_of_the_page(engine: Engine, tmp_path: Path):
    run("from-your-table", tmp_path, engine)
    async with opened(f"sqlite:///{tmp_path}/catalogue.db") as store:
        (menu,) = blocks("graphql", text_of("from-your-table"))
        nodes = (await Clients(store).ask(menu))["category"]["children"]["nodes"]
    assert [(node["name"], node["price"]) for node in nodes] == [
        ("Dell XPS 13 Laptop", "1299"), ("LG 55-inch 4K Smart TV", "799.99"),
    ]  # fmt: skip
    assert [(one["key"], one["stock"]) for one in nodes[1]["children"]["nodes"]] == [("Black", 15), ("Silver", 8)]


STEP = re.compile(r"^```graphql\n(?P<query>.*?)^```$(?:\s*```json\n(?P<answer>.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.thorough
def test_a_draft_is_hidden_then_public_then_hidden(tmp_path: Path) -> None:
    """Each operation of the page is sent by the caller that the text before it names last."""
    text = text_of("publishing")
    (tmp_path / "shop.jsonl").write_text(blocks("json", text)[0])
    keys = dict(
        zip(("editor", "site"), re.findall(r"^clade_\S+$", run("publishing", tmp_path), re.MULTILINE), strict=True)
    )
    settings = Settings(store=f"sqlite:///{tmp_path}/shop.db", reads="granted", writes="granted")
    with serving(create_app(settings)) as url:

        def ask(caller: str, query: str) -> Any:
            headers = {"authorization": f"Bearer {keys[caller]}"}
            return httpx.post(f"{url}/graphql", json={"query": query}, headers=headers, timeout=60).json()

        compared = 0
        for step in STEP.finditer(text):
            reply = ask(re.findall(r"\b(editor|site)\b", text[: step.start()])[-1], step["query"])
            assert "errors" not in reply, reply
            if step["answer"]:
                compared += 1
                assert reply == json.loads(step["answer"])
        assert compared == 4
        hidden = ask("site", '{ category(path: "Shop/Televisions") { childCount } }')
        assert hidden["data"] == {"category": {"childCount": 0}}


def test_the_curl_commands_of_readme_and_quickstart_get_the_response_that_is_shown(demo_server: str):
    shown = json.loads(blocks("json", text_of("quickstart"))[0])
    for page in ("../README", "quickstart"):
        (curl,) = [block for block in blocks("sh", text_of(page)) if block.startswith("curl ")]
        _, url, *options = shlex.split(curl.replace("\\\n", ""))
        headers = dict(options[place + 1].split(": ") for place, word in enumerate(options) if word == "-H")
        url = url.replace("http://127.0.0.1:8000", demo_server)
        response = httpx.post(url, content=options[options.index("-d") + 1], headers=headers).json()
        assert ("extensions" in response) == ("clade-reads" in headers)
        assert response["data"] == shown["data"]
