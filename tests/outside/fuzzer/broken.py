"""Changed documents: broken ones, by one change that makes most invalid, and valid ones by other literals."""

import random
import re
from collections.abc import Callable

from graphql import GraphQLSyntaxError, Source, TokenKind
from graphql.language import Lexer

from tests.outside.fuzzer.client import Document

NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
DEEP = 60


def break_one(random_: random.Random, document: Document) -> Document:
    """The document after one change. It may still be valid: the oracle says whether it is."""
    change: Callable[[random.Random, str], str] = random_.choice(CHANGES)
    return Document(change(random_, document.query), document.variables)


def beyond(random_: random.Random) -> Document:
    """A document beyond one of the limits of a request, in docs/security.md."""
    return Document(random_.choice((
        "{ " + " ".join(f"a{n}: __typename" for n in range(31)) + " }",
        "{ " + " ".join(f"a{n}: hierarchies {{ name }}" for n in range(31)) + " }",
        "{ hierarchies { name " + "@include(if: true) " * 300 + "} }",
        "{ hierarchies { " + "name " * 101 + "} }",
        "{ hierarchies { name " + "# comment\n" * 2001 + "} }",
        "{ node(id: \"x\") { id } " + "hierarchies { levels { attributes { " * 8 + "name" + " } } }" * 8 + " }",
        "{ " + "a { " * DEEP + "b" + " }" * DEEP + " }",
        "{ ...A } fragment A on Query { " + "...B " * 90 + "} fragment B on Query { " + "...C " * 90 + "} "
        "fragment C on Query { __typename }",
    )))  # fmt: skip


def other_literals(query: str) -> str | None:
    """The document with other strings and numbers, equal where these are; None where there are none."""
    changed, end, lexer = "", 0, Lexer(Source(query))
    try:
        while (token := lexer.advance()).kind is not TokenKind.EOF:
            text = query[token.start : token.end]
            if token.kind is TokenKind.INT and len(text) < 9:
                text = str(int(text) + 1)
            elif token.kind is TokenKind.FLOAT and text.lstrip("-").replace(".", "").isdigit():
                text += "1"
            elif token.kind in (TokenKind.STRING, TokenKind.BLOCK_STRING):
                quotes = '"' if token.kind is TokenKind.STRING else '"""'
                text = f"{text.removesuffix(quotes)}z{quotes}"
            changed, end = changed + query[end : token.start] + text, token.end
    except GraphQLSyntaxError:
        return None
    changed += query[end:]
    return None if changed == query else changed


def _word(random_: random.Random, query: str) -> str:
    """Another word instead of one."""
    words = list(NAME.finditer(query))
    chosen = random_.choice(words)
    other = random_.choice(("nothing", "id", "true", "null", "Query", "path", random_.choice(words)[0]))
    return query[: chosen.start()] + other + query[chosen.end() :]


def _without(random_: random.Random, query: str) -> str:
    """Without one character that has a meaning."""
    places = [number for number, letter in enumerate(query) if letter in '{}()[]$:!@".']
    chosen = random_.choice(places)
    return query[:chosen] + query[chosen + 1 :]


def _twice(random_: random.Random, query: str) -> str:
    """A word twice."""
    chosen = random_.choice(list(NAME.finditer(query)))
    return query[: chosen.end()] + " " + query[chosen.start() :]


def _cut(random_: random.Random, query: str) -> str:
    return query[: random_.randrange(len(query))]


def _odd(random_: random.Random, query: str) -> str:
    """An odd character somewhere."""
    place = random_.randrange(len(query))
    return (
        query[:place]
        + random_.choice(("\x00", "\u2028", "😀", "\\", '"""', "&", "...", "$", "\ufeff", "1e9"))
        + query[place:]
    )


def _more(random_: random.Random, query: str) -> str:
    """Definitions that do not belong there."""
    return query + random_.choice((
        " fragment U on Query { __typename }", " query Q { __typename }", " type T { a: Int }", " subscription S { a }",
        " fragment A on Query { ...B } fragment B on Query { ...A }", " { __typename }",
    ))  # fmt: skip


CHANGES = (_word, _word, _word, _without, _twice, _cut, _odd, _more)
