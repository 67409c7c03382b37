"""Optional fields of the subgraph schema, which CLADE_FEDERATION_EXPOSE enables."""

from store.errors import BadInput

NODE, NODES, CHANGES, HISTORY, MOVES, MUTATIONS = EXPOSABLE = (
    "node",
    "nodes",
    "changes",
    "history",
    "moves",
    "mutations",
)


def exposed(words: str) -> frozenset[str]:
    """The comma-separated words of the setting. Raises BadInput for a word that is not one of EXPOSABLE."""
    found = frozenset(word.strip() for word in words.split(",")) - {""}
    if unknown := found - set(EXPOSABLE):
        raise BadInput(
            f"CLADE_FEDERATION_EXPOSE has unknown words: {', '.join(sorted(unknown))}; use {', '.join(EXPOSABLE)}."
        )
    return found
