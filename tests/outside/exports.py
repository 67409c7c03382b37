"""Exports, imports, copies and backups of extreme values: what comes back is what was there, byte by byte."""

import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.outside import wrong_files
from tests.outside.extreme_values import Values
from tests.outside.failures import SETTLE_SECONDS, Wrong, settled
from tests.outside.fuzzer.compare import first_difference
from tests.outside.parts import Part
from tests.outside.processes import Place, Server, expect_no_findings, on_things

ACCEPTED = "Each line is a node, in path order, and `clade import` accepts the file."
AGAIN = "importing the same file again changes nothing"
AS_LEFT = "the node in a mutation's payload | it is as the mutation left it"
PRUNED = "`--prune` removes nodes that the"
NOTHING_REMOVED = "If Clade cannot tell which nodes a rejected row describes"
BY_ID = "each row changes the names and attributes of the stored node that has its id."
BY_CODE = "each row changes the stored node that has its value, wherever that is: in any tree, and after any move."
SWAPPED = "two products swap their codes"
UNKNOWN = "A row is rejected if no node has its id, and so are all rows of an id that several have."
NO_VALUE = "A row whose value no node has is rejected"
WHOLE = "Unlike an export, a copy is complete"
PROMISES = (
    ("consistency.md", AS_LEFT),
    ("importing.md", ACCEPTED),
    ("importing.md", AGAIN),
    ("importing.md", "paths, levels, names in all languages, ids, attributes | yes | yes | yes"),
    ("importing.md", PRUNED),
    ("importing.md", NOTHING_REMOVED),
    ("importing.md", BY_ID),
    ("importing.md", BY_CODE),
    ("importing.md", SWAPPED),
    ("importing.md", UNKNOWN),
    ("importing.md", NO_VALUE),
    ("importing.md", "A quote that is never closed stops the import before anything is written"),
    ("reference/commands.md", WHOLE),
    ("backup.md", "A backup (snapshot, disaster recovery) contains everything"),
)
COMPLETE = "lists are complete within `CLADE_SETTLE_SECONDS`"
LEVELS = 32
CONTENT = """ id path key name level depth names { language text } note
 ... on Box { text requiredFlag small large ratio exact day moment site state size price { amount currency }
   parcel { ...P } greeting { texts { language text } } latitude longitude texts flags smalls larges ratios exacts days
   moments sites states prices { amount currency } parcels { ...P } }
 ... on Card { title grade } """
PARCEL = "fragment P on Parcel { code size corner { x y } days price { amount currency } }"
WRITTEN = " revision updatedAt changedBy history { totalCount } "
CREATE = f"""
mutation(
  $parent: ThingBy, $key: String!, $name: String!, $names: [LocalizedTextInput!], $attributes: ThingAttributes!
) {{
  createThing(input: {{parent: $parent, key: $key, name: $name, names: $names, attributes: $attributes}}) {{
    node {{ {CONTENT} }} }} }} {PARCEL}"""

ORDERS = "{ things { nodes { path descendants { nodes { path children { nodes { key } } } } } } }"


def everything(content: str) -> str:
    """The document that reads this of all nodes."""
    return f"{{ things {{ nodes {{ {content} descendants {{ nodes {{ {content} }} }} }} }} }} {PARCEL}"


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """One store of extreme values, through every format, copy and backup, and wrong files of every kind."""
    chance = random.Random(seed)
    long = until - time.monotonic() > 40
    counts: Counter[str] = Counter()
    wrong: list[Wrong] = []
    source = Source(place, chance, 80 if long else 30)
    counts += source.counts
    steps: list[Callable[[], Counter[str]]] = [
        lambda: source.through("csv"),
        lambda: source.through("jsonl"),
        source.pruned,
        source.by_ids_and_codes,
    ]
    if long or chance.random() < 0.5:
        steps += [source.copied, source.backed_up]
    known = wrong_files.files()
    steps.append(lambda: wrong_files.tried(place, chance.sample(known, 8 if long else 3)))
    for step in steps:
        try:
            counts += step()
        except Wrong as found:
            wrong.append(found)
    if source.unreadable:
        wrong.append(Wrong("what was accepted is read", ["read all nodes"], "no errors", source.unreadable[:1]))
    if wrong:
        raise Wrong(wrong[0].promise, [str(found) for found in wrong], "no findings", f"{len(wrong)} findings")
    return counts


