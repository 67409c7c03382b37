"""Session: one server of a data set with its oracle, and the check of one document by both."""

from collections import Counter
from typing import Any

from graphql import OperationDefinitionNode, parse

from tests.outside.failures import Wrong
from tests.outside.fuzzer import compare, snapshot
from tests.outside.fuzzer.client import Client, Document, Reply
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.data import DataSet
from tests.outside.fuzzer.oracle import Oracle
from tests.outside.processes import Place, command

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
        self.oracle = Oracle(self.snapshot.world, self._ask)
        self.cursors = self._collect_cursors()
        self._asked: Difference | None = None
        self._asked_document: Document | None = None

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """A question of the oracle: the simplest document about one field, which may not fail inside either."""
        document = Document(query, variables)
        reply = self.client.ask(document)
        found = compare.internal(reply)
        if found and not self._asked:
            self._asked, self._asked_document = found, document
        return dict(reply.body)

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
            "limit", ",".join(reply.codes), promise, "LIMIT_EXCEEDED", [reply.status, reply.body]
        )

    def check(self, document: Document, *, is_broken: bool = False) -> tuple[Document, Difference] | None:
        """What is wrong with the answer to a document, and the document that shows it; None if nothing is.

        Of a broken one that graphql-js takes for valid it is open whether a scalar's own rules refuse it.
        """
        reply = self.client.ask(document)
        found = compare.internal(reply)
        if found:
            return document, found
        self._asked = None
        oracle = self.oracle.answer(document.query, document.variables)
        if self._asked and self._asked_document:
            return self._asked_document, self._asked
        if is_broken and oracle["kind"] == "result" and "data" not in reply.body:
            self.counts["documents without a verdict"] += 1
            return None
        found = self._judge(document, reply, oracle)
        return (document, found) if found else None

    def _judge(self, document: Document, reply: Reply, oracle: dict[str, Any]) -> Difference | None:
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
        self.counts["nodes compared"] += oracle["nodes"]
        self.counts["errors compared"] += len(oracle["errors"])
        for reason, count in oracle["unsure"].items():
            self.counts[f"lists asked alone: {reason}"] += count
        return compare.difference(reply, oracle) or self._lost(document, reply)

    def _refused(self, reply: Reply, oracle: dict[str, Any]) -> Difference | None:
        promise = "docs/reference/errors.md: a document that does not match the schema is refused with 400 and a code"
        codes = set(reply.codes)
        if reply.status != 400 or "data" in reply.body or not codes or not codes <= compare.REFUSALS:
            return Difference("accepted", oracle["kind"], promise, oracle["message"], [reply.status, reply.body])
        return None

    def _lost(self, document: Document, reply: Reply) -> Difference | None:
        """Fields of the root that became null because of the error of another one."""
        if reply.body.get("data", 0) is not None or not reply.errors:
            return None
        if any("Argument 'if'" in error["message"] for error in reply.errors):
            return None  # of an object below `hierarchies`, which may not be null: compared with graphql-js already
        operation = next(d for d in parse(document.query).definitions if isinstance(d, OperationDefinitionNode))
        if len(operation.selection_set.selections) < 2:
            return None
        promise = (
            "docs/security.md: an error of its field only; docs/reference/errors.md: the rest of the response is valid"
        )
        return Difference("lost", "a field of the root", promise, "the other fields", reply.body)

    def wrong(self, document: Document, found: Difference) -> Wrong:
        script = [f"data: {self.data.name}", document.replay, f"{found.kind} at {found.where}"]
        return Wrong(found.promise, script, found.expected, found.got)

    def close(self) -> None:
        self.oracle.close()
        self.client.close()
        self.server.stop()


def _cursors(reply: Reply, place: list[str], hierarchy: str, node: str | None, kind: str) -> list[dict[str, Any]]:
    found = reply.body["data"]
    for name in place:
        found = found[name]
    of = {"node": node, "kind": kind, "hierarchy": hierarchy, "args": {}}
    return [{"cursor": edge["cursor"], "path": str(edge["node"]["path"]), **of} for edge in found["edges"]]
