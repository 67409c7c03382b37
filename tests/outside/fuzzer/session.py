"""Session: one server of a data set with its oracle, and the check of one document by both."""

from collections import Counter
from typing import Any

from graphql import OperationDefinitionNode, parse

from tests.outside.failures import Wrong
from tests.outside.fuzzer import compare, damage, snapshot
from tests.outside.fuzzer.broken import other_literals
from tests.outside.fuzzer.client import Client, Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.data import DataSet
from tests.outside.fuzzer.oracle import Oracle
from tests.outside.processes import Place, command
from tests.processes import Answer

CURSORS = "{ edges { cursor node { path } } }"


class Session:
    """A server, its snapshot and its oracle."""

    def __init__(self, place: Place, data: DataSet) -> None:
        self.data = data
        self.counts: Counter[str] = Counter()
        self.store = place.new_store()
        data.load(place, self.store)
        self.server = place.server(self.store, hierarchies=data.hierarchies)
        self.client = Client(self.server.url)
        deleted = data.make_past(self.server)
        file = place.folder / f"{data.name}.graphql"
        command("schema", str(file), store=self.store, hierarchies=data.hierarchies)
        sdl = file.read_text(encoding="utf-8")
        self.snapshot = snapshot.take(self.client, data, sdl, deleted, self.wrong)
        if data.damage:
            self._harm(place)
        self.oracle = Oracle(self.snapshot.world, self._ask)
        self.cursors = self._collect_cursors()
        self._repeats = 0
        self._asked: Difference | None = None
        self._asked_document: Document | None = None

    def _harm(self, place: Place) -> None:
        """Damage nodes while no server runs, then ask for every field of each alone."""
        self.client.close()
        self.server.stop()
        damage.write(place, self.store, self.data.damage)
        self.server = place.server(self.store, hierarchies=self.data.hierarchies)
        self.client = Client(self.server.url)
        snapshot.read_damaged(self.client, self.snapshot)

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """A question of the oracle: the simplest document about one field, which may not fail inside either."""
        document = Document(query, variables)
        reply = self.client.ask(document)
        found = None if self.data.computed else compare.internal(reply)
        if found and not self._asked:
            self._asked, self._asked_document = found, document
        return dict(reply.json)

    def _collect_cursors(self) -> list[str]:
        """Cursors of some lists, so that documents can continue them."""
        known = []
        for hierarchy in self.snapshot.hierarchies:
            fields = hierarchy["fields"]
            root = Document(f"{{ {fields['listField']} {CURSORS} }}")
            known += _cursors(self.client.ask(root), [fields["listField"]], hierarchy["name"], None, "roots")
            for node in hierarchy["nodes"][:8]:
                for kind in ("children", "descendants", "history"):
                    cursors = CURSORS if kind != "history" else CURSORS.replace("path", "path: revision")
                    ask = Document(
                        f"query($p: Path!) {{ {fields['field']}(path: $p) {{ {kind} {cursors} }} }}",
                        {"p": node["path"]},
                    )
                    place = [fields["field"], kind]
                    known += _cursors(self.client.ask(ask), place, hierarchy["name"], node["path"], kind)
        self.oracle.know_cursors(known)
        return [str(one["cursor"]) for one in known]

    def check_limit(self, document: Document) -> tuple[Document, Difference] | None:
        """What is wrong with the answer to a document that is beyond a limit of requests."""
        reply = self.client.ask(document)
        self.counts["documents beyond a limit"] += 1
        if reply.status == 400 and set(reply.codes) == {"LIMIT_EXCEEDED"}:
            return None
        promise = "docs/security.md: a query that exceeds a limit is the error `LIMIT_EXCEEDED`"
        return document, Difference(
            "limit", ",".join(reply.codes), promise, "LIMIT_EXCEEDED", [reply.status, reply.json]
        )

    def check(self, document: Document, *, is_broken: bool = False) -> tuple[Document, Difference] | None:
        """What is wrong with the answer to a document, and the document that shows it; None if nothing is.

        It is asked with its values, with others, and again with the first ones, which gives the same bytes. Before
        all, one is asked that differs in its literals, so that the document is bound to what was compiled of that one,
        and compiled itself when it comes again.
        Of a broken one that graphql-js takes for valid it is open whether a scalar's own rules refuse it.
        """
        if (kin := other_literals(document.query)) is not None:
            self.client.ask(Document(kin, document.variables))
            self.counts["documents after one with other literals"] += 1
        first = self.client.ask(document)
        if found := self._check_one(document, first, is_broken=is_broken):
            return found
        for values in document.others:
            other = Document(document.query, values)
            if found := self._check_one(other, self.client.ask(other), is_broken=False):
                return (document if found[0] is other else found[0]), found[1]
        self._repeats += 1
        again = self.client.ask(document, by_get=self._repeats % 2 == 0)
        self.counts["responses repeated"] += 1
        if first.bytes == again.bytes or compare.BUDGETS & {*first.codes, *again.codes}:
            return None
        promise = "docs/consistency.md: while nothing is written, the same request has the same response"
        if first.json.get("data") == again.json.get("data") and compare.left_out(first):
            self.counts["responses repeated with others of the errors listed"] += 1
            return None
        pairs = zip(first.bytes, again.bytes, strict=False)
        start = max(0, next((at for at, (a, b) in enumerate(pairs) if a != b), 0) - 200)
        shown = slice(start, start + 1000)
        return document, Difference("repeated", "body", promise, first.bytes[shown], again.bytes[shown])

    def _check_one(self, document: Document, reply: Answer, *, is_broken: bool) -> tuple[Document, Difference] | None:
        self._asked = None
        oracle = self.oracle.answer(document.query, document.variables)
        if self._asked and self._asked_document:
            return self._asked_document, self._asked
        if found := compare.internal(reply, oracle):
            return document, found
        if is_broken and oracle["kind"] == "result" and "data" not in reply.json:
            self.counts["documents without a verdict"] += 1
            return None
        found = self._judge(document, reply, oracle)
        return (document, found) if found else None

    def _judge(self, document: Document, reply: Answer, oracle: dict[str, Any]) -> Difference | None:
        self.counts[f"documents {oracle['kind']}"] += 1
        if oracle["kind"] in ("syntax", "invalid"):
            return self._refused(reply, oracle)
        assert not oracle.get("bugs"), (oracle["bugs"], document.replay)
        if compare.BUDGETS & set(reply.codes) and not compare.within(oracle):
            self.counts["documents beyond a budget"] += 1
            return None
        if oracle["much"] or oracle.get("skips"):
            self.counts["documents without a verdict"] += 1
            return None
        for wrong in oracle["wrong"]:
            promise = "docs/lists.md: the list's order, filter and page"
            return Difference("list", str(wrong["list"]), promise, wrong["expected"], wrong["got"])
        self.counts["fields compared"] += oracle["fields"]
        self.counts["facets compared"] += oracle["facets"]
        self.counts["nodes compared"] += oracle["nodes"]
        self.counts["errors compared"] += len(oracle["errors"])
        self.counts["further errors of a null"] += compare.further_errors(reply) if "data" in reply.json else 0
        for reason, count in oracle["unsure"].items():
            self.counts[f"lists asked alone: {reason}"] += count
        found = compare.difference(reply, oracle, document.query) or self._lost(document, reply)
        if found and self.data.damage and compare.met_damage(found, reply, oracle):
            self.counts["documents that read a damaged item"] += 1
            return None
        if found and compare.met_directive(found, reply, document.query):
            self.counts["documents without a verdict"] += 1
            return None
        return found

    def _refused(self, reply: Answer, oracle: dict[str, Any]) -> Difference | None:
        promise = "docs/reference/errors.md: a document that does not match the schema is refused with 400 and a code"
        codes = set(reply.codes)
        if reply.status != 400 or "data" in reply.json or not codes or not codes <= compare.REFUSALS:
            return Difference("accepted", oracle["kind"], promise, oracle["message"], [reply.status, reply.json])
        return None

    def _lost(self, document: Document, reply: Answer) -> Difference | None:
        """Fields of the root that became null because of the error of another one."""
        if reply.json.get("data", 0) is not None or not reply.errors:
            return None
        if any(error["message"].startswith("Argument '") for error in reply.errors):
            return None  # of `_entities` or below `hierarchies`, which may not be null, as graphql-js says too
        operation = next(d for d in parse(document.query).definitions if isinstance(d, OperationDefinitionNode))
        if len(operation.selection_set.selections) < 2:
            return None
        promise = (
            "docs/security.md: an error of its field only; docs/reference/errors.md: the rest of the response is valid"
        )
        return Difference("lost", "a field of the root", promise, "the other fields", reply.json)

    def wrong(self, document: Document, found: Difference) -> Wrong:
        script = [f"data: {self.data.name}", document.replay, f"{found.kind} at {found.where}"]
        return Wrong(found.promise, script, found.expected, found.got)

    def close(self) -> None:
        self.oracle.close()
        self.client.close()
        self.server.stop()


def _cursors(reply: Answer, place: list[str], hierarchy: str, node: str | None, kind: str) -> list[dict[str, Any]]:
    found = reply.json["data"]
    for name in place:
        found = found and found[name]
    if found is None:  # a damaged node
        return []
    of = {"node": node, "kind": kind, "hierarchy": hierarchy, "args": {}}
    return [{"cursor": edge["cursor"], "path": str(edge["node"]["path"]), **of} for edge in found["edges"]]