class Source:
    """A store with nodes of extreme values, and what GraphQL says of them."""

    def __init__(self, place: Place, chance: random.Random, nodes: int) -> None:
        self.place, self.chance = place, chance
        self.store = place.new_store()
        self.server = place.server(self.store)
        self.counts: Counter[str] = Counter()
        self.unreadable: list[Any] = []
        self.fill(nodes)
        self.written = settled(self._complete, time.monotonic() + SETTLE_SECONDS[place.kind])
        self.content = self.read(self.server)

    def fill(self, nodes: int) -> None:
        """Boxes of extreme values in two trees, one of which has 32 levels."""
        values, paths = Values(self.chance), [""]
        for number in range(nodes):
            parent = paths[-1] if number < LEVELS else self.chance.choice(paths)
            if path := self._created(values, parent, number):
                paths.append(path)

    def _created(self, values: Values, parent: str, number: int) -> str | None:
        """The path of a new box, with fewer values each time that some are refused."""
        attributes, names, name = values.attributes(), values.names(), values.text(500)
        key = str(number) if number < LEVELS and self.chance.random() < 0.5 else values.key(number)
        for _ in range(8):
            node = {"parent": {"path": parent} if parent else None, "key": key, "name": name, "names": names}
            answer = self.server.ask(CREATE, node | {"attributes": {"box": attributes}})
            if not answer.errors:
                self.counts["nodes with extreme values"] += 1
                self.counts["extreme values"] += len(attributes)
                got = answer.data["createThing"]["node"]
                for attribute, sent in (*attributes.items(), ("name", name), ("names", names)):
                    # "a mutation or a file changes the languages that it names": where it names none, there is no text.
                    if not _alike(sent or None if attribute == "greeting" else sent, got[attribute]):
                        raise Wrong(AS_LEFT, [CREATE], {attribute: sent}, {attribute: got[attribute]})
                return str(got["path"])
            if "INTERNAL_SERVER_ERROR" in answer.codes:
                raise Wrong("no internal errors", [CREATE], node, answer.json)
            self.counts["refused inputs"] += 1
            refused = answer.errors[0]["message"]
            attributes = {k: v for k, v in attributes.items() if k not in refused and self.chance.random() < 0.8}
            names = names if self.chance.random() < 0.7 else []
            key, name = (key, name) if self.chance.random() < 0.7 else (str(number), "x")
        return None

    def read(self, server: Server, *, written: bool = False) -> Any:
        """All nodes with all their values; the order of siblings is that of the lists of children."""
        answer = server.ask(everything(CONTENT + WRITTEN if written else CONTENT))
        self.unreadable += answer.errors[:1]
        orders = server.ask(ORDERS)
        return answer.json["data"], sorted(map(str, answer.errors)), orders.json["data"]

    def _complete(self) -> Any:
        """All nodes that were created, once lists have followed."""
        found = self.read(self.server, written=True)
        made = self.counts["nodes with extreme values"]
        if not self.unreadable:
            number = sum(1 + len(root["descendants"]["nodes"]) for root in found[0]["things"]["nodes"])
            if number != made:
                raise Wrong(COMPLETE, ["create nodes", "read all"], made, number)
        return found

    def through(self, kind: str) -> Counter[str]:
        """Export, import into a new store, export again: the same bytes, and the same tree by GraphQL."""
        first, second = (self.place.folder / f"{turn}-{kind}.{kind}" for turn in ("first", "second"))
        self._export(self.store, first)
        script = [f"export the values of seed to .{kind}, import, export"]
        store = self.place.new_store()
        self._import(store, self._packed(first), script)
        self._export(store, second)
        with self.place.server(store) as server:
            self._expect(ACCEPTED, script, self.content, self.read(server))
        if first.read_bytes() != second.read_bytes():
            raise Wrong(ACCEPTED, script, *_first_difference(first, second))
        self._import(self.store, first, script)
        self._expect(AGAIN, [*script, "import into the same"], self.written, self.read(self.server, written=True))
        return Counter({f"exports and imports of .{kind}": 1})

    def pruned(self) -> Counter[str]:
        """The import of a part of an export removes the rest, unless a row could be any node."""
        whole, part, after = (self.place.folder / f"prune-{name}.jsonl" for name in ("whole", "part", "after"))
        self._export(self.store, whole)
        lines = whole.read_bytes().splitlines(keepends=True)
        paths = [json.loads(line)["path"] for line in lines]
        inner = [path for path in paths if len(path) > 1]
        gone = self.chance.sample(inner, min(len(inner), 3))
        kept = [line for line, path in zip(lines, paths, strict=True) if not any(path[: len(g)] == g for g in gone)]
        store = self.place.new_store()
        self._import(store, whole, ["import everything"])
        for extra, promise, expected in (
            (b'{"path": ["", "a"], "level": "BOX"}\n', NOTHING_REMOVED, lines), (b"", PRUNED, kept),
        ):  # fmt: skip
            part.write_bytes(b"".join([*kept, extra]))
            rejects = ("--allow-rejects",) if extra else ()
            on_things("import", "thing", str(part), "--prune=all", *rejects, store=store)
            self._export(store, after)
            if after.read_bytes() != b"".join(expected):
                script = ["import everything", f"import --prune without {gone}", f"with the row {extra!r}"]
                raise Wrong(promise, script, len(expected), len(after.read_bytes().splitlines()))
        return Counter({"imports that prune": 2})

    def by_ids_and_codes(self) -> Counter[str]:
        """Rows that name nodes by ids, and then by unique values: values are given, removed, and change their nodes."""
        whole = self.place.folder / "by-whole.jsonl"
        self._export(self.store, whole)
        store = self.place.new_store()
        self._import(store, whole, ["import everything"])
        rows = {row["id"]: row for row in map(json.loads, whole.read_bytes().splitlines())}
        ids = self.chance.sample(sorted(rows), min(len(rows), 12))
        codes = {id: f"code {number}" for number, id in enumerate(ids)}
        self._by(store, rows, "id", [{"id": id, "sku": codes[id], "note": f"Note of {id}"} for id in ids], BY_ID)
        self._by(
            store, rows, "id", [{"id": id, "note": None} for id in ids[:3]], BY_ID, bad={"id": "nobody", "note": "x"}
        )
        named = [{"sku": codes[id], "note": f"by {codes[id]}"} for id in ids[2:]]
        self._by(store, rows, "sku", named, BY_CODE, bad={"sku": "no code", "note": "x"})
        # "Only a circle over several trees … is rejected"; most nodes are of one tree.
        one, other = next(
            (one, other)
            for one in ids
            for other in ids
            if one < other and rows[one]["path"][0] == rows[other]["path"][0]
        )
        swap = [{"id": one, "sku": codes[other]}, {"id": other, "sku": codes[one]}]
        self._by(store, rows, "id", swap, SWAPPED)
        expect_no_findings(store, BY_CODE, ["import by ids and unique values"])
        return Counter({"imports of values by ids": 3, "imports of values by unique values": 1})

    def _by(self, store: str, rows: dict[str, Any], name: str, given: list[Any], promise: str, bad: Any = None) -> None:
        """Import values twice, and compare the store with what they leave; a `bad` row is rejected alone."""
        file, after = (self.place.folder / f"by-{part}.jsonl" for part in ("values", "after"))
        file.write_text("".join(json.dumps(row) + "\n" for row in (*given, *([bad] if bad else []))))
        by_code = {row.get("sku"): row for row in rows.values()}
        for row in given:
            own = rows[row["id"]] if name == "id" else by_code[row["sku"]]
            own.update({part: value for part, value in row.items() if part != name})
        rows.update({id: {part: value for part, value in row.items() if value is not None} for id, row in rows.items()})
        script = ["import everything", f"import --by {name} of {given} and {bad}"]
        done: list[Any] = []
        for _ in range(2):
            done.append(on_things("import", "thing", str(file), "--by", name, store=store, status=None))
            self._export(store, after)
            got = {row["id"]: row for row in map(json.loads, after.read_bytes().splitlines())}
            if got != rows:
                wrong = [id for id in {*got, *rows} if got.get(id) != rows.get(id)][:2]
                pair = [rows.get(id) for id in wrong], [got.get(id) for id in wrong]
                raise Wrong(promise, [*script, done[-1].stdout, done[-1].stderr], *pair)
        if any(bool(each.returncode) is not bool(bad) for each in done):
            said = [(each.returncode, each.stdout, each.stderr) for each in done]
            raise Wrong(UNKNOWN if name == "id" else NO_VALUE, script, "status 1 for a rejected row, else 0", said)

    def copied(self) -> Counter[str]:
        """A copy into SQLite and, where there is an engine, one back into DynamoDB."""
        target = f"sqlite:///{self.place.folder}/copy.db"
        targets = [target] if self.place.kind == "sqlite" else [target, self.place.new_store()]
        source = self.store
        for target in targets:
            on_things("copy", source, target, store=source)
            self._same(target, WHOLE, f"clade copy {source} {target}")
            source = target
        return Counter({"copies of stores": len(targets)})

    def backed_up(self) -> Counter[str]:
        if self.place.kind != "sqlite":
            return Counter()
        backup, target = self.place.folder / "backup.db", f"sqlite:///{self.place.folder}/restored.db"
        on_things("backup", str(backup), store=self.store)
        on_things("restore", str(backup), store=target)
        self._same(target, PROMISES[5][1], "clade backup, clade restore")
        return Counter({"backups of stores": 1})

    def _same(self, store: str, promise: str, step: str) -> None:
        with self.place.server(store) as server:
            self._expect(promise, [step], self.written, self.read(server, written=True))
        files = [self.place.folder / f"same-{name}.jsonl" for name in ("a", "b")]
        for each, file in zip((self.store, store), files, strict=True):
            self._export(each, file)
        if files[0].read_bytes() != files[1].read_bytes():
            raise Wrong(promise, [step, "clade export of both"], *_first_difference(*files))
        expect_no_findings(store, promise, [step])

    def _expect(self, promise: str, script: list[str], expected: Any, got: Any) -> None:
        if expected != got:
            path, *both = first_difference(list(expected), list(got)) or ([], expected, got)
            raise Wrong(promise, [*script, f"at {path}"], *both)
        self.counts["trees compared"] += 1

    def _packed(self, file: Path) -> Path:
        """The file, or a compressed one."""
        if self.chance.random() < 0.5:
            return file
        packed = file.with_name(f"{file.name}.gz")
        packed.write_bytes(gzip.compress(file.read_bytes()))
        return packed

    def _export(self, store: str, file: Path) -> None:
        on_things("export", "thing", "--output", str(file), store=store)

    def _import(self, store: str, file: Path, script: list[str]) -> None:
        done = on_things("import", "thing", str(file), store=store, status=None)
        if done.returncode:
            rejected = [each.read_text(errors="replace")[-1500:] for each in file.parent.glob("*rejected*")]
            raise Wrong(ACCEPTED, script, "exit status 0", (done.returncode, done.stdout + done.stderr, rejected[:1]))


