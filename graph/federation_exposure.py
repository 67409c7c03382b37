"""What the subgraph's schema shows beyond the usual: the words that CLADE_FEDERATION_EXPOSE can name."""

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
    """Words divided by commas. Raises BadInput for one that is none of EXPOSABLE."""
    found = frozenset(word.strip() for word in words.split(",")) - {""}
    if unknown := found - set(EXPOSABLE):
        raise BadInput(
            f"CLADE_FEDERATION_EXPOSE names {', '.join(sorted(unknown))}; it can name {', '.join(EXPOSABLE)}."
        )
    return found
