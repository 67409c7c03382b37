"""DynamoDB's store on the newest aiobotocore 3, without aioboto3: other tests run again in an environment of their own.

A thorough run has all tests of the store there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests import environments
from tests.engines import Engine
from tests.selection import thorough

ROOT = Path(__file__).parents[3]
LEFT_OUT = {"aioboto3", "aiobotocore", "boto3", "botocore", "clade-graphql", "s3transfer"}
INSTALL_SECONDS, TEST_SECONDS, ALL_SECONDS = 200, 400, 3_000
HERE, PROTOCOL = "tests/store/dynamodb", "tests/store/engine/test_protocol.py"
CREDENTIALS, TLS = f"{HERE}/test_credentials.py", f"{HERE}/test_tls.py"
TESTS = [
    f"{HERE}/test_client.py",
    f"{CREDENTIALS}::test_the_client_is_made_by_aioboto3_where_it_is_installed",
    f"{CREDENTIALS}::test_credentials_are_refreshed_before_they_expire[instance]",
    f"{CREDENTIALS}::test_credentials_are_refreshed_before_they_expire[sso session]",
    f"{CREDENTIALS}::test_rejected_credentials_are_replaced_by_newer_ones[web identity]",
    f"{TLS}::test_the_right_name_is_accepted_on_both_paths",
    f"{TLS}::test_any_other_certificate_is_refused_on_both_paths[another name]",
    f"{TLS}::test_no_variable_turns_the_verification_off",
    f"{PROTOCOL}::test_every_kind_of_value_comes_back_as_it_was[dynamodb]",
    f"{PROTOCOL}::test_all_failed_conditions_are_reported[dynamodb]",
    f"{PROTOCOL}::test_of_many_who_write_the_same_at_once_one_wins[dynamodb]",
    f"{PROTOCOL}::test_a_scan_brings_every_item_once_whatever_it_is[dynamodb]",
]
ON_DYNAMODB = "not sqlite and not extenddb"
ALL_TESTS = [HERE, PROTOCOL, "--thorough", "-k", ON_DYNAMODB, "--ignore", f"{HERE}/test_aiobotocore.py"]


def run(*command: str | Path, seconds: float, **environment: str) -> str:
    """The output of a command, which must succeed."""
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=seconds
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the packages of this one, but aiobotocore 3 and no aioboto3."""
    folder = tmp_path_factory.mktemp("environment")
    kept = {name: version for name, version in environments.versions().items() if name not in LEFT_OUT}
    interpreter = environments.linked(folder / "made", kept)
    (folder / "versions.txt").write_text("\n".join(f"{name}=={version}" for name, version in kept.items()))
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-compile"]
    # With the versions of what is there, pip replaces nothing behind the links.
    run(*pip, "--constraint", folder / "versions.txt", "aiobotocore>=3,<4", seconds=INSTALL_SECONDS)
    return interpreter


@pytest.mark.thorough
def test_the_environment_has_aiobotocore_3_alone(python: Path) -> None:
    code = "import aiobotocore, importlib.util as u; print(aiobotocore.__version__, u.find_spec('aioboto3'))"
    version, aioboto3 = run(python, "-c", code, seconds=60).split()
    assert (Version(version).major, aioboto3) == (3, "None")


@pytest.mark.thorough
def test_the_store_works_on_aiobotocore_alone(python: Path, engine: Engine) -> None:
    if not engine.exact:
        pytest.skip("the tests need an engine that pages and counts like DynamoDB")
    tests, seconds = (ALL_TESTS, ALL_SECONDS) if thorough() else (TESTS, TEST_SECONDS)
    pytest_command = [python, "-m", "pytest", "-p", "no:cacheprovider"]
    output = run(*pytest_command, *tests, seconds=seconds, CLADE_TEST_DYNAMODB=engine.url)
    assert " passed" in output
    assert thorough() or "skipped" not in output
