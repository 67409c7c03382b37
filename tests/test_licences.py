"""Under which licences the packages are that Clade runs with."""

import re
import subprocess
import sys

from tests.readme import README

ROOT = README.parent
PAGE = (ROOT / "docs" / "licences.md").read_text()
AGREED = {"0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0"}
EXCEPT = {"orjson": {"MPL-2.0"}, "pycountry": {"LGPL-2.1-only"}}
FOUND = re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", PAGE, re.MULTILINE)
ROWS = [row for row in FOUND if row[0] not in {"package", "---"}]


def test_the_page_tells_what_is_installed():
    written = subprocess.check_output([sys.executable, ROOT / "scripts" / "licences"], text=True, timeout=60)
    assert written == PAGE, "scripts/licences > docs/licences.md"


def test_every_licence_is_one_that_was_agreed_to():
    assert len(ROWS) > 40
    for package, licence in ROWS:
        asked = {one for part in licence.split(" AND ") for one in re.split(r" OR |[()]", part) if one.strip()}
        assert asked <= AGREED | EXCEPT.get(package, set()), f"{package} is {licence}"


def test_what_is_excepted_is_on_the_page_with_its_reason():
    assert EXCEPT.keys() <= dict(ROWS).keys()
    assert all(f"`{package}`" in PAGE for package in EXCEPT)
