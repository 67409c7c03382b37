"""scripts/audit-javascript: asks a registry for holes in exactly the JavaScript that is copied into the package."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.readme import ROOT
from tests.serving import handling

SCRIPTS = ROOT / "scripts"
BUNDLE = json.loads((SCRIPTS / "graphiql-bundle.json").read_text())


class Registry(BaseHTTPRequestHandler):
    """npm's registry, which knows the versions that it was asked for, and some holes."""

    asked: ClassVar[dict[str, list[str]]] = {}
    holes: ClassVar[dict[str, list[dict[str, Any]]]] = {}
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.update(json.loads(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body))
        self._send(self.holes)

    def do_GET(self) -> None:
        name = self.path[1:].replace("%2f", "/")
        versions = {one: {"name": name, "version": one} for one in self.asked.get(name, ())}
        self._send({"name": name, "versions": versions, "dist-tags": {}})

    def _send(self, value: object) -> None:
        content = json.dumps(value if self.status == 200 else {}).encode()
        self.send_response(self.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def hole(identifier: str, versions: str) -> list[dict[str, Any]]:
    return [
        {
            "id": 1, "url": f"https://github.com/advisories/{identifier}", "title": "A hole", "severity": "high",
            "vulnerable_versions": versions, "cwe": [], "cvss": {"score": 5, "vectorString": None},
        }
    ]  # fmt: skip


def audit(url: str, folder: Path) -> tuple[int, str]:
    """The exit status of the script, and all that it wrote."""
    settings = {"registry": url, "cache": str(folder), "fetch_retries": "0"}
    settings |= {"userconfig": os.devnull, "noproxy": "127.0.0.1"}  # somebody's own may name a proxy, or credentials
    environment = os.environ | {f"npm_config_{name}": value for name, value in settings.items()}
    ended = subprocess.run(
        [sys.executable, SCRIPTS / "audit-javascript"], env=environment, capture_output=True, text=True, timeout=120
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.thorough
@pytest.mark.skipif(not shutil.which("npm"), reason="npm is missing")
def test_every_vendored_package_is_asked_for_and_a_hole_that_is_not_accepted_fails_the_audit(tmp_path: Path) -> None:
    with handling(Registry) as url:
        accepted = {"markdown-it": hole("GHSA-38c4-r59v-3vqw", ">=13.0.0 <14.1.1")}
        Registry.holes = accepted | {"preact": hole("GHSA-0000-0000-0000", "<1")}  # of other versions
        status, output = audit(url, tmp_path / "first")
        assert (status, "accepted: markdown-it" in output) == (0, True), output
        assert Registry.asked == vendored()
        Registry.holes = accepted | {"preact": hole("GHSA-0000-0000-0000", "<99")}
        status, output = audit(url, tmp_path / "second")
        assert status == 1, output
        assert "HOLE: preact <99: A hole (https://github.com/advisories/GHSA-0000-0000-0000)" in output
        Registry.status = 405
        status, output = audit(url, tmp_path / "third")
        assert (status, "npm could not be asked for holes: 405" in output) == (1, True), output


def vendored() -> dict[str, list[str]]:
    """The versions that the scripts copy, and those that are bundled with them."""
    copied = {}
    for script in ("vendor-graphiql", "vendor-preact"):
        text = (SCRIPTS / script).read_text()
        versions = dict(re.findall(r"^([A-Z]+)=(\d[\d.]*)", text, re.MULTILINE))
        copied |= {name: [versions[one]] for name, one in re.findall(r"^fetch (\S+) \$([A-Z]+)$", text, re.MULTILINE)}
    assert len(copied) == 5
    return copied | {name: [version] for name, version in BUNDLE.items()}


def test_the_bundle_has_the_version_that_codemirror_says_of_itself() -> None:
    bundled = (ROOT / "graph" / "server" / "graphiql_assets" / "graphiql.min.js").read_text()
    assert f'.version="{BUNDLE["codemirror"]}"' in bundled
