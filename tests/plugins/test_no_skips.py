"""The plugin that fails a run with skipped tests."""

import os
import subprocess
import sys

import pytest


def run(directory, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_one.py").write_text(f"import pytest\n{test}\ndef test_other(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.plugins.no_skips",
        "--rootdir",
        str(directory),
        *options,
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run([*command, str(directory)], env=alone, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="one process"),
        pytest.param(("-p", "xdist", "-n", "1"), id="workers", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize(
    "test",
    [
        "def test_one(): pytest.skip('no engine')",
        "@pytest.mark.skipif(True, reason='no engine')\ndef test_one(): pass",
        "pytest.skip('no engine', allow_module_level=True)",
    ],
)
def test_a_skipped_test_fails_the_run_and_its_reason_is_printed(tmp_path, test, options):
    ended = run(tmp_path, test, *options)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "no engine" in ended.stdout
    assert "1 skipped in" in ended.stdout.splitlines()[-1]


def test_an_expected_failure_is_not_a_skip(tmp_path):
    ended = run(tmp_path, "@pytest.mark.xfail\ndef test_one(): assert False")
    assert (ended.returncode, "Skipped tests are not allowed" in ended.stdout) == (0, False)
