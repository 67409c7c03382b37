"""Fixtures of the tests of the explorer's page: pages that complain of nothing and ask no other server."""

import pytest

from tests.browser import Visit
from tests.graph.explorer.steps import DEVICES


@pytest.fixture
def visit(browser):
    """Opens pages of a server; at the end nothing was asked of another one, and nothing was refused by the policy.

    With `is_live` the page is opened when it is told of changes. Complaints that begin with a text in `expected` are
    left out.

    Tests name the fixture of their server first: it ends last, for it waits for the event streams of pages.
    """
    visit, servers = Visit(browser), []

    def open_page(url, address="", device="light", prepare=lambda page: None, is_live=False):
        page = visit.page(**DEVICES[device], locale="en-GB", timezone_id="UTC")
        prepare(page)
        if is_live:
            with page.expect_response(lambda answer: "event-stream" in answer.headers.get("content-type", "")):
                page.goto(f"{url}/{address}")
        else:
            page.goto(f"{url}/{address}")
        servers.append(url)
        return page

    open_page.complaints, open_page.expected = visit.complaints, []
    yield open_page
    visit.close()
    assert [one for one in visit.asked if not one.startswith(tuple(f"{url}/" for url in servers))] == []
    assert [one for one in visit.complaints if not one.startswith(tuple(open_page.expected))] == []
