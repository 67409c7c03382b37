"""Reference pages: what scripts/reference prints from the code, with every error code that the code can send."""

import re
import subprocess
import sys

import pytest

from graph import errors
from graph.errors import ERROR_CODES
from store.errors import CladeError
from tests.readme import README

ROOT = README.parent


@pytest.mark.parametrize("page", ["schema", "settings", "errors", "commands", "metrics"])
def test_a_page_is_the_output_of_the_script(page):
    printed = subprocess.check_output([sys.executable, ROOT / "scripts" / "reference", page], text=True, timeout=60)
    file = ROOT / "docs" / "reference" / f"{page}.md"
    assert file.read_text("utf-8") == printed, f"scripts/reference {page} > docs/reference/{page}.md"


def test_every_error_code_is_listed_once():
    codes = {value for name, value in vars(errors).items() if name.isupper() and is_code(value)}
    kinds = [CladeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        codes.add(kind.code)
    assert sorted(code.name for code in ERROR_CODES) == sorted(codes)


def is_code(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Z_]+", value) is not None
