"""Progress of long commands where there is no terminal."""

import pytest

from commands import progress


@pytest.fixture
def seconds(monkeypatch) -> list[float]:
    """The present time, which the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False, raising=False)
    return now


def test_the_first_estimate_leaves_out_what_comes_before_the_first_step(seconds, capsys):
    with progress.progress("Writing", "nodes", 100_000) as meter:
        seconds[0] += 60  # such as comparing a large tree
        meter(1_000)
        for _ in range(5):
            seconds[0] += 1
            meter(2_000)
    assert capsys.readouterr().err.splitlines() == [
        "Writing: 1,000 of 100,000 nodes",
        "Writing: 11,000 of 100,000 nodes, 2,000 a second, 44 s left",
    ]


def test_a_short_command_prints_nothing(seconds, capsys):
    with progress.progress("Reading", "rows") as meter:
        seconds[0] += progress.LINE_SECONDS - 1
        meter(1_000)
    assert capsys.readouterr().err == ""
