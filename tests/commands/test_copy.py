"""`clade copy`: what is copied, what it says, and what it does not copy."""

import pytest
from typer.testing import CliRunner, Result

from commands.main import app_of
from store.errors import BadInput


def clade(*words: str) -> Result:
    return CliRunner().invoke(app_of(), words)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The URL of a file with three places, one of which is deleted again."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    monkeypatch.setenv("CLADE_STORE", url)
    rows = tmp_path / "places.csv"
    for text in ("Country,City\nUS,Omaha\nUS,Lincoln\n", "Country,City\nUS,Omaha\n"):
        rows.write_text(text)
        levels = ["--level", "country=Country", "--level", "city=City"]
        done = clade("import", "location", str(rows), *levels, "--prune", "--yes")
        assert done.exit_code == 0, done.output
    return url


def test_a_copy_is_complete_and_its_nodes_are_counted(source, tmp_path):
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    done = clade("copy", source, target)
    assert done.exit_code == 0, done.output
    assert " items, 2 nodes among them, in " in done.output
    for command in (("export", "location"), ("check",), ("tree", "location")):
        found = [clade(*command, "--store", url).stdout for url in (source, target)]
        assert found[0].partition(" in ")[0] == found[1].partition(" in ")[0] != ""


def test_a_source_without_a_table_is_no_store_to_copy(source, tmp_path):
    done = clade("copy", f"sqlite:///{tmp_path / 'absent.db'}", f"sqlite:///{tmp_path / 'copy.db'}")
    assert isinstance(done.exception, BadInput)
    assert str(done.exception).endswith("; name a store that can be copied.")
    assert not (tmp_path / "copy.db").exists()


def test_a_target_that_has_nodes_is_left_as_it_is(source, tmp_path):
    before = (tmp_path / "clade.db").read_bytes()
    done = clade("copy", source, source)
    assert isinstance(done.exception, BadInput)
    assert (tmp_path / "clade.db").read_bytes() == before
