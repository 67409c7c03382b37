"""Promises of the docs that the model tries: page and sentence."""

Promise = tuple[str, str]

SEEN: Promise = (
    "consistency.md",
    "Each read sees each write that was acknowledged before the read was sent: nodes, lists, counts, history and "
    "changes.",
)
BY_PATH: Promise = (
    "querying.md",
    "A node that does not exist is null; a node of another level is an error, `WRONG_LEVEL`.",
)
REDIRECT: Promise = (
    "querying.md",
    "A former path of a node that was moved or renamed still finds it; the field `path` of the response is then the "
    "new one.",
)
BY_ID: Promise = ("querying.md", "The id survives renames and moves, so store it in other systems.")
BY_CODE: Promise = (
    "attributes.md",
    "With `unique=True` no two nodes of the hierarchy have the same value of the attribute, and a node is named by it "
    "in every input, and looked up by the field of its level",
)
EXACT: Promise = (
    "attributes.md",
    "Values compare exactly: case, spaces and leading zeros count, and an empty text is a value. Only how Unicode "
    "composes characters does not (NFC).",
)
FREED: Promise = (
    "attributes.md",
    "A deleted node has no value, and takes its last one again when it is [restored](writing.md#undo-a-deletion); one "
    "that is cleared is free.",
)
BY_THEN: Promise = ("writing.md", "A value names the node that would have it by then.")
EITHER_NAME: Promise = (
    "attributes.md",
    "`expectedRevision` needs the path or id of the node, since a value may have passed on to another node.",
)
CODED_ENTITIES: Promise = (
    "federation.md",
    "An attribute with `unique=True` and `federation_key=True` is a further key",
)
ROOTS: Promise = ("querying.md", "The roots of a hierarchy are the list named after it: `locations`, `categories`.")
CHILDREN: Promise = (
    "lists.md",
    "Children and roots are sorted by the names of their levels (`CITY` before `STATE`), and within a level by key",
)
DESCENDANTS: Promise = ("querying.md", "`descendants` is the whole subtree as one flat list in path order.")
SORTED: Promise = (
    "lists.md",
    "Nodes without the value come last, in both directions. Nodes with equal values stay in the order of the list.",
)
FILTERED: Promise = ("lists.md", "A node has to meet all of them; `and`, `or` and `not` combine conditions.")
PAGES: Promise = (
    "lists.md",
    "Every list is a connection as Relay specifies it: `first` and `after` page forwards, `last` and `before` "
    "backwards. `totalCount` is the length of the whole list.",
)
VALID: Promise = (
    "lists.md",
    "It contains the values of its node, so it stays valid if the node changes or is deleted.",
)
MOVED_CURSOR: Promise = (
    "lists.md",
    "A cursor in this order is the path of its node. It goes on from wherever the node is now; once the node was moved "
    "or deleted, or has left the list, it is rejected with `BAD_CURSOR`: start again without it.",
)
ENTITIES: Promise = (
    "federation.md",
    "The response is in the order of the representations. An entity that does not exist is null without an error.",
)
DELETED: Promise = (
    "writing.md",
    "`deletedNode(id: …)` returns a deleted node: `nodeId`, `path` and `level`, when and by whom it was deleted, its "
    "`lastRevision`, and its `history`.",
)
FEED: Promise = (
    "writing.md",
    "`changes` lists the changes of a tree (change feed, change data capture), in order, for 90 days.",
)
FOLLOWED: Promise = (
    "writing.md",
    "Apply the changes in order: remove a `DELETED` node, move a `MOVED` one from `from` to `to`, and if it comes from "
    "another tree, read it with its subtree.",
)
SEARCH: Promise = (
    "find-nodes.md",
    "Each word of `text` has to be the beginning of a word of the node: of its name, its names in other languages, its "
    "key, or an attribute with `search=True`.",
)
BEST: Promise = (
    "find-nodes.md",
    "Nodes whose name equals the text come first, then nodes whose name begins with it, then all others.",
)
NEAR: Promise = (
    "find-nodes.md",
    "The nearest come first, and those at the same distance in the order of the list. `kilometers` is the distance on "
    "a sphere with the Earth's mean radius (6,371.0088 km).",
)
REJECTED: Promise = (
    "reference/errors.md",
    "An error has a `message`, which says what to change, and a code in `extensions.code`.",
)
FAULTS: Promise = (
    "writing.md",
    "`userErrors` in the payload lists **all** faults at once, and then nothing is written. First come those of the "
    "input itself and of the nodes that it names; a node that is not found hides only what depends on it.",
)
BESIDE: Promise = (
    "reference/errors.md",
    "Stored data does not match its hierarchy; the rest of the response is valid.",
)
ATOMIC: Promise = ("writing.md", "A mutation is atomic: all of it is made, or nothing.")
PAYLOAD: Promise = ("consistency.md", "the node in a mutation's payload | it is as the mutation left it")
FORMER_PARENT: Promise = (
    "reference/schema.md",
    "Former parent as it is now; null for a root, a dry run or faults.",
)
FORECAST: Promise = (
    "writing.md",
    "`dryRun` returns the number of nodes and write units in advance, or what would be wrong.",
)
REPEATED: Promise = (
    "writing.md",
    "A mutation that is sent again with its `idempotencyKey` returns the node as it was written, at the path and with "
    "the revision and content of that time",
)
ONE_KEY: Promise = (
    "writing.md",
    "A mutation is the same if it has the same input, in any order, where null is not the same as omitted; a key that "
    "was used for another mutation of the hierarchy is rejected.",
)
SEVERAL_NODES: Promise = (
    "writing.md",
    "`nodes` has the node of each edit as it is after all of them, a deleted one as it was",
)
SEVERAL_FAULTS: Promise = (
    "writing.md",
    "**Faults of all edits come at once**, each with the place of its `edit`, from 0, and nothing is written.",
)
UNREAD_EDITS: Promise = (
    "writing.md",
    "What the schema does not take, such as two positions of one edit, is told before any edit is looked at",
)
UNIQUE: Promise = (
    "writing.md",
    "Keys are judged edit by edit, [unique values](attributes.md#unique-values) at the end: two nodes change their "
    "values in two edits, and of two that get the same one, the later edit is `TAKEN`.",
)
ONE_PLAN: Promise = (
    "writing.md",
    "a dry run one `plan`, which counts a node once however many edits touch it",
)
SUM: Promise = ("writing.md", "`Int` and `Long` take whole amounts. A missing value counts as 0")
NEW_ID: Promise = (
    "writing.md",
    "An id is not reused unless you request it: a new node at the path of a deleted one has a new id and a new "
    "history.",
)
POSITION: Promise = (
    "writing.md",
    "its `position` among its siblings of the same level",
)
RESTORED: Promise = (
    "writing.md",
    "below its former parent, wherever that is now. `to` and `key` choose another place, as those of a move.",
)
RESTORED_PART: Promise = ("writing.md", "any node that a deletion removed can be named, not only its top.")
STAYS_DELETED: Promise = (
    "writing.md",
    "A node that was brought back since stays where it is, and what was below it stays deleted until it is restored, "
    "too.",
)
RESTORED_REVISIONS: Promise = (
    "writing.md",
    "each node gets one, with the content of its last one, so that its `history` tells when and by whom it was "
    "restored.",
)
RESTORED_LOG: Promise = ("writing.md", "one change, `RESTORED`, [with all descendants](#changes-of-a-tree).")
RESTORED_VALUES: Promise = ("writing.md", "another node has a unique value of one of the nodes")
LARGE_MOVE: Promise = (
    "writing.md",
    "A larger move, rename or `CASCADE` is registered by one transaction and continues in the background",
)
WRITTEN_AT: Promise = ("reference/schema.md", "Time of the last change of the content.")
MOMENT: Promise = (
    "consistency.md",
    "One response shows one moment (a snapshot): no part of it is older or newer than the rest.",
)
COUNTS: Promise = (
    "concepts.md",
    "Every transaction that adds, removes or moves nodes also updates the counts of all ancestors.",
)

PROMISES: tuple[Promise, ...] = tuple(
    value for name, value in sorted(globals().items()) if name.isupper() and isinstance(value, tuple)
)
