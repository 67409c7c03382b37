"""Load on a server whose engine fails: every response is correct or the error of an unavailable store.

Short by default; docs/operation.md has the results with CLADE_TEST_LOAD_SECONDS=300 and CLADE_TEST_OUTAGE_SECONDS=30.
"""

import os

import pytest

from bench import endurance

LOAD_SECONDS = float(os.environ.get("CLADE_TEST_LOAD_SECONDS") or 8.0)
OUTAGE_SECONDS = float(os.environ.get("CLADE_TEST_OUTAGE_SECONDS") or 3.0)
REQUEST_SECONDS = 10.0
pytestmark = pytest.mark.usefixtures("lasting_engine")  # the load starts its own
LONG = LOAD_SECONDS >= 60  # long enough to compare memory


@pytest.mark.thorough
async def test_no_response_is_wrong_if_one_call_in_a_hundred_fails(tmp_path):
    report = await endurance.endure(LOAD_SECONDS, tmp_path)
    print(endurance.summary(report, LOAD_SECONDS))
    assert report.wrong == []
    assert report.answers
    assert report.writes > endurance.WRITERS
    assert len(report.errors) < len(report.answers) / 100
    if LONG:
        assert report.end_mb < report.warm_mb * 1.1


@pytest.mark.thorough
async def test_a_killed_engine_causes_only_clean_errors_until_it_is_back(tmp_path):
    seconds = 3 * OUTAGE_SECONDS + 6
    report = await endurance.endure(seconds, tmp_path, outage=OUTAGE_SECONDS)
    print(endurance.summary(report, seconds))
    assert report.wrong == []
    assert set(report.codes) <= {"UNAVAILABLE", "TIMEOUT"}
    assert report.codes["UNAVAILABLE"] > 0
    assert max(took for _, took, _ in report.errors) < REQUEST_SECONDS + 2
    assert report.recovered_seconds < 5
    assert any(at > report.back_at for at, _ in report.answers)