def _alike(sent: Any, got: Any) -> bool:
    """Whether a value is the one that was sent; times may have another form, and decimals no exponent."""
    if isinstance(got, dict) and isinstance(sent, list):
        got = got["texts"]
    if isinstance(sent, list) and isinstance(got, list):
        if sent and isinstance(sent[0], dict) and "language" in sent[0]:
            sent = sorted(sent, key=lambda text: str(text["language"]))
        return len(sent) == len(got) and all(map(_alike, sent, got))
    if isinstance(sent, dict) and isinstance(got, dict):
        return all(_alike(sent.get(name), value) for name, value in got.items())
    if sent == got or not isinstance(sent, str) or not isinstance(got, str):
        return bool(sent == got)
    if re.fullmatch(r"[-\d.]+[eE][-+\d]+", sent):
        return Decimal(sent) == Decimal(got)
    is_time = re.match(r"\d{4}-\d\d-\d\dT", sent) and re.match(r"\d{4}-\d\d-\d\dT", got)
    return bool(is_time) and datetime.fromisoformat(sent) == datetime.fromisoformat(got)


def _first_difference(first: Path, second: Path) -> tuple[str, str]:
    """The first lines that differ, at the place where they do."""
    one, other = first.read_text().split("\n"), second.read_text().split("\n")
    number = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)) - 1
    )
    a, b = one[number], other[min(number, len(other) - 1)]
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    return a[max(at - 80, 0) : at + 80], b[max(at - 80, 0) : at + 80]


EXPORTS = Part("exports", run, PROMISES)
