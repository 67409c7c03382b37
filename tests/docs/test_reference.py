"""Names in all pages: files, settings, metrics, fields and error codes exist, and the reference lists all of them."""

import re
import runpy
import subprocess
from inspect import Parameter, signature

import pytest
from prometheus_client import REGISTRY

from graph import errors
from graph.errors import ERROR_CODES, RULES
from graph.observability.logs import RequestInfo, fields_of
from graph.server import metrics
from graph.types.user_errors import user_errors
from store.errors import BadInput, BadValue, CladeError, Fault, Rule
from tests.deploy.templates import template
from tests.readme import DOCS, ROOT, section

ARCHITECTURE, DEPLOY, OPERATION = (DOCS / f"{name}.md" for name in ("architecture", "deploy", "operation"))


# -- Reference ---------------------------------------------------------------------------------------------------------


WRITTEN = runpy.run_path(str(ROOT / "scripts" / "reference"))["PAGES"]


@pytest.mark.parametrize("page", WRITTEN)
def test_a_page_is_the_output_of_the_script(page):
    file = ROOT / "docs" / "reference" / f"{page}.md"
    assert file.read_text("utf-8") == "\n\n".join(WRITTEN[page]()) + "\n", f"scripts/reference {page} > {file}"


def test_every_error_code_is_listed_once():
    constants = (value for name, value in vars(errors).items() if name.isupper())
    codes = {one for one in constants if isinstance(one, str) and re.fullmatch(r"[A-Z_]+", one)}
    kinds = [CladeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        codes.add(kind.code)
    assert sorted(code.name for code in ERROR_CODES) == sorted(codes)


def test_every_rule_is_listed_and_every_fault_has_one():
    assert [*RULES] == [*Rule]
    page = section("Rules of user errors", DOCS / "reference" / "errors.md")
    assert set(re.findall(r"^\| `(\w+)`", page, re.M)) == {str(one) for one in Rule}
    kinds = [Fault]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # A fault is of a kind with a rule, or cannot be made without one.
    without = [kind for kind in kinds if not hasattr(kind, "rule")]
    assert without == [Fault, BadValue]
    assert signature(BadValue).parameters["rule"].default is Parameter.empty
    with pytest.raises(BadInput):  # which is none: it stays an error of the response
        user_errors(BadInput("without a rule"), None)


def test_every_setting_that_a_page_names_exists():
    listed = set(re.findall(r"`(CLADE_\w+)`", (DOCS / "reference" / "settings.md").read_text("utf-8")))
    for page in DOCS.rglob("*.md"):
        named = set(re.findall(r"\bCLADE_(?!TEST_)[A-Z_]*[A-Z]\b", page.read_text("utf-8")))
        assert named - listed == set(), page


# -- Files -------------------------------------------------------------------------------------------------------------

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *DOCS.rglob("*.md"),
]
NAMED = re.compile(
    r"`((?:clade|commands|deploy|graph|resolvers|store|scripts|docs|bench|tests|\.ci|\.github)/[\w./-]*)`"
)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def test_every_file_that_a_page_links_or_names_exists():
    for page in PAGES:
        text = page.read_text("utf-8")
        linked = [link for link in LINK.findall(text) if "://" not in link]
        assert [link for link in linked if not (page.parent / link).exists()] == [], page
        assert [name for name in NAMED.findall(text) if not (ROOT / name).exists()] == [], page


def test_every_folder_is_on_the_map():
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    tops = {f"{file.partition('/')[0]}/" for file in files if "/" in file}
    packages = {file.removesuffix("__init__.py") for file in files if file.endswith("/__init__.py")}
    wanted = tops | {name for name in packages if not name.startswith(("tests/", "bench/", "clade/"))}
    assert wanted <= set(re.findall(r"`([\w./]+/)`", section("Map of the code", ARCHITECTURE)))


# -- Operation and deployment ------------------------------------------------------------------------------------------


def test_every_metric_of_the_page_of_operation_exists_and_every_field_of_the_access_log_is_on_it():
    families = [family for family in REGISTRY.collect() if family.name.startswith("clade_")]
    existing = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    named = set(re.findall(r"\bclade_\w+", OPERATION.read_text()))
    assert metrics.GAUGES
    assert named
    assert named <= existing

    class Context:
        how = "cached"

        def reads_report(self):
            return {"requests": 0, "rounds": 0, "items": 0, "units": 0.0, "cached": True}

    info = RequestInfo("id", "GET", "/", 0.0, kind="query", codes=["X"], trace_id="0", context=Context())
    logs = section("Logs", OPERATION)
    assert {name for name in fields_of(info) if f"`{name}`" not in logs} == set()


def test_the_parameters_of_the_page_of_deployment_are_those_of_the_templates():
    text = DEPLOY.read_text()
    known = set()
    for name in ("ecs.yaml", "lambda/template.yaml"):
        # Blocks of lists are indented.
        found = re.findall(rf"^ *```text\n([^`]*?--template-file deploy/{name}.*?)^ *```$", text, re.M | re.S)
        given = set(re.findall(r"\b([A-Z][A-Za-z]+)=", found[0].partition("--parameter-overrides")[2]))
        parameters = template(name)["Parameters"]
        assert {key for key, one in parameters.items() if "Default" not in one} <= given <= parameters.keys()
        known |= parameters.keys()
    assert set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)=[\w.]+`", text)) <= known
    assert "RepairSchedule" in known
