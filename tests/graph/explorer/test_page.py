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

MAIN = f"/explorer/static/{FILES.digest}/main.js"


@contextmanager
def serve(**settings):
    with serving(small_app(SmallStore(), settings=settings)) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    with serve() as found:
        yield found


def test_the_page_has_exactly_the_agreed_policy_and_nothing_inline(client):
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    check_page(client.get("/"), policy, scripts=2)


def test_the_vendored_files_are_those_of_the_recorded_sums_and_no_module_makes_html_or_code_of_text():
    check_sums(FILES, "vendor/", {"preact.js", "LICENSE-htm", "LICENSE-preact"})
    for name in FILES.names:
        text = "" if name.startswith("vendor/") else FILES.content(name).decode()
        for word in ("innerHTML", "dangerouslySetInnerHTML", "insertAdjacentHTML", "eval(", "new Function", "Storage"):
            assert word not in text, f"{name} has {word}"


def imports(name):
    """The modules that a module imports before it runs."""
    folder = Path(name).parent
    return {str(folder / path) for path in re.findall(r'from "\./([^"]+\.js)"', FILES.content(name).decode())}


def test_the_page_names_the_modules_that_it_begins_with_and_none_that_comes_later(client):
    named = re.findall(r'rel="modulepreload" href="explorer/static/\w+/([^"]+)"', client.get("/").text)
    assert set(named) == {"session.js", "main.js"}.union(*map(imports, named))
    assert len(named) == len(set(named)) > 10
    assert "world.js" not in named


def test_files_are_cached_for_good_under_the_digest_of_the_page_only(client):
    assert f'src="{MAIN[1:]}"' in client.get("/").text
    for name in (name for name in FILES.names if name.endswith(".js")):
        answer = client.get(f"/explorer/static/{FILES.digest}/{name}")
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    of_an_old_page = client.get("/explorer/static/0123456789abcdef/main.js")
    assert of_an_old_page.headers["cache-control"] == "no-cache"
    assert of_an_old_page.content == FILES.content("main.js")


def test_files_are_compressed_for_who_takes_that(client):
    zipped = client.get(MAIN, headers={"accept-encoding": "gzip"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert int(zipped.headers["content-length"]) == len(FILES.zipped("main.js"))
    assert gzip.decompress(FILES.zipped("main.js")) == FILES.content("main.js")
    assert "content-encoding" not in client.get(MAIN, headers={"accept-encoding": "identity"}).headers


@pytest.mark.parametrize("address", ["/", f"/explorer/static/{FILES.digest}/explorer.css"])
def test_what_a_browser_has_is_not_sent_again(client, address):
    tag = client.get(address).headers["etag"]
    for sent in (tag, f"W/{tag}", f'"other", {tag}', f'W/"other" ,W/{tag}', "*"):
        again = client.get(address, headers={"if-none-match": sent})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), sent
    for sent in ('"other"', 'W/"other", "another"', tag.strip('"')):
        assert client.get(address, headers={"if-none-match": sent}).status_code == 200, sent


@pytest.mark.parametrize(
    "name", ["nothing.js", "index.html", "vendor/LICENSE-htm", "..%2fpage.py", "%2e%2e/page.py", "main.js%00"]
)
def test_no_other_file_is_served(client, name):
    assert client.get(f"/explorer/static/x/{name}").status_code == 404


def test_the_page_links_to_graphiql_where_that_is_on_and_is_there_in_production_where_it_is_set(client):
    assert 'data-graphiql="graphql"' in client.get("/").text
    with serve(graphiql=False) as without:
        assert 'data-graphiql=""' in without.get("/").text
    with serve(production=True, explorer=True) as on:
        assert "<html" in on.get("/").text


@pytest.mark.parametrize("settings", [{"explorer": False}, {"production": True}])
def test_without_the_explorer_the_root_leads_to_graphql(settings):
    with serve(**settings) as off:
        answer = off.get("/")
        assert (answer.status_code, answer.headers["location"]) == (307, "graphql")  # below any prefix of a proxy
        assert off.get(MAIN).status_code == 404
