"""Two versions: servers with an old and a new version of a class write into one store beside `clade repair`.

Writes are sent in turn, so what each has to answer follows from those before it. While a repair runs, and after one
that was killed, several answers are right.
"""

import itertools
import json
import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.outside.failures import SETTLE_SECONDS, Wrong, settled
from tests.outside.faults.versions import Attributes, Good, Goods, Version, two_versions
from tests.outside.processes import Place, Server, clade_command, command, settings_of
from tests.processes import Answer

PAGE = "changing-a-hierarchy.md"
EVERY_SEARCH = (
    "All servers write the search items of all attributes that any version of the class searches, once `clade repair` "
    "was run with that version."
)
OLD_SEARCH = "the servers with the old class search as before."
BOTH_SEARCH = "From its end on, the servers of both versions search."
KEPT = (
    "Items of attributes that no class searches any more are kept, since a server with an older class may search them"
)
UNIQUE = (
    "All servers keep the values unique that any version of the class asks for, once `clade repair` was run with that "
    "version."
)
UNTIL = "Until the repair, on them an edit that sets a value of this attribute is an error with the code `NOT_INDEXED`"
LISTED = "prints each node whose value another one has, with the paths of both"
AGAIN = "one that another node has is `TAKEN`, once the repair has come to that node."
FOUND = "When it finds no value twice, the attribute is unique, and nodes are found by it."
NO_LONGER = "On servers that still ask for it, the attribute is `NOT_INDEXED` from then on."
REMOVED = "nothing; it stays stored, is not served, and comes back with its definition"
NEW_LEVEL = "For an old server it is damaged (`BAD_DATA`), alone and in lists without `level`"
RULES = "nothing; `clade check` lists the stored values that break it"
CONTINUES = "After an interruption, the same command continues."
SEEN = "Each read sees each write that was acknowledged before the read was sent"
PROMISES = (
    *((PAGE, sentence) for sentence in (EVERY_SEARCH, OLD_SEARCH, BOTH_SEARCH, KEPT, UNIQUE, UNTIL, LISTED, AGAIN)),
    *((PAGE, sentence) for sentence in (FOUND, NO_LONGER, REMOVED, NEW_LEVEL, RULES)),
    ("reference/commands.md", CONTINUES),
    ("writing.md", "Rules that the class has had since do not apply."),
    ("consistency.md", SEEN),
)
PATIENT = {"UNAVAILABLE", "TIMEOUT", "OVERLOADED"}
MADE = "made"
WORDS = ("amber", "birch", "cedar", "dahlia", "elm", "fern")
MAKERS = ("acme", "bolt", "crane", "dorn", "eagle")
MOST_FOUND = 100
LAST = 8  # steps that are told of a failure
Step = dict[str, Any]


class Stage(Enum):
    """How far the repair with the new class is: not begun, running or killed, or ended."""

    BEFORE = auto()
    AMID = auto()
    AFTER = auto()


