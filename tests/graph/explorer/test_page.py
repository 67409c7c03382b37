"""Explorer page and its files over HTTP: policy, caching, compression, and the setting."""

import gzip
import re
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from graph.explorer.page import FILES
from tests.graph.asset_pages import check_page, check_sums
from tests.graph.small_app import SmallStore, small_app
from tests.serving import serving

JAVASCRIPT = "text/javascript; charset=utf-8"


@contextmanager
def client(**settings):
    with serving(small_app(SmallStore(), settings=settings)) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def browser_client():
    with client() as found:
        yield found


def test_the_page_has_exactly_the_agreed_policy_and_nothing_inline(browser_client):
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    check_page(browser_client.get("/"), policy, scripts=2)


def test_the_vendored_files_are_those_of_the_recorded_sums():
    check_sums(FILES, "vendor/", {"preact.js", "LICENSE-htm", "LICENSE-preact"})


def test_no_module_makes_html_or_code_of_text():
    for name in FILES.names:
        text = FILES.content(name).decode()
        if name.startswith("vendor/"):
            continue
        for word in ("innerHTML", "dangerouslySetInnerHTML", "insertAdjacentHTML", "eval(", "new Function", "Storage"):
            assert word not in text, f"{name} has {word}"


def imports(name):
    """The modules that a module imports before it runs."""
    folder = Path(name).parent
    return {str(folder / path) for path in re.findall(r'from "\./([^"]+\.js)"', FILES.content(name).decode())}


def test_the_page_names_the_modules_that_it_begins_with_and_none_that_comes_later(browser_client):
    named = re.findall(r'rel="modulepreload" href="explorer/static/\w+/([^"]+)"', browser_client.get("/").text)
    assert set(named) == {"session.js", "main.js"}.union(*map(imports, named))
    assert len(named) == len(set(named)) > 10
    assert "world.js" not in named


def test_files_are_cached_for_good_under_the_digest_of_the_page(browser_client):
    page = browser_client.get("/").text
    assert f'src="explorer/static/{FILES.digest}/main.js"' in page
    for name in FILES.names:
        if not name.endswith(".js"):
            continue
        answer = browser_client.get(f"/explorer/static/{FILES.digest}/{name}")
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert (answer.status_code, answer.headers["content-type"]) == (200, JAVASCRIPT)


def test_files_of_an_old_page_are_asked_for_anew(browser_client):
    answer = browser_client.get("/explorer/static/0123456789abcdef/main.js")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.content == FILES.content("main.js")


def test_files_are_compressed_for_who_takes_that(browser_client):
    address = f"/explorer/static/{FILES.digest}/main.js"
    zipped = browser_client.get(address, headers={"accept-encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) == len(FILES.zipped("main.js"))
    assert gzip.decompress(FILES.zipped("main.js")) == FILES.content("main.js")
    assert "content-encoding" not in browser_client.get(address, headers={"accept-encoding": "identity"}).headers


@pytest.mark.parametrize("address", ["/", f"/explorer/static/{FILES.digest}/explorer.css"])
def test_what_a_browser_has_is_not_sent_again(browser_client, address):
    tag = browser_client.get(address).headers["etag"]
    for sent in (tag, f"W/{tag}", f'"other", {tag}', f'W/"other" ,W/{tag}', "*"):
        again = browser_client.get(address, headers={"if-none-match": sent})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), sent
    for sent in ('"other"', 'W/"other", "another"', tag.strip('"')):
        assert browser_client.get(address, headers={"if-none-match": sent}).status_code == 200, sent


@pytest.mark.parametrize(
    "name",
    ["nothing.js", "index.html", "vendor/LICENSE-htm", "..%2fpage.py", "%2e%2e/page.py", "main.js%00"],
)
def test_no_other_file_is_served(browser_client, name):
    assert browser_client.get(f"/explorer/static/x/{name}").status_code == 404


def test_the_page_links_to_graphiql_where_that_is_on(browser_client):
    assert 'data-graphiql="graphql"' in browser_client.get("/").text
    with client(graphiql=False) as without:
        assert 'data-graphiql=""' in without.get("/").text


@pytest.mark.parametrize("settings", [{"explorer": False}, {"production": True}])
def test_without_the_explorer_the_root_leads_to_graphql(settings):
    with client(**settings) as off:
        answer = off.get("/")
        assert (answer.status_code, answer.headers["location"]) == (307, "graphql")  # below any prefix of a proxy
        assert off.get(f"/explorer/static/{FILES.digest}/main.js").status_code == 404


def test_in_production_it_is_there_where_it_is_set():
    with client(production=True, explorer=True) as on:
        assert "<html" in on.get("/").text
