"""scripts/audit-javascript: asks a registry for holes in exactly the JavaScript that is copied into the package."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "scripts"
BUNDLE = json.loads((SCRIPTS / "graphiql-bundle.json").read_text())
pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="npm is missing")


class Registry(ThreadingHTTPServer):
    """An npm registry that knows the versions it was asked for, and the holes of `advisories`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: dict[str, list[str]] = {}
        self.advisories: dict[str, list[dict]] = {}
        self.status = 200

    def know(self, name: str, identifier: str, versions: str) -> None:
        """Add a hole of some versions of a package."""
        self.advisories[name] = [
            {
                "id": 1, "url": f"https://github.com/advisories/{identifier}", "title": "A hole", "severity": "high",
                "vulnerable_versions": versions, "cwe": [], "cvss": {"score": 5, "vectorString": None},
            }
        ]  # fmt: skip


class Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.asked |= json.loads(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
        self._send(self.server.advisories if self.server.status == 200 else {})

    def do_GET(self) -> None:
        name = self.path[1:].replace("%2f", "/")
        versions = {one: {"name": name, "version": one} for one in self.server.asked.get(name, ())}
        self._send({"name": name, "versions": versions, "dist-tags": {}})

    def _send(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def audit(registry: Registry, folder: Path) -> tuple[int, str]:
    """The exit status of the script, and all that it wrote."""
    settings = {"registry": registry.url, "cache": str(folder), "fetch_retries": "0"}
    settings |= {"userconfig": os.devnull, "noproxy": "127.0.0.1"}  # somebody's own may name a proxy, or credentials
    environment = os.environ | {f"npm_config_{name}": value for name, value in settings.items()}
    ended = subprocess.run(
        [sys.executable, SCRIPTS / "audit-javascript"], env=environment, capture_output=True, text=True, timeout=120
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_every_vendored_package_is_asked_for_by_its_version(registry: Registry, tmp_path: Path) -> None:
    status, output = audit(registry, tmp_path)
    assert status == 0, output
    copied = {}
    for script in ("vendor-graphiql", "vendor-preact"):
        text = (SCRIPTS / script).read_text()
        versions = dict(re.findall(r"^([A-Z]+)=(\d[\d.]*)", text, re.MULTILINE))
        fetched = re.findall(r"^fetch (\S+) \$([A-Z]+)$", text, re.MULTILINE)
        assert {variable for _, variable in fetched} == versions.keys()
        copied |= {name: [versions[variable]] for name, variable in fetched}
    assert len(copied) == 5
    assert registry.asked == copied | {name: [version] for name, version in BUNDLE.items()}


def test_a_hole_fails_the_audit_and_is_named(registry: Registry, tmp_path: Path) -> None:
    registry.know("preact", "GHSA-0000-0000-0000", "<99")
    status, output = audit(registry, tmp_path)
    assert status == 1, output
    assert "HOLE: preact <99: A hole (https://github.com/advisories/GHSA-0000-0000-0000)" in output


@pytest.mark.thorough
def test_a_hole_of_other_versions_is_none(registry: Registry, tmp_path: Path) -> None:
    registry.know("preact", "GHSA-0000-0000-0000", "<1")
    status, output = audit(registry, tmp_path)
    assert status == 0, output


@pytest.mark.thorough
def test_an_accepted_hole_is_named_and_does_not_fail_the_audit(registry: Registry, tmp_path: Path) -> None:
    registry.know("markdown-it", "GHSA-38c4-r59v-3vqw", ">=13.0.0 <14.1.1")
    status, output = audit(registry, tmp_path)
    assert status == 0, output
    assert "accepted: markdown-it" in output


@pytest.mark.thorough
def test_a_registry_that_does_not_answer_is_a_failure(registry: Registry, tmp_path: Path) -> None:
    registry.status = 405
    status, output = audit(registry, tmp_path)
    assert status == 1, output
    assert "npm could not be asked for holes: 405" in output


def test_the_bundle_has_the_version_that_codemirror_says_of_itself() -> None:
    bundled = (ROOT / "graph" / "server" / "graphiql_assets" / "graphiql.min.js").read_text()
    assert f'.version="{BUNDLE["codemirror"]}"' in bundled
