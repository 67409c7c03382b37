"""Audits of the graphql-http project, for the GraphQL over HTTP draft."""

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.graph.small_app import SmallStore, small_app
from tests.serving import serving

CLIENT = Path(__file__).parents[2] / "clients" / "graphql-http-audits.mjs"
INSTALLED = CLIENT.parent.parent / "node_modules" / "graphql-http"


@pytest.mark.skipif(
    not shutil.which("node") or not INSTALLED.exists(), reason="node or graphql-http of tests/package.json is missing"
)
def test_all_61_audits_of_graphql_over_http_pass():
    with serving(small_app(SmallStore())) as url:
        run = subprocess.run(
            ["node", CLIENT, f"{url}/graphql"], capture_output=True, text=True, timeout=60, check=False
        )
    assert run.returncode == 0, run.stderr
    audits = [json.loads(line) for line in run.stdout.splitlines()]
    assert [audit for audit in audits if audit["status"] != "ok"] == []
    assert Counter(audit["name"].split()[0] for audit in audits) == {"MUST": 13, "SHOULD": 23, "MAY": 25}
