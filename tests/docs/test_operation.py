"""docs/operation.md: every field of the access log, and only metrics and settings that exist."""

import re
from pathlib import Path

from prometheus_client import REGISTRY

from graph.observability.log import fields_of
from graph.observability.request_info import RequestInfo
from graph.server import metrics
from graph.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "operation.md").read_text()


def test_every_metric_that_is_named_exists():
    families = [family for family in REGISTRY.collect() if family.name.startswith("clade_")]
    existing = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert metrics.GAUGES
    named = set(re.findall(r"\bclade_\w+", PAGE))
    assert named
    assert named <= existing


def test_every_field_of_the_access_log_is_listed():
    class Context:
        how = "cached"

        def reads_report(self):
            return {"requests": 0, "rounds": 0, "items": 0, "units": 0.0, "cached": True}

    info = RequestInfo("id", "GET", "/", 0.0, kind="query", codes=["X"], trace_id="0", context=Context())
    table = PAGE[PAGE.index("## Logs") : PAGE.index("## Metrics")]
    assert {name for name in fields_of(info) if f"`{name}`" not in table} == set()


def test_every_setting_on_the_page_exists():
    named = set(re.findall(r"CLADE_(?!TEST_)([A-Z_]+)", PAGE))
    assert named <= {name.upper() for name in Settings.model_fields}