@dataclass
class World:
    """A store, its two servers, and what it should hold."""

    place: Place
    store: str
    versions: tuple[Version, Version]
    chance: random.Random
    servers: list[Server] = field(default_factory=list)
    goods: Goods = field(default_factory=Goods)
    stage: Stage = Stage.BEFORE
    are_found: bool = False  # whether the last repair found no value twice
    # Values that two nodes had when or since a repair looked. Such a one belongs to the node that the repair came to
    # first; once that has given it up, it may be given to a third one, until another repair.
    doubtful: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def wrong(self, promise: str, expected: object, got: object) -> Wrong:
        old, new = self.versions
        return Wrong(promise, [f"old: {old}", f"new: {new}", f"{self.stage}", *self.log[-LAST:]], expected, got)

    # What servers have to answer

    @property
    def adds_unique(self) -> bool:
        return self.versions[1].is_unique and not self.versions[0].is_unique

    @property
    def drops_unique(self) -> bool:
        return self.versions[0].is_unique and not self.versions[1].is_unique

    def after_setting(self, number: int, code: str, own: Good | None) -> set[str]:
        """What a server may answer to a node's new code."""
        is_taken = any(good is not own for good in self.goods.holders(code))
        kept = {"TAKEN", *([MADE] if code in self.doubtful else [])} if is_taken else {MADE}
        if self.adds_unique:
            not_yet = {"NOT_INDEXED"} if number == 1 else {MADE}
            # While a repair runs the docs do not say whether a value is refused that it has not reached: it may be
            # given twice then, and the repair lists it.
            return {Stage.BEFORE: not_yet, Stage.AMID: not_yet | kept | {MADE}, Stage.AFTER: kept}[self.stage]
        if self.drops_unique:
            no_longer = {"NOT_INDEXED"} if number == 0 else {MADE}
            return {Stage.BEFORE: kept, Stage.AMID: no_longer | kept, Stage.AFTER: no_longer}[self.stage]
        return kept

    def after_looking(self, number: int) -> set[str]:
        """What a server whose class has unique codes may answer to a look-up: NOT_INDEXED, or the node."""
        if self.adds_unique and number == 1:
            if self.stage is Stage.AFTER and self.are_found:
                return {MADE}
            return {"NOT_INDEXED"} if self.stage is Stage.BEFORE else {"NOT_INDEXED", MADE}
        if self.drops_unique and number == 0:
            states = {Stage.BEFORE: {MADE}, Stage.AMID: {"NOT_INDEXED", MADE}, Stage.AFTER: {"NOT_INDEXED"}}
            return states[self.stage]
        return {MADE}

    def after_searching(self, number: int) -> set[str]:
        """What a server may answer to a search: NOT_INDEXED, or all that it should find."""
        old, new = self.versions
        if number == 0 or old.searches or not new.searches or self.stage is Stage.AFTER:
            return {MADE}
        return {"NOT_INDEXED"} if self.stage is Stage.BEFORE else {"NOT_INDEXED", MADE}

    # Writes

    def ask(self, number: int, text: str, what: str) -> Answer:
        self.log.append(f"{('old', 'new')[number]}: {text}")
        answer = self.servers[number].ask(text)
        for _ in range(8):
            if not set(answer.codes) & PATIENT:
                break
            time.sleep(0.3)
            self.counts["answers that said to try again"] += 1
            answer = self.servers[number].ask(text)
        self.counts[what] += 1
        return answer

    def mutate(self, number: int, field: str, allowed: set[str], what: str) -> Any:
        """Send a mutation; its node, or None where it was not made."""
        once = f'idempotencyKey: "{next(self.numbers)}", '
        text = f"mutation {{ made: {field.replace('(', '(' + once, 1)} {{ node {{ id path revision }} }} }}"
        answer = self.ask(number, text, f"{what} sent to the {('old', 'new')[number]} version")
        node = ((answer.json.get("data") or {}).get("made") or {}).get("node")
        got = MADE if node and not answer.errors else (answer.codes or ["no node"])[0]
        if got not in allowed:
            raise self.wrong(self._promise(number, got), sorted(allowed), answer.json)
        self.counts[f"answers: {got}"] += 1
        return node

    def _promise(self, number: int, got: str) -> str:
        if self.drops_unique:
            return NO_LONGER if self.stage is Stage.AFTER else UNIQUE
        return UNTIL if self.stage is Stage.BEFORE and number == 1 else AGAIN if got == "NOT_INDEXED" else UNIQUE

    def write(self, number: int) -> None:
        """A mutation of any kind by the server of a version."""
        kinds = [self._create, self._update, self._update, self._update, self._move, self._delete]
        self.chance.choice([*kinds, self._restore] if self.goods.deleted else kinds)(number)

    def _some_values(self, number: int, own: Good | None) -> Attributes:
        chance, version = self.chance, self.versions[number]
        values: Attributes = {}
        if own is None or chance.random() < 0.4:
            values["maker"] = chance.choice(MAKERS)
        if chance.random() < 0.6:
            there = [good.values["code"] for good in self.goods.nodes.values() if good.values.get("code")]
            values["code"] = chance.choice(
                [f"c{chance.randrange(10**6)}", f"c{chance.randrange(20)}", chance.choice(there or ["c1"])]
            )
            if own and chance.random() < 0.2:
                values["code"] = None
            if own and values["code"] == own.values.get("code"):
                del values["code"]  # the docs do not say whether a value that stays is set
        if chance.random() < 0.4:
            values["stock"] = chance.choice((3, 8, 0, -2))
        if own is None or chance.random() < 0.3:
            values["label"] = chance.choice(("small", "large", "large", None))
        if version.own and chance.random() < 0.6:
            values[version.own] = f"v{next(self.numbers)}"
        return {name: value for name, value in values.items() if own or value is not None}

    def _allowed(self, number: int, values: Attributes, own: Good | None) -> set[str]:
        if self.versions[number].broken_rules(values, is_new=own is None):
            return {
                "BAD_USER_INPUT",
                *(self.after_setting(number, values["code"], own) - {MADE} if values.get("code") else ()),
            }
        return self.after_setting(number, values["code"], own) if values.get("code") is not None else {MADE}

    def _create(self, number: int) -> None:
        shelf = self.chance.choice(self.goods.level("SHELF"))
        values, serial = self._some_values(number, None), next(self.numbers)
        good = Good(f"i{serial}", f"k{serial}", shelf.id, "ITEM", f"{self.chance.choice(WORDS)} n{serial}z", values)
        place = f'parent: {{path: "{self.goods.path(shelf)}"}}, key: "{good.key}", id: "{good.id}"'
        field = f'createGood(input: {{{place}, name: "{good.name}", attributes: {{item: {literal(values)}}}}})'
        if self.mutate(number, field, self._allowed(number, values, None), "creations"):
            self.goods.add(good)

    def _update(self, number: int) -> None:
        good = self.chance.choice(self.goods.level("ITEM"))
        values = self._some_values(number, good)
        name = f"{self.chance.choice(WORDS)} n{next(self.numbers)}z" if self.chance.random() < 0.3 or not values else ""
        self._set(number, good, values, name)

    def _set(self, number: int, good: Good, values: Attributes, name: str) -> None:
        more = f', name: "{name}"' * bool(name) + f", attributes: {{item: {literal(values)}}}" * bool(values)
        field = f"updateGood(input: {{node: {self._name(number, good)}{more}}})"
        if node := self.mutate(number, field, self._allowed(number, values, good), "updates"):
            kept = {name: value for name, value in {**good.values, **values}.items() if value is not None}
            good.revision += (name or good.name, kept) != (good.name, good.values)
            good.name, good.values = name or good.name, kept
            self._expect_payload(good, node)

    def _name(self, number: int, good: Good) -> str:
        """A node by its path, id or, where that is unique and found, its code."""
        code = good.values.get("code")
        can = self.versions[number].is_unique and code and len(self.goods.holders(code)) == 1
        if can and self.after_looking(number) == {MADE} and self.chance.random() < 0.5:
            self.counts["nodes named by unique values"] += 1
            return f'{{code: "{code}"}}'
        return self.chance.choice((f'{{path: "{self.goods.path(good)}"}}', f'{{id: "good:{good.id}"}}'))

    def _move(self, number: int) -> None:
        good, serial = self.chance.choice(self.goods.level("ITEM")), next(self.numbers)
        to, key = good.parent, f"k{serial}"
        place = f'key: "{key}"'
        if self.chance.random() < 0.6:
            shelf = self.chance.choice([one for one in self.goods.level("SHELF") if one.id != good.parent])
            to, place = shelf.id, f'key: "{key}", to: {{parent: {{path: "{self.goods.path(shelf)}"}}}}'
        field = f"moveGood(input: {{node: {self._name(number, good)}, {place}}})"
        if node := self.mutate(number, field, {MADE}, "moves"):
            good.parent, good.key = to, key
            self._expect_payload(good, node)

    def _delete(self, number: int) -> None:
        good = self.chance.choice(self.goods.level("ITEM"))
        field = f"deleteGood(input: {{node: {self._name(number, good)}}})"
        if self.mutate(number, field, {MADE}, "deletions"):
            self.goods.deleted[good.id] = self.goods.nodes.pop(good.id)

    def _restore(self, number: int) -> None:
        good = self.chance.choice([*self.goods.deleted.values()])
        code, allowed = good.values.get("code"), {MADE}
        if code is not None:
            # The docs do not say whether a restore on a server that has to wait for the repair is an edit that sets
            # its values: it may be made, where that gives no value twice.
            allowed = self.after_setting(number, code, good)
            if allowed == {"NOT_INDEXED"}:
                allowed = {"NOT_INDEXED", *([] if self.goods.holders(code) else [MADE])}
        if node := self.mutate(number, f'restoreGood(input: {{id: "good:{good.id}"}})', allowed, "restores"):
            self.goods.add(self.goods.deleted.pop(good.id))
            good.revision += 1
            self._expect_payload(good, node)

    def _expect_payload(self, good: Good, node: Any) -> None:
        expected = {"id": f"good:{good.id}", "path": self.goods.path(good), "revision": good.revision}
        if node != expected:
            raise self.wrong(SEEN, expected, node)

    def each_kind(self) -> None:
        """A mutation of each kind by each version, with a code that another node has and one that none has."""
        for number in (0, 1):
            for code in ("taken", "free"):
                good, other = self.chance.sample(self.goods.level("ITEM"), 2)
                there = [one for one in self.goods.level("ITEM") if one.values.get("code") and one is not good]
                values = {
                    "code": self.chance.choice(there or [other]).values.get("code", "") if code == "taken" else ""
                }
                values["code"] = values["code"] or f"free {next(self.numbers)}"
                if values["code"] != good.values.get("code"):
                    self._set(number, good, values, "")
            for kind in (self._create, self._update, self._move, self._delete, self._restore):
                kind(number)
            self.read(number)
            self.search(number)
        self._note_twice()

    # Reads

    def read(self, number: int) -> None:
        """Some nodes by id, and a look-up, of nodes that are there and of deleted ones."""
        levels = ("SHELF", "ITEM", *(["BUNDLE"] if self.versions[number].has_bundles else []))
        goods = [good for good in self.goods.nodes.values() if good.level in levels]
        last = goods[-3:]
        picked = [good for good in self.chance.sample(goods, 3) if good.level == "ITEM"] + [
            *last,
            *list(self.goods.deleted.values())[-2:],
        ]
        text = " ".join(
            f'a{n}: good(id: "good:{good.id}") {{ {self.fields(number)} }}' for n, good in enumerate(picked)
        )
        answer = self.ask(number, f"{{ {text} }}", "reads by id compared")
        expected = {f"a{n}": self.answer(number, good) for n, good in enumerate(picked)}
        if answer.errors or answer.json["data"] != expected:
            raise self.wrong(SEEN, expected, answer.json)
        self.look_up(number)

    def fields(self, number: int) -> str:
        return f"id path name revision ... on Item {{ {' '.join(self.versions[number].served)} }}"

    def answer(self, number: int, good: Good) -> Any:
        if good.id not in self.goods.nodes:
            return None
        own = {"id": f"good:{good.id}", "path": self.goods.path(good), "name": good.name, "revision": good.revision}
        return own | {name: good.values.get(name) for name in self.versions[number].served if good.level == "ITEM"}

    def look_up(self, number: int) -> None:
        if not self.versions[number].is_unique:
            return
        there = [good.values["code"] for good in self.goods.nodes.values() if good.values.get("code")]
        gone = [good.values["code"] for good in self.goods.deleted.values() if good.values.get("code")]
        code = self.chance.choice([self.chance.choice(there), self.chance.choice(gone or there), "nobody"])
        answer = self.ask(number, f'{{ item(code: "{code}") {{ id path }} }}', "look-ups by unique values compared")
        allowed = self.after_looking(number)
        if answer.codes:
            if answer.codes != ["NOT_INDEXED"] or "NOT_INDEXED" not in allowed:
                raise self.wrong(FOUND, sorted(allowed), answer.json)
            self.counts["look-ups that were NOT_INDEXED"] += 1
            return
        holders = [{"id": f"good:{good.id}", "path": self.goods.path(good)} for good in self.goods.holders(code)]
        if MADE not in allowed or answer.json["data"]["item"] not in (holders or [None]):
            raise self.wrong(UNTIL if MADE not in allowed else FOUND, [sorted(allowed), holders], answer.json)

    def search(self, number: int) -> None:
        """A search, which has to find everything if it says that it is complete."""
        word = self.chance.choice(
            (*WORDS, *MAKERS, *MAKERS, *(good.name.split()[-1] for good in self.goods.level("ITEM")[-3:]))
        )
        settled(lambda: self._search(number, word), time.monotonic() + SETTLE_SECONDS[self.place.kind])
        self.counts["searches compared"] += 1

    def _search(self, number: int, word: str) -> None:
        text = f'{{ searchGoods(text: "{word}", first: {MOST_FOUND}) {{ complete nodes {{ path }} }} }}'
        answer = self.ask(number, text, "searches sent")
        allowed = self.after_searching(number)
        if answer.codes:
            if answer.codes != ["NOT_INDEXED"] or "NOT_INDEXED" not in allowed:
                raise self.wrong((OLD_SEARCH, BOTH_SEARCH)[number], sorted(allowed), answer.json)
            self.counts["searches that were NOT_INDEXED"] += 1
            return
        found = answer.json["data"]["searchGoods"]
        got = {node["path"] for node in found["nodes"]}
        expected = self.goods.with_word(word, self.versions[number])
        is_right = got <= expected and (got == expected or len(got) == MOST_FOUND or not found["complete"])
        self.counts["searches that were complete"] += bool(found["complete"])
        if MADE not in allowed or not is_right:
            raise self.wrong(EVERY_SEARCH, sorted(expected), found)

    def steps(self, number: int) -> None:
        """Writes by both versions in turn, each read by both."""
        for turn in range(number):
            self.step(turn)

    def _note_twice(self) -> None:
        if self.adds_unique:
            self.doubtful |= self.goods.twice().keys()

    def step(self, turn: int) -> None:
        self.write((turn + self.chance.randrange(2)) % 2)
        self._note_twice()
        for number in (0, 1):
            self.read(number)
            if turn % 2 == number:
                self.search(number)


