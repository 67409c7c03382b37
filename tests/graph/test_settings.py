"""Settings are read from the environment; an invalid value or name is an error of one sentence."""

import os
import re

import pytest

from graph.settings import LISTS, Settings, descriptions, unknown_variables
from store.errors import BadInput

NUMBERS = [name for name, field in Settings.model_fields.items() if field.annotation in (int, float)]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """An environment in which nothing is set."""
    for name in [one for one in os.environ if one.upper().startswith("CLADE_")]:
        monkeypatch.delenv(name)


def test_nothing_has_to_be_set_and_an_empty_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("CLADE_MAX_NODES", "")
    monkeypatch.setenv("CLADE_STORE", "")
    assert Settings() == Settings(max_nodes=10_000, store="sqlite:///clade.db")


def test_a_number_is_read_from_the_environment(monkeypatch):
    for name in NUMBERS:
        monkeypatch.setenv(f"CLADE_{name.upper()}", "7")
    assert [getattr(Settings(), name) for name in NUMBERS] == [7] * len(NUMBERS)


@pytest.mark.parametrize("value", ["abc", "-1", "1e999", "1_"])
def test_an_invalid_number_is_an_error_with_the_variable_and_the_value(monkeypatch, value):
    for name in NUMBERS:
        with monkeypatch.context() as patch:
            patch.setenv(f"CLADE_{name.upper()}", value)
            with pytest.raises(BadInput, match=rf'^CLADE_{name.upper()} cannot be "{value}": it must be a .*\.$'):
                Settings()
    monkeypatch.setenv("CLADE_MAX_NODES", f"{value}{'x' * 10_000}\x1b[31m")
    with pytest.raises(BadInput) as wrong:
        Settings()
    assert len(str(wrong.value)) < 200


def test_every_setting_has_a_default_and_a_sentence_with_its_unit():
    told = descriptions()
    for name, field in Settings.model_fields.items():
        assert not field.is_required()
        description = told[name]
        assert re.fullmatch(r"[A-Z].*\.", description)
        if name in NUMBERS:
            assert re.search(r"^Maximum (number|depth) |, in (seconds|MB|bytes)\b", description)


# -- variables that are no settings ------------------------------------------------------------------------------------

OF_KUBERNETES = {
    "CLADE_PORT": "tcp://10.0.0.7:8000",
    "CLADE_SERVICE_HOST": "10.0.0.7",
    "CLADE_SERVICE_PORT_HTTP": "8000",
    "CLADE_PORT_8000_TCP_PROTO": "tcp",
    "CLADE_PORT_8000_TCP_ADDR": "10.0.0.7",
    "CLADE_STORE_SERVICE_HOST": "10.0.0.9",
}


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("CLADE_MAX_NODE", "CLADE_MAX_NODES"),
        ("CLADE_HIERARCHY", "CLADE_HIERARCHIES"),
        ("clade_maxnodes", "CLADE_MAX_NODES"),
        ("CLADE_PROD", "CLADE_PRODUCTION"),
        ("CLADE_READ_ACCESS", "CLADE_READS"),
        ("CLADE_JWT_SECRETS_FILES", "CLADE_JWT_SECRET_FILE"),
    ],
)
def test_a_misspelt_name_is_an_error_with_the_right_name(monkeypatch, variable, meant):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(BadInput, match=f"^{variable} is not a setting; use {meant}, or unset"):
        Settings()


@pytest.mark.parametrize("variable", ["CLADE_PORT", "CLADE_XYZ", "CLADE_", f"CLADE_{'Z' * 10_000}"])
def test_a_name_like_no_setting_is_an_error_that_says_where_all_are(monkeypatch, variable):
    monkeypatch.setenv(variable, "9000")
    with pytest.raises(BadInput, match=r"^CLADE_\S* is not a setting; all settings are in docs/") as caught:
        Settings()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_of_nothing_is_an_error(monkeypatch, name):
    for words in (",", " , ,", " "):
        monkeypatch.setenv(f"CLADE_{name.upper()}", words)
        message = f'^CLADE_{name.upper()} cannot be "{words}": it lists nothing; name at least'
        with pytest.raises(BadInput, match=message):
            Settings()


def test_variables_of_the_tests_and_of_kubernetes_are_ignored(monkeypatch):
    ignored = {**OF_KUBERNETES, "CLADE_TEST_ENGINE": "dynoxide", "CLADE_EMPTY": "", "clade_max_nodes": "5"}
    for variable, value in ignored.items():
        monkeypatch.setenv(variable, value)
    assert Settings().max_nodes == 5
    assert unknown_variables() == []


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("MAX_NODES", "-3", "a whole number, at least 1"),
        ("STOP_SECONDS", "601", "a whole number, at least 1 and at most 600"),
        ("REQUEST_SECONDS", "nan", "a number, above 0"),
        ("PRODUCTION", "perhaps", "true or false"),
        ("READS", "closed", "one of open, granted"),
        ("METRICS", "9464", "HOST:PORT"),
        ("METRICS", "127.0.0.1:65536", "HOST:PORT"),
    ],
)
def test_an_invalid_value_is_an_error_with_the_allowed_values(monkeypatch, name, value, allowed):
    monkeypatch.setenv(f"CLADE_{name}", value)
    with pytest.raises(BadInput) as wrong:
        Settings()
    assert str(wrong.value) == f'CLADE_{name} cannot be "{value}": it must be {allowed}.'
