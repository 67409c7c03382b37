"""Fixtures of the tests of panels: a server that accepts writes, and pages that complain of nothing."""

import itertools

import pytest
from playwright.sync_api import Page

from clade import Settings
from tests.graph.explorer.panels.app import make_app
from tests.graph.explorer.panels.steps import SERVED, ask, created
from tests.serving import serving

REPORT_VIOLATIONS = (
    "globalThis.violated = []; addEventListener('securitypolicyviolation', e => violated.push(e.violatedDirective));"
)
COUNTRY = """mutation ($root: String!, $path: Path!, $state: Path!) {
  a: createLocation(input: {key: $root, name: "Country", attributes: { country: {} }}) { node { id } }
  b: createLocation(input: {parent: {path: $path}, key: "S", name: "State", attributes: { state: {
    population: 5 } }}) { node { id } }
  c: createLocation(input: {parent: {path: $state}, key: "City", name: "City", attributes: { city: {} }})
    { node { id } }
}"""


@pytest.fixture(scope="session")
def writable(tmp_path_factory):
    """The URL of a store with an empty table."""
    return created(f"sqlite:///{tmp_path_factory.mktemp('panels') / 'clade.db'}")


@pytest.fixture(scope="session")
def url(writable):
    with serving(make_app(Settings(store=writable, writes="on", hierarchies=SERVED))) as url:
        yield url


@pytest.fixture
def visit(browser, url):
    """Opens a panel; at the end the page asked no other server, and neither code nor policy complained."""
    complaints, pages = [], []

    def open_panel(
        panel: str, path: str = "", *, at: str = url, more: str = "", script: str = "", **options: object
    ) -> Page:
        page = browser.new_page(**{"viewport": {"width": 1000, "height": 900}, "locale": "en-US", **options})
        pages.append(page)
        page.on("request", lambda request: None if request.url.startswith(at) else complaints.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.add_init_script(REPORT_VIOLATIONS + script)
        page.set_default_timeout(10_000)
        page.goto(f"{at}/panels?panel={panel}&path={path}{more}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_panel
    for page in pages:
        complaints += page.evaluate("violated")
        page.close()
    assert complaints == []


@pytest.fixture
def data(url):
    """Sends a document to the server, as another client does."""
    return lambda document, **variables: ask(url, document, **variables)


@pytest.fixture(scope="session")
def keys():
    """Keys of roots that no other test has."""
    return (f"C{number}" for number in itertools.count())


@pytest.fixture
def country(data, keys):
    """The path of a new country with a state, which has a city."""
    root = next(keys)
    data(COUNTRY, root=root, path=root, state=f"{root}/S")
    return root
