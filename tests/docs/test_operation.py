"""docs/operation.md names every metric and every field of the log that there is, and no setting that there is not."""

import re
from pathlib import Path

from prometheus_client import REGISTRY

from graph.observability import metrics
from graph.observability.access_log import fields_of
from graph.observability.request_info import RequestInfo
from graph.server import gauges
from graph.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "operation.md").read_text()


def test_every_metric_is_explained_and_none_that_is_not_there():
    there = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in REGISTRY.collect()
        if family.name.startswith("clade_")
    }
    assert metrics.READS
    assert gauges.GAUGES
    assert set(re.findall(r"\bclade_\w+", PAGE)) == there


def test_every_field_of_a_requests_line_is_explained():
    class Context:
        how = "kept"

        def reads_report(self):
            return {"requests": 0, "rounds": 0, "items": 0, "units": 0.0, "cached": True}

    told = RequestInfo("id", "GET", "/", 0.0, kind="query", codes=["X"], trace_id="0", context=Context())
    table = PAGE[PAGE.index("## Logs") : PAGE.index("## Metrics")]
    assert {name for name in fields_of(told) if f"`{name}`" not in table} == set()


def test_it_names_no_setting_that_is_not_there():
    named = set(re.findall(r"CLADE_(?!TEST_)([A-Z_]+)", PAGE))
    assert named <= {name.upper() for name in Settings.model_fields}
