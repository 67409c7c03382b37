"""The type-ahead page in a real browser, over a few places, under its strict policy."""

import logging
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Page, expect

from clade import Settings
from examples.type_ahead import make_app
from graph.hierarchies.locations import Location
from tests.browser import Visit, wait_until
from tests.graph.explorer.steps import planted
from tests.serving import serving

HITS = "#hits [role=option]"
TOMORROW = datetime.now(UTC) + timedelta(days=1)  # a page's clock stops at a later time than its own


PLACES = [
    (["DE"], "COUNTRY", "Germany", {"names": {"de": "Deutschland", "fr": "Allemagne", "ja": "ドイツ"}}),
    (["JP"], "COUNTRY", "Japan", {"names": {"ja": "日本"}}),
    (["US"], "COUNTRY", "United States"),
    (["US", "NE"], "STATE", "Nebraska"),
    (["US", "NE", "Omaha"], "CITY", "Omaha", {"population": 486051}),
    *((["US", name], "CITY") for name in ("Omachi", "Omaezaki", "Omagari", "Omagh", "Omaha Beach", "Omak", "Oman")),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    store = planted(tmp_path_factory.mktemp("places") / "clade.db", Location, PLACES)
    with serving(make_app(Settings(store=store))) as url:
        yield url


@pytest.fixture
def new_page(browser, url, caplog):
    """Opens the page; at the end nothing was asked of another address, and neither browser nor server complained."""
    visit = Visit(browser)

    def open_page(**options):
        page = visit.page(**{"viewport": {"width": 1200, "height": 800}, "locale": "en-US", **options})
        page.goto(url)
        return page

    open_page.complaints = visit.complaints
    with caplog.at_level(logging.ERROR):  # a slow request is a warning, and a busy machine is slow
        yield open_page
    visit.close()
    assert {address for address in visit.asked if not address.startswith("data:")} <= {f"{url}/", f"{url}/graphql"}
    assert visit.complaints == []
    # Playwright's task of a request that a test holds to its end is collected some time later.
    assert [one for one in caplog.messages if "Page._on_route()" not in one] == []


@pytest.fixture
def page(new_page) -> Page:
    return new_page()


def field(page):
    return page.get_by_role("combobox", name="Place")


def status(page):
    return page.get_by_role("status")


def search(page, text):
    """Write a text, and wait for its hits."""
    field(page).fill(text)
    page.locator(HITS).first.wait_for()


def text_of(request):
    """What a request of the page searches."""
    return request.post_data_json["variables"]["text"]


def active(page):
    """The text of the option that the field says is active; None without one. It is the one that is selected."""
    name = field(page).get_attribute("aria-activedescendant")
    selected = page.locator(f"{HITS}[aria-selected=true]")
    if name is None:
        expect(selected).to_have_count(0)
        return None
    assert selected.get_attribute("id") == name
    return selected.inner_text()


def answer(route, names, complete):
    nodes = [
        {"id": name, "path": name, "key": name, "level": "CITY", "name": name, "nameLanguage": None, "names": [],
         "ancestors": []} for name in names
    ]  # fmt: skip
    route.fulfill(json={"data": {"searchLocations": {"complete": complete, "nodes": nodes}}})


class Held:
    """Requests of the page by their texts, which wait, so that they can be answered in any order."""

    def __init__(self, page):
        self.page, self.routes = page, {}
        page.route("**/graphql", lambda route: self.routes.update({text_of(route.request): route}))

    def search(self, text):
        """Write a text, and wait for its request."""
        field(self.page).fill(text)
        wait_until(self.page, lambda: text in self.routes)

    def answer(self, text, name):
        answer(self.routes[text], [name], True)


def test_letters_typed_in_a_row_are_one_request_and_hits_have_breadcrumbs(new_page):
    page, sent = new_page(apart=True), []
    page.on("request", lambda request: sent.append(text_of(request)))
    page.clock.install()
    page.clock.pause_at(TOMORROW)
    for letter in "oma":
        field(page).press(letter)
        page.clock.run_for(100)
    page.clock.run_for(100)
    omaha = page.locator(HITS, has_text="Nebraska")
    expect(omaha).to_be_visible()
    assert omaha.inner_text() == "Omaha city\nUnited States › Nebraska"
    assert omaha.locator("mark").all_inner_texts() == ["Oma"]
    expect(status(page)).to_have_text("The first 8 places.")
    field(page).fill("o")
    expect(status(page)).to_have_text("Type one letter more.")
    page.clock.run_for(10_000)
    field(page).fill("日")  # one character is a word in a script without spaces
    page.clock.run_for(200)
    expect(page.locator(HITS).first).to_have_text("Japan countryfound as 日本")
    assert sent == ["oma", "日"]


def test_keys_and_roles_are_those_of_a_combobox(page):
    listbox = page.get_by_role("listbox", name="Places")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_attribute("aria-expanded", "false")
    expect(listbox).to_be_hidden()
    search(page, "omah")
    expect(field(page)).to_have_attribute("aria-expanded", "true")
    assert field(page).get_attribute("aria-controls") == listbox.get_attribute("id")
    page.keyboard.press("Home")  # moves the caret while no option is active
    assert (active(page), field(page).evaluate("field => field.selectionStart")) == (None, 0)
    texts = page.locator(HITS).all_inner_texts()
    assert len(texts) >= 2
    for key, expected in [
        ("ArrowDown", texts[0]), ("ArrowDown", texts[1]), ("End", texts[-1]), ("ArrowDown", None),
        ("ArrowUp", texts[-1]), ("Home", texts[0]), ("ArrowUp", None),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert active(page) == expected, key
        expect(field(page)).to_be_focused()  # options are active, and never have the focus
    page.keyboard.press("Escape")
    expect(listbox).to_be_hidden()
    expect(field(page)).to_have_value("omah")
    page.keyboard.press("ArrowDown")
    assert active(page) == texts[0]
    page.keyboard.press("Enter")
    expect(listbox).to_be_hidden()
    expect(field(page)).to_have_value("Omaha")
    assert page.locator("#chosen dd").all_inner_texts()[:3] == ["city", "United States › Nebraska", "US/NE/Omaha"]
    page.keyboard.press("Escape")
    expect(field(page)).to_have_value("")
    expect(status(page)).to_have_text("Type two letters or more.")


@pytest.mark.thorough
def test_options_show_the_name_in_the_readers_language_and_the_name_that_matched(new_page):
    page = new_page(locale="fr-CA", viewport={"width": 360, "height": 720})
    search(page, "deutsch")
    germany = page.locator(HITS).first
    assert germany.inner_text() == "Allemagne country\nfound as Deutschland"
    assert germany.locator("[lang=fr]").inner_text() == "Allemagne"
    assert germany.locator("[lang=de] mark").inner_text() == "Deutsch"
    page.get_by_label("Names").focus()
    page.get_by_label("Names").select_option("日本語")
    expect(page.locator(HITS).first).to_contain_text("ドイツ")
    expect(page.get_by_role("listbox")).to_be_hidden()  # until the focus is in its field again
    field(page).press("ArrowDown")
    assert active(page).startswith("ドイツ country")
    assert page.evaluate("document.documentElement.scrollWidth") == 360, "it fits on a small screen"


def test_the_matched_part_is_marked_and_every_name_is_text(page):
    held = Held(page)
    for text, name, marked in [
        ("sao tome", "São Tomé", ["São", "Tomé"]),
        ("SAO", "Sa\u0303o Tome\u0301", ["Sa\u0303o"]),  # marks of their own stay with their letters
        ("grosse", "Großenhain", ["Große"]), ("gros", "Großenhain", ["Groß"]), ("lod", "Łódź", ["Łód"]),
        ("den", "Saint-Denis", ["Den"]),
        ("de", "Garden", []),  # only words begin
        ("京", "東京都", ["京"]), ("ba", "<b>Bad</b> & Co", ["Ba"]), ("al", "🏔 Alpha", ["Al"]),
        ("مدینه 2", "الی مـدينة ٢٠", ["مـدينة", "٢"]),
    ]:  # fmt: skip
        held.search(text)
        held.answer(text, name)
        shown = page.locator(f"{HITS} span").first
        expect(shown).to_have_text(name)
        assert shown.text_content() == name
        expect(shown.locator("mark")).to_have_text(marked)  # which may be those of the same name before
        assert shown.locator("b").count() == 0


@pytest.mark.thorough
def test_an_earlier_request_is_aborted_and_says_nothing(page):
    held, aborted = Held(page), []
    page.on("requestfailed", lambda request: aborted.append(text_of(request)))
    held.search("om")
    held.search("oma")
    held.answer("oma", "Omaha")
    expect(page.locator(HITS)).to_have_text(["Omaha city"])
    held.search("ommb")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    wait_until(page, lambda: aborted == ["om", "ommb"])
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value("")
    expect(status(page)).to_have_text("Type two letters or more.")


@pytest.mark.thorough
def test_errors_and_empty_results_are_said_and_enter_tries_again(new_page, page):
    answers = [
        lambda route: route.abort(),
        lambda route: route.fulfill(status=503, json={"errors": [{"message": "Too many requests; retry later."}]}),
        lambda route: route.fulfill(status=502, body="<html>"),
        lambda route: answer(route, "ABCDEFGH", complete=False),
    ]
    page.route("**/graphql", lambda route: (answers.pop(0) if answers else lambda one: one.continue_())(route))
    field(page).fill("oma")
    for said in (
        "The server cannot be reached.",
        "Too many requests; retry later.",
        "The server answered with HTTP status 502.",
    ):
        expect(status(page)).to_have_text(f"{said} Press Enter to try again.")
        page.keyboard.press("Enter")
    expect(status(page)).to_have_text("The first 8 places. There may be better ones: type on.")
    assert len(new_page.complaints) == 3  # of Chromium, about the failed requests
    new_page.complaints.clear()
    for text, said in [
        ("xqz", "No place has words that begin with “xqz”."),
        ("!!", "No place has words that begin with “!!”."),
        ("0 1 2 3 4 5 6 7 8", "text has 9 words; at most 8 are allowed. Press Enter to try again."),
    ]:
        field(page).fill(text)
        expect(status(page)).to_have_text(said)
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_the_policy_names_the_page_s_own_script_and_style_and_nothing_else(url):
    answer = httpx.get(url)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    names = "default-src script-src style-src connect-src img-src base-uri form-action frame-ancestors"
    assert set(policy) == set(names.split())
    assert (policy["default-src"], policy["connect-src"]) == ("'none'", "'self'")
    assert all(policy[kind].startswith("'sha256-") for kind in ("script-src", "style-src"))
    assert "innerHTML" not in answer.text
    assert httpx.get(f"{url}/readyz").json() == {"ready": True}
