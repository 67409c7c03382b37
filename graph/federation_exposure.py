"""Federation exposure: the optional parts of the subgraph's schema, which CLADE_FEDERATION_EXPOSE can name."""

from store.errors import BadInput

EXPOSABLE = ("node", "nodes", "changes", "history", "moves", "mutations")


def exposed(words: str) -> frozenset[str]:
    """The words of a comma-separated list. Raises BadInput for a word that is not in EXPOSABLE."""
    found = frozenset(word.strip() for word in words.split(",")) - {""}
    if unknown := found - set(EXPOSABLE):
        wrong, right = ", ".join(sorted(unknown)), ", ".join(EXPOSABLE)
        raise BadInput(f"CLADE_FEDERATION_EXPOSE has unknown words: {wrong}; use {right}.")
    return found
