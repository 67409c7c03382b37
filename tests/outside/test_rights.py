"""Rights in a short form, with fixed seeds: what is hidden changes no byte of a response."""

import time

import pytest

from tests.outside.failures import Wrong
from tests.outside.known import KNOWN
from tests.outside.processes import Engine, place
from tests.outside.rights import RIGHTS, SHARED, VISIBLE_LIMIT, full_search

KINDS = ["sqlite", "dynamodb"]


def _skip_without_engine(kind):
    if kind == "dynamodb" and Engine.binary() is None:
        pytest.skip("npm's @dynoxide/linux-x64 is missing")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_hidden_changes_no_byte_of_a_response(kind):
    _skip_without_engine(kind)
    with place(kind) as found:
        assert RIGHTS.run(found, 1, time.monotonic())


@pytest.mark.xfail(SHARED in KNOWN, reason=KNOWN.get(SHARED, ""), raises=Wrong, strict=True)
def test_a_full_search_does_not_depend_on_what_is_hidden():
    with place("sqlite") as found:
        full_search(found, VISIBLE_LIMIT + 1)
