"""Licences of the dependencies."""

import re
import subprocess
import sys

from tests.pinned import check_versions
from tests.readme import README

ROOT = README.parent
PAGE = (ROOT / "docs" / "licences.md").read_text()
ACCEPTED = {"0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"}
EXCEPTIONS = {"orjson": {"MPL-2.0"}, "pycountry": {"LGPL-2.1-only"}}
FOUND = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", PAGE, re.MULTILINE)
ROWS = [row for row in FOUND if row[0] not in {"package", "---"}]


def test_the_page_lists_the_installed_packages():
    check_versions(*dict(ROWS))
    written = subprocess.check_output([sys.executable, ROOT / "scripts" / "licences"], text=True, timeout=60)
    assert written == PAGE, "scripts/licences > docs/licences.md"


def test_every_licence_is_accepted():
    assert len(ROWS) > 40
    for package, licence in ROWS:
        asked = {one for part in licence.split(" AND ") for one in re.split(r" OR |[()]", part) if one.strip()}
        assert asked <= ACCEPTED | EXCEPTIONS.get(package, set()), f"{package} is {licence}"


def test_every_exception_is_explained_on_the_page():
    assert EXCEPTIONS.keys() <= dict(ROWS).keys()
    assert all(f"`{package}`" in PAGE for package in EXCEPTIONS)
