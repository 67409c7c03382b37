"""Fuzzer with an oracle: random documents of the schema, answered by Clade and by graphql-js over the same data."""

from tests.outside.fuzzer.fuzzing import run
from tests.outside.parts import Part

PART = Part(
    "fuzzer",
    run,
    (
        ("querying.md", "A list is never truncated silently: it is complete, a page with `pageInfo`, or an error."),
        ("querying.md", "A former path of a node that was moved or renamed still finds it"),
        ("lists.md", "Every list is a connection as Relay specifies it"),
        ("lists.md", "Nodes without the value come last, in both directions."),
        ("find-nodes.md", "Each word of `text` has to be the beginning of a word of the node"),
        ("consistency.md", "it is as the mutation left it"),
        (
            "lists.md",
            "A node without the value meets `isNull: true`, `ne`, and `not` around any other condition on the value.",
        ),
        ("languages.md", "Each tag is tried as it is, then shortened: `de-AT`, then `de`."),
        ("security.md", "A list of too many nodes is an error of its field only"),
        ("reference/errors.md", "The document does not match the schema."),
        ("federation.md", "An entity that does not exist is null without an error."),
        ("attributes.md", "name of a member"),
        ("attributes.md", "An exception in it is logged, and is an error of this field only."),
        ("reference/errors.md", "Stored data does not match its hierarchy; the rest of the response is valid."),
    ),
)