def literal(values: Attributes) -> str:
    """Attributes as GraphQL writes them."""
    written = {True: "null", False: ""}
    parts = [
        f"{name}: {written[value is None] or (value if isinstance(value, int) else chr(34) + value + chr(34))}"
        for name, value in values.items()
    ]
    return f"{{{', '.join(parts)}}}"


# A deployment


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """Deployments of random changes of the class, one after the other."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    while not counts or time.monotonic() < until - 25:
        began = time.monotonic()
        counts += _deployed(place, chance, long=until - began > 45)
        counts["deployments"] += 1
    return counts


def _deployed(place: Place, chance: random.Random, *, long: bool) -> Counter[str]:
    world = World(place, place.new_store(), two_versions(chance), chance)
    names = [place.folder / f"{name}-{chance.randrange(10**9)}.py" for name in ("old", "new")]
    old, new = (str(version.write(file)) for version, file in zip(world.versions, names, strict=True))
    size = {"sqlite": (500, 4000), "dynamodb": (100, 400)}[place.kind][long]
    _fill(world, size, old)
    settle = {"settle_seconds": "0.2"} if place.kind == "dynamodb" else {}
    world.servers = [place.server(world.store, hierarchies=file, **settle) for file in (old, new)]
    world.each_kind()
    world.steps(8 if long else 2)
    world.stage = Stage.AMID
    _repair_meanwhile(world, new, killed=True)
    world.steps(4)
    _repair_meanwhile(world, new, killed=False)
    world.stage = Stage.AFTER
    world.each_kind()
    _repair(world, new)
    world.steps(8 if long else 2)
    _give_others(world)
    _repair(world, new)
    world.each_kind()
    world.steps(16 if long else 4)
    if world.versions[1].has_bundles:
        _bundle(world)
    world.servers[0].stop()
    _expect_everything(world, new)
    world.servers[1].stop()
    return world.counts


def _fill(world: World, size: int, classes: str) -> None:
    """Import shelves, and items of which some have codes; where these are not unique, some of them the same."""
    goods, chance = world.goods, world.chance
    for top in ("A", "B", "C"):
        goods.add(Good(f"s{top}", top, None, "SHELF", f"Shelf {top}"))
        goods.add(Good(f"s{top}1", "low", f"s{top}", "SHELF", f"Shelf {top}1"))
    shelves = goods.level("SHELF")
    values = {"label": "small", "stock": 1}
    for number in range(size):
        own = {world.versions[0].own: f"was {number}"} if world.versions[0].own and number % 2 else {}
        code = {"code": f"c{number}"} if number % 3 == 0 else {}
        maker = {"maker": chance.choice(MAKERS)} if number % 8 == 0 else {}
        name = f"{chance.choice(WORDS) if number % 8 == 1 else 'plain'} n{number}z"
        parent = chance.choice(shelves).id
        goods.add(Good(f"o{number}", f"o{number}", parent, "ITEM", name, {**values, **maker, **code, **own}))
    if world.adds_unique and chance.random() < 0.6:
        for number in (3, 33, 66):
            goods.nodes[f"o{number}"].values["code"] = "c0" if number < 50 else "c9"
    file = world.place.folder / f"goods-{chance.randrange(10**9)}.jsonl"
    file.write_text(goods.lines())
    command("import", "good", str(file), store=world.store, hierarchies=classes)


def _repair_meanwhile(world: World, classes: str, *, killed: bool) -> None:
    """A repair while both servers write; it may be killed."""
    world.log.append("clade repair, with the new class, begins")
    process = subprocess.Popen(
        [clade_command(), "repair"],
        env=settings_of(world.store, hierarchies=classes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + (world.chance.uniform(0.6, 3.0) if killed else 120.0)
    try:
        for turn in itertools.count():
            if process.poll() is not None or time.monotonic() > end:
                break
            world.step(turn)
            world.counts["steps while a repair ran"] += 1
    finally:
        if process.poll() is None:
            process.kill()
            world.counts["repairs that were killed"] += 1
            world.log.append("kill -9 of it")
        process.wait()
    world.log.append("it has ended")


def _repair(world: World, classes: str) -> None:
    """A repair while nobody writes: it lists each value that two nodes have."""
    done = command("repair", store=world.store, hierarchies=classes, status=None)
    twice = world.goods.twice() if world.versions[1].is_unique else {}
    world.log.append(f"clade repair: {done.stdout[-300:]}")
    told = [(code, world.goods.path(good)) for code, goods in twice.items() for good in goods]
    missing = [one for one in told if not all(part in done.stdout for part in one)]
    if missing or (done.returncode != 0) is not bool(twice):
        raise world.wrong(LISTED, missing or ("status", int(bool(twice))), (done.returncode, done.stdout, done.stderr))
    world.are_found, world.doubtful = not twice, {*twice}
    world.counts["repairs compared"] += 1
    world.counts["values that a repair listed"] += len(twice)


def _give_others(world: World) -> None:
    """Change or clear all but one of the values that several nodes have."""
    if not world.versions[1].is_unique:
        return
    for goods in world.goods.twice().values():
        for good in world.chance.sample(goods, len(goods) - 1):
            code = world.chance.choice((None, f"other {good.id}"))
            number, node = world.chance.randrange(2), f'{{id: "good:{good.id}"}}'
            field = f"updateGood(input: {{node: {node}, attributes: {{item: {literal({'code': code})}}}}})"
            world.mutate(number, field, {MADE}, "values changed that others had")
            good.values = {**good.values, "code": code} if code else _without(good.values, "code")
            good.revision += 1


def _without(values: Attributes, name: str) -> Attributes:
    return {each: value for each, value in values.items() if each != name}


def _bundle(world: World) -> None:
    """The first node of a new level, while a server with the old class runs."""
    shelf = world.chance.choice(world.goods.level("SHELF"))
    good = Good("bundle", "bundle", shelf.id, "BUNDLE", "Bundle of amber")
    place = f'parent: {{path: "{world.goods.path(shelf)}"}}, key: "bundle", id: "bundle"'
    field = f'createGood(input: {{{place}, name: "{good.name}", attributes: {{bundle: {{}}}}}})'
    world.mutate(1, field, {MADE}, "creations")
    world.goods.add(good)
    answer = world.ask(0, '{ good(id: "good:bundle") { path } }', "nodes of a new level read by the old version")
    if answer.codes != ["BAD_DATA"]:
        raise world.wrong(NEW_LEVEL, "BAD_DATA", answer.json)
    for word in ("bundle", "amber"):
        settled(lambda word=word: world._search(0, word), time.monotonic() + SETTLE_SECONDS[world.place.kind])
        settled(lambda word=word: world._search(1, word), time.monotonic() + SETTLE_SECONDS[world.place.kind])
    world.steps(2)


def _expect_everything(world: World, classes: str) -> None:
    """All is there on the new version, also what it does not serve, and `clade check` finds nothing."""
    version = world.versions[1]
    for word in (*WORDS, *MAKERS):
        settled(lambda word=word: world._search(1, word), time.monotonic() + SETTLE_SECONDS[world.place.kind])
    codes = sorted({good.values["code"] for good in world.goods.nodes.values() if good.values.get("code")})
    for start in range(0, len(codes) if version.is_unique else 0, 20):
        some = codes[start : start + 20]
        text = " ".join(f'a{number}: item(code: "{code}") {{ path }}' for number, code in enumerate(some))
        answer = world.ask(1, f"{{ {text} }}", "look-ups at the end")
        found = {
            f"a{number}": {"path": world.goods.path(world.goods.holders(code)[0])} for number, code in enumerate(some)
        }
        if answer.errors or answer.json["data"] != found:
            raise world.wrong(FOUND, found, answer.json)
    exported = world.place.folder / "goods.jsonl"
    command("export", "good", "--output", str(exported), store=world.store, hierarchies=classes)
    got = {row["id"]: row for row in map(json.loads, exported.read_text().splitlines())}
    expected = {good.id: _exported(world, good, version) for good in world.goods.nodes.values()}
    if got != expected:
        wrong = [id for id in {*got, *expected} if got.get(id) != expected.get(id)][:3]
        raise world.wrong(REMOVED, [expected.get(id) for id in wrong], [got.get(id) for id in wrong])
    world.counts["nodes compared at the end"] += len(got)
    checked = command("check", store=world.store, hierarchies=classes, status=None)
    if checked.returncode:
        raise world.wrong(RULES, "no findings", checked.stdout)
    world.counts["checks without findings"] += 1


def _exported(world: World, good: Good, version: Version) -> Attributes:
    row = {"path": world.goods.path(good).split("/"), "level": good.level, "name": good.name, "id": good.id}
    hidden = {name: value for name, value in good.values.items() if name not in version.served}
    served = {name: value for name, value in good.values.items() if name in version.served}
    return {**row, **served, **({"undefined": hidden} if hidden else {})}
