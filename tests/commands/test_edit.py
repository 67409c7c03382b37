"""`clade edit`: the edits of a file of JSON lines, each line one transaction, in the order of the file."""

import asyncio
import itertools
import json
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands import edit, interrupt
from store.connect import open_store
from store.dynamodb.store import DynamoDBStore
from store.engine import Store
from store.errors import BadInput, Unavailable, Uncertain
from store.metadata import moves
from store.sqlite.store import SQLiteStore
from tests import invariants
from tests.cli import app_of
from tests.commands.conftest import Clade

Line = dict[str, Any] | list[Any] | str


@pytest.fixture
def edits(clade: Clade, tmp_path: Path) -> Callable[..., Result]:
    """Runs the command on a file of lines; texts are written as they are."""

    def run(lines: Sequence[Line], *words: str) -> Result:
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        (tmp_path / "edits.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
        return clade("edit", "category", tmp_path / "edits.jsonl", *words)

    return run


def created(path: str, level: str = "category", node_id: str | None = None, **values: Any) -> dict[str, Any]:
    parent, _, key = path.rpartition("/")
    more = ({"parent": {"path": parent}} if parent else {}) | ({"id": node_id} if node_id else {})
    return {"create": {"key": key, "name": key, "attributes": {level: values}, **more}}


def updated(path: str, price: str, **more: Any) -> dict[str, Any]:
    return {"update": {"node": {"path": path}, "attributes": {"product": {"price": price}}, **more}}


def exported(clade: Clade) -> dict[str, Any]:
    lines = map(json.loads, clade("export", "category").stdout.splitlines())
    return {"/".join(line["path"]): line for line in lines}


@pytest.mark.both_stores
def test_lines_are_made_in_their_order_and_rejected_ones_can_be_corrected(
    clade: Clade, edits: Callable[..., Result], tmp_path: Path
) -> None:
    wrong = [created("B/TV", "product"), updated("B/TV", "x")]
    done = edits([
        "\ufeff" + json.dumps(created("A", node_id="a")), "",
        [created("B"), created("B/C"), created("A/TV", "product", "tv")],
        updated("A/TV", "1.50"), wrong, {"move": {"node": {"id": "category:tv"}, "to": {"parent": {"path": "B/C"}}}},
        updated("B/C/TV", "1.50"), updated("B/C/TV", "2", expectedRevision=2),
        updated("B/C/TV", "3", expectedRevision=2),
        {"delete": {"node": {"path": "A"}}},
    ])  # fmt: skip
    assert done.exit_code == edit.EXIT_REJECTED, done.output
    assert done.stdout.partition(" s.\n")[2] == "made: 6 (8 nodes)\nunchanged: 1\n"
    assert "rejected: 2 lines; written to" in done.stderr
    assert 'edits.jsonl, line 5: edit 1, attributes.product.price: price: "x" is' in done.stderr
    assert "edits.jsonl, line 9: expectedRevision: B/C/TV is at revision 3, not 2" in done.stderr
    found = exported(clade)
    assert (sorted(found), found["B/C/TV"]["price"]) == (["B", "B/C", "B/C/TV"], "2")
    rejected = (tmp_path / "edits.rejected.jsonl").read_text()
    assert rejected.splitlines()[1::2] == [json.dumps(wrong), json.dumps(updated("B/C/TV", "3", expectedRevision=2))]
    (tmp_path / "edits.rejected.jsonl").write_text(rejected.replace('"x"', '"4"').replace('n": 2', 'n": 3'))
    assert clade("edit", "category", tmp_path / "edits.rejected.jsonl").exit_code == 0
    assert {path: node.get("price") for path, node in exported(clade).items() if "TV" in path} == {
        "B/C/TV": "3",
        "B/TV": "4",
    }
    edits([updated("B/TV", "4")])
    assert sorted(file.name for file in tmp_path.glob("edits*")) == ["edits.jsonl"], "an earlier file of them goes"


def random_line(choice: random.Random, number: int) -> Line:
    """Any edit of a few nodes in three trees, by paths and ids, so that many are rejected."""

    def one(number: int) -> dict[str, Any]:
        paths = [f"{root}{rest}" for root in "ABC" for rest in ("", "/X", "/Y", "/X/Y", "/X/Y/X")]
        ids = ["A", "B", "C", "AX", "BX", "CX", *[f"n{choice.randint(0, number)}" for _ in range(2)]]
        node = choice.choice([{"path": choice.choice(paths)}, {"id": f"category:{choice.choice(ids)}"}])
        match choice.choice([*["create"] * 4, *["update"] * 6, "move", "move", "delete"]):
            case "create":
                return created(choice.choice(paths), node_id=f"n{number}")
            case "update":
                return {"update": {"node": node, "name": f"N{choice.randint(1, 3)}"}}
            case "move":
                return {
                    "move": {"node": node, "to": {"parent": {"path": choice.choice(paths)}}, "key": choice.choice("XY")}
                }
        return {"delete": {"node": node, "policy": choice.choice(["REFUSE", "CASCADE", "REPARENT"])}}

    return one(number) if choice.random() < 0.7 else [one(number + part) for part in range(choice.randint(1, 3))]


@pytest.mark.both_stores
def test_lines_that_are_committed_together_leave_what_they_leave_one_by_one(
    clade: Clade, edits: Callable[..., Result], store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = random.Random(7)  # noqa: S311
    lines: list[Line] = [[created(root, node_id=root), created(f"{root}/X", node_id=f"{root}X")] for root in "ABC"]
    lines += [random_line(choice, 3 * number) for number in range(120)]
    together = json.loads(edits(lines, "--json", "--allow-rejects").stdout)
    monkeypatch.setattr(edit, "MAX_COMBINED", 1)
    other = f"sqlite:///{tmp_path}/other.db"
    alone = lambda *words: CliRunner().invoke(app_of(words[:1]), [*map(str, words), "--store", other])  # noqa: E731
    alone("table", "create")
    one_by_one = json.loads(alone("edit", "category", tmp_path / "edits.jsonl", "--json", "--allow-rejects").stdout)
    assert {**together, "seconds": 0} == {**one_by_one, "seconds": 0}
    assert min(together["made"], together["rejectedLines"]) > 25
    assert exported(clade) == exported(alone)

    async def check() -> None:
        async with open_store(store_url) as store:
            await invariants.check(store)

    asyncio.run(check())


REJECTED: list[tuple[Line, str]] = [
    ("{", "not valid JSON"), ("NaN", "not valid JSON"), ('"\udcff"', "not valid UTF-8"),
    ("[" * 500 + "]" * 500, "nested"),
    ("null", "not to be None"), ([[created("B")]], "edit 0: Expected value of type 'CategoryNodeEdit' to be an object"),
    ('{"update": {}, "update": {}}', '"update" is in one object 2 times'), ({"updat": {}}, "Did you mean 'update'?"),
    ({}, "exactly one key"), ({**created("B"), "delete": {"node": {"path": "A"}}}, "exactly one key"),
    ({"update": None}, "non-null"), ([], "There are 0 edits; give 1 to 100."),
    ([created(f"N{number}") for number in range(101)], "There are 101 edits; give 1 to 100."),
    ({"create": {"name": 1}}, "include required field 'key'"), (["x"] * 100, "There are more faults."),
    ({"delete": {"node": {"path": "A"}, "policy": "CASCAD"}}, "policy: Value 'CASCAD' does not exist"),
    ([created("B"), {"update": {"node": {"path": "A//B"}, "name": ""}}], "edit 1, name: "),
    ({"update": {"node": {"path": "A"}, "attributes": {"product": {"price": "1"}}}}, "level"),
    (" " * 1_000_001 + '{"create": ' + " " * 9_000_000 + "}", "longer than 10,000,000 bytes"),
]  # fmt: skip


def test_what_is_no_edit_is_rejected_with_a_sentence_and_hinders_no_other_line(
    clade: Clade, edits: Callable[..., Result]
) -> None:
    done = edits([created("A"), *[line for line, _ in REJECTED], created("Z")], "--json")
    document = json.loads(done.stdout)
    assert (document["made"], document["rejectedLines"], done.exit_code) == (2, len(REJECTED), edit.EXIT_REJECTED)
    for (line, sentence), told in zip(REJECTED, document["rejected"], strict=True):
        assert sentence in told["reason"], (str(line)[:80], told)
        assert len(told["reason"]) < 2_500
    assert sorted(exported(clade)) == ["A", "Z"]


def test_a_file_that_is_no_file_of_lines_changes_nothing(
    clade: Clade, edits: Callable[..., Result], tmp_path: Path
) -> None:
    whole = edits(["[", json.dumps(created("A")), "]"])
    assert "jq -c '.[]'" in str(whole.exception), whole.output
    assert edits([created("A")], "--idempotency-key", "").exit_code == 2
    (tmp_path / "edits.rejected.jsonl").write_text("mine")
    assert "is not a file of rejected lines" in str(edits([created("A")]).exception)
    assert isinstance(clade("edit", "categories", tmp_path / "edits.jsonl").exception, BadInput)
    assert clade("edit", "category", tmp_path / "none.jsonl").exit_code == 2
    assert exported(clade) == {}


@pytest.mark.both_stores
def test_a_dry_run_tries_each_line_on_what_is_stored(
    clade: Clade, edits: Callable[..., Result], tmp_path: Path
) -> None:
    edits([created("A")])
    lines = [created("A/TV", "product"), updated("A/TV", "1"), {"update": {"node": {"path": "A"}, "name": "A"}}]
    done = edits([*lines, [created("A/V", "product"), updated("A/V", "1")]], "--dry-run")
    assert "would be made: 2 (2 nodes, at most 2 transactions, about " in done.stdout
    assert f"would be unchanged: 1\n{edit.ALONE}\n" in done.stdout
    assert "would be rejected: 1 line:\n  edits.jsonl, line 2: node: There is no node at A/TV" in done.stderr
    assert (sorted(exported(clade)), [*tmp_path.glob("*rejected*")]) == (["A"], [])


def test_a_line_after_a_large_move_sees_its_end(
    clade: Clade, edits: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLADE_REQUEST_SECONDS", "0.5")  # which a large move waits for, and
    monkeypatch.setenv("CLADE_SETTLE_SECONDS", "0")
    monkeypatch.setattr(moves, "MARGIN_SECONDS", 0.0)
    nodes = [created("A"), created("B"), created("A/X"), *[created(f"A/X/{number}", "product") for number in range(12)]]
    assert edits(nodes).exit_code == 0
    monkeypatch.setattr(SQLiteStore, "max_commit_changes", 24)
    done = edits([
        {"move": {"node": {"path": "A/X"}, "to": {"parent": {"path": "B"}}}}, updated("B/X/3", "3"), created("A/X"),
    ])  # fmt: skip
    assert (done.exit_code, "made: 3 (15 nodes)" in done.stdout) == (0, True), done.output
    assert {"A/X", "B/X/3"} < exported(clade).keys()
    assert "no findings" in clade("check").stdout


def test_a_run_is_repeated_by_its_key_and_makes_each_line_once(clade: Clade, edits: Callable[..., Result]) -> None:
    lines = [
        created("A"),
        created("A/TV", "product"),
        updated("A/TV", "1"),
        {"move": {"node": {"path": "A/TV"}, "key": "T"}},
    ]
    assert edits([*lines[:3], "x"], "--idempotency-key", "one").exit_code == edit.EXIT_REJECTED
    done = edits(lines, "--idempotency-key", "one")
    assert "made: 1 (1 node)\nmade before, by this idempotency key: 3\n" in done.stdout, done.output
    other = edits(lines[1:], "--idempotency-key", "one")
    assert "line 1: This idempotencyKey was used for another change" in other.stderr
    assert sorted(exported(clade)) == ["A", "A/T"]


@pytest.fixture
def at_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Has a function called at the third of the commits, which hold 60 changes each."""
    calls = itertools.count(1)

    def call(work: Callable[[], None]) -> None:
        def counted(commit: Any) -> Any:
            async def committed(self: Store, changes: Any) -> None:
                if next(calls) == 3:
                    work()
                    await asyncio.sleep(0.01)
                await commit(self, changes)

            return committed

        for kind in (SQLiteStore, DynamoDBStore):
            monkeypatch.setattr(kind, "commit", counted(kind.commit))
            monkeypatch.setattr(kind, "max_commit_changes", 60)

    return call


LINES: list[Line] = [created(f"N{number:02}") for number in range(70)]
AtCommit = Callable[[Callable[[], None]], None]


@pytest.mark.parametrize(
    ("error", "says"), [(Unavailable("Gone."), True), (Uncertain("Gone."), True), (RuntimeError(), False)]
)
def test_after_an_outage_no_line_is_begun(
    clade: Clade, edits: Callable[..., Result], at_commit: AtCommit, error: Exception, says: bool
) -> None:
    def fail() -> None:
        raise error

    at_commit(fail)
    done, made = edits(LINES), sorted(exported(clade))
    assert done.exception is error, done.output
    assert 10 < len(made) < 30
    assert made == [f"N{number:02}" for number in range(len(made))]
    way = f"{len(made)} lines done, 0 of them rejected. Continue after line {len(made)}."
    assert (way in done.stderr) == says, done.stderr
    assert edits(LINES[len(made) :]).exit_code == 0
    assert len(exported(clade)) == len(LINES)


def test_ctrl_c_ends_the_command_when_what_has_begun_is_made(
    clade: Clade, edits: Callable[..., Result], at_commit: AtCommit
) -> None:
    handler = signal.getsignal(signal.SIGINT)
    at_commit(lambda: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupt.catch()
        done = edits(LINES, "--idempotency-key", "one")
    finally:
        signal.signal(signal.SIGINT, handler)
    made = len(exported(clade))
    says = f"Stopped: {made} lines done, 0 of them rejected. Run the same command to continue.\n"
    assert (done.exit_code, done.stderr, made % 30) == (interrupt.EXIT_INTERRUPTED, says, 0)
    again = edits(LINES, "--idempotency-key", "one")
    assert f"made: {70 - made} ({70 - made} nodes)\nmade before, by this idempotency key: {made}\n" in again.stdout
