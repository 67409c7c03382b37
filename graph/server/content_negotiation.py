"""Which media type an answer has: what the client accepts, weighed as RFC 9110 says."""

from collections.abc import Sequence
from functools import lru_cache

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
HTML = "text/html"

EXACT, SUBTYPES, ANYTHING = 2, 1, 0


@lru_cache(maxsize=256)
def choose(accept: str, offers: Sequence[str]) -> str | None:
    """The offer that the Accept header likes best, None where it likes none.

    Equal likes go to the earliest offer if the client names it, else to JSON: a client that says `*/*` may not know
    of GraphQL's own type, one that names both knows.
    """
    ranges = [parse(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return JSON
    best, best_rank = None, (0.0, -1, False)
    for offer in offers:
        specificity, liked = liking(offer, ranges)
        rank = (liked, specificity, specificity < EXACT and offer == JSON)
        if liked > 0 and rank > best_rank:
            best, best_rank = offer, rank
    return best


@lru_cache(maxsize=256)
def is_json(content_type: str) -> bool:
    """Whether a body of this Content-Type is JSON in UTF-8, which it is where no charset is said."""
    media_type, parameters = parse(content_type)
    return media_type == JSON and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def liking(offer: str, ranges: Sequence[tuple[str, dict[str, str]]]) -> tuple[int, float]:
    """How closely the closest range names the offer, and the quality that it gives it."""
    specificities = {offer: EXACT, offer.split("/")[0] + "/*": SUBTYPES, "*/*": ANYTHING}
    found = [
        (specificities[media_range], quality(parameters))
        for media_range, parameters in ranges
        if media_range in specificities
    ]
    return max(found, default=(ANYTHING, 0.0))


def quality(parameters: dict[str, str]) -> float:
    try:
        return min(max(float(parameters.get("q", "1")), 0.0), 1.0)
    except ValueError:
        return 0.0


def parse(value: str) -> tuple[str, dict[str, str]]:
    """A media type or range and its parameters; names in lower case, values without quotes."""
    media_type, *rest = value.split(";")
    pairs = (parameter.partition("=") for parameter in rest)
    return media_type.strip().lower(), {name.strip().lower(): text.strip().strip('"') for name, _, text in pairs}
