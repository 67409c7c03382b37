"""Settings are read from the environment, once, and a value that cannot be taken is told in one sentence."""

import re

import pytest
from pydantic import ValidationError

from graph.settings import Settings
from store.errors import BadInput

NUMBERS = [name for name, field in Settings.model_fields.items() if field.annotation in (int, float)]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """An environment in which nothing is set."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CLADE_{name.upper()}", raising=False)


def test_nothing_has_to_be_set():
    assert Settings().store == "sqlite:///clade.db"


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_read_from_the_environment(monkeypatch, name):
    monkeypatch.setenv(f"CLADE_{name.upper()}", "7")
    assert getattr(Settings(), name) == 7


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("CLADE_MAX_NODES", "")
    monkeypatch.setenv("CLADE_STORE", "")
    assert Settings() == Settings(max_nodes=10_000, store="sqlite:///clade.db")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["abc", "-1", "1e999", "1_"])
def test_what_is_no_such_number_is_told_with_the_variable_and_the_value(monkeypatch, name, value):
    monkeypatch.setenv(f"CLADE_{name.upper()}", value)
    with pytest.raises(BadInput, match=rf'^CLADE_{name.upper()} cannot be "{value}": it should be .*\.$') as wrong:
        Settings()
    assert "\n" not in str(wrong.value)


def test_a_value_is_quoted_no_longer_than_a_sentence_bears(monkeypatch):
    monkeypatch.setenv("CLADE_MAX_NODES", "x" * 10_000 + "\x1b[31m")
    with pytest.raises(BadInput) as wrong:
        Settings()
    assert len(str(wrong.value)) < 200


def test_settings_cannot_be_changed():
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.max_nodes = 5


@pytest.mark.parametrize(("name", "field"), Settings.model_fields.items())
def test_every_setting_has_a_default_and_a_sentence_that_names_its_unit(name, field):
    assert not field.is_required()
    assert re.fullmatch(r"[A-Z].*\.", field.description)
    if name in NUMBERS:
        assert re.search(r", in [\w\s]+\b", field.description)
