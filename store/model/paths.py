"""Paths as clients write them: parsed, normalized (NFC) and limited; `US/NE/Omaha` is `("US", "NE", "Omaha")`."""

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from store.errors import BadPath, Rule, shorten, shown
from store.model.keys import MAX_ROOT_BYTES, MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Path, encode_segment, path_of, sort_key
from store.model.letters import UNSEEN

MAX_CACHED_CHARACTERS = 200  # of a path whose segments are cached
MAX_PATH_CHARACTERS = 8_000  # of a path as text: at most four make one byte of its keys, which have 1,924 at most
MAX_SEGMENT_CHARACTERS = 4_100  # likewise of one segment
MAX_COMBINING_MARKS = 30  # in a row, as in Unicode's Stream-Safe Text Format (UAX #15): normalizing n of them takes n²
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# The tags after a flag make another flag of it, so they are seen.
_UNSEEN = re.compile(f"(\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f)|[{UNSEEN}]")
_BLANKS = re.compile("[\\s\u2800\u3164\uffa0]+")
_PRINTABLE_UNSEEN = re.compile("[\u034f\u2800\u3164\uffa0]")  # all others are not printable for Python
_JOINERS = "\u180e\u200c\u200d"
# Scripts in which a joiner changes how a word is written: from Arabic to Myanmar, Khmer, Mongolian, those of India.
_JOINED = re.compile("[\u0620-\u109f\u1780-\u180d\u180f-\u18af\u1a00-\u1cff\ua800-\uabff\U00010a00-\U00011fff]")
_VIRAMA = 9  # Unicode's combining class
_TEXT_ESCAPE = re.compile("%(2F|25)?", re.IGNORECASE)  # or a lone %


def parse_path(text: str) -> Path:
    """`US/MO/St. Louis` as segments; a `/` or `%` inside a segment is written `%2F`, `%25`.

    Raises BadPath where the text is no path. Its length and number of segments are checked first.
    """
    if len(text) > MAX_PATH_CHARACTERS:
        limit = f"at most {MAX_PATH_CHARACTERS:,} are allowed"
        raise BadPath(f"The path has {len(text):,} characters; {limit}.", Rule.MAX_LENGTH)
    parsed = _parsed(text) if len(text) <= MAX_CACHED_CHARACTERS else _parse(text)
    if isinstance(parsed, BadPath):
        raise BadPath(str(parsed), parsed.rule)
    return parsed


def _parse(text: str) -> Path | BadPath:
    """The segments of a path, or its error, to be cached."""
    try:
        if not text:
            raise BadPath("The path is empty; give that of a node.", Rule.EMPTY)
        _check_depth(text.count("/") + 1)
        return checked_path(_unescape(segment, text) for segment in text.split("/"))
    except BadPath as error:
        return error.bare()


# Requests repeat paths, also wrong ones: one for each node of a long list.
_parsed = lru_cache(1_000)(_parse)


def format_path(path: Path) -> str:
    """The inverse of `parse_path`."""
    return "/".join([segment.replace("%", "%25").replace("/", "%2F") for segment in path])


def path_text(pk: str, sk: str) -> str:
    """The path of the node at a key as text, which mostly is its key with other separators."""
    text = pk[pk.index("#") + 1 :] + sk[:-1]
    return format_path(path_of(pk, sk)) if "%" in text or "/" in text else text.replace("#", "/")


def checked_path(segments: Iterable[object]) -> Path:
    """The segments in normal form (NFC); raises BadPath where they are no path. Every path from outside passes here."""
    path = tuple([checked_segment(segment) for segment in segments])
    if not path:
        raise BadPath("The path is empty; write at least the key of a root.", Rule.EMPTY)
    check_limits(path)
    return path


def check_limits(path: Path) -> None:
    """Raise BadPath where a path of valid segments is too deep or too long."""
    _check_depth(len(path))
    check_sizes(path)


def _check_depth(segments: int) -> None:
    if segments > MAX_SEGMENTS:
        raise BadPath(f"The path has {segments:,} keys; at most {MAX_SEGMENTS} are allowed.", Rule.DEPTH)


def _unescape(segment: str, text: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        if match[1] is None:
            raise BadPath(f'"{shorten(text)}" has a lone %; inside a key write %25 for % and %2F for /.')
        return "%" if match[1] == "25" else "/"

    return _TEXT_ESCAPE.sub(unescaped, segment) if "%" in segment else segment


def checked_segment(segment: object) -> str:
    """One segment in normal form; raises BadPath where it is none. Its size is not checked."""
    if not isinstance(segment, str):
        raise BadPath(f"A key is {shown(segment)}, which is not a text; write a text.", Rule.TYPE)
    if not segment:
        raise BadPath("The path has an empty key; write one separator between two keys, and none at either end.")
    if len(segment) > MAX_SEGMENT_CHARACTERS:
        limit = f"at most {MAX_SEGMENT_CHARACTERS:,} are allowed"
        raise BadPath(f"A key has {len(segment):,} characters; {limit}.", Rule.MAX_LENGTH)
    if bad := _UNWRITABLE.search(segment):
        raise BadPath(f"A key has the character U+{ord(bad[0]):04X}; leave it out.", Rule.CHARACTERS)
    if segment.isascii():
        return segment
    _check_marks(segment)
    return unicodedata.normalize("NFC", segment)


def check_new_key(key: str) -> None:
    """Raise BadPath for the key of a new node that could look like another one: it differs from its `visible_key`."""
    if (visible := visible_key(key)) == key:
        return
    if not visible:
        raise BadPath(f"Nobody sees the key {shorten(json.dumps(key))}; write one that is seen.", Rule.EMPTY)
    text = f"The key {shorten(json.dumps(key))} has a blank too many, or a character that nobody sees"
    raise BadPath(f'{text}; write "{shorten(visible)}".', Rule.CHARACTERS)


def visible_key(segment: str) -> str:
    """A checked segment without what nobody sees, so that keys which look alike are one: without invisible characters,
    and with plain single blanks between words. It may be empty.

    Joiners stay where they belong to the writing: within words of scripts that have them, after a virama (RFC 5892,
    appendix A), and between emoji.
    """
    is_plain = segment.isprintable() and "  " not in segment and segment[0] != " " and segment[-1] != " "
    if is_plain and (segment.isascii() or not _PRINTABLE_UNSEEN.search(segment)):
        return segment

    def seen(match: re.Match[str]) -> str:
        return match[0] if match[1] or _is_joiner(segment, match.start()) else ""

    return unicodedata.normalize("NFC", _BLANKS.sub(" ", _UNSEEN.sub(seen, segment)).strip(" "))


def _is_joiner(segment: str, index: int) -> bool:
    """Whether the character at an index is a joiner that belongs to the writing."""
    joiner, before, after = segment[index], segment[max(0, index - 1) : index], segment[index + 1 : index + 2]
    if joiner not in _JOINERS or not before:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return True
    if _JOINED.match(before):
        return _JOINED.match(after) is not None
    is_emoji = before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk")
    return joiner == "\u200d" and is_emoji and after != "" and unicodedata.category(after) == "So"


def _check_marks(segment: str) -> None:
    """Raise BadPath where more combining marks follow one another than any language writes."""
    marks = 0
    for character in segment if len(segment) > MAX_COMBINING_MARKS else "":
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MAX_COMBINING_MARKS:
            text = f"A key has more than {MAX_COMBINING_MARKS} combining marks in a row; leave some out."
            raise BadPath(text, Rule.CHARACTERS)


def check_sizes(path: Path) -> None:
    """Raise BadPath for a path whose keys DynamoDB could not hold."""
    if (size := _bytes(path[0])) > MAX_ROOT_BYTES:
        text = f'The key "{shorten(path[0])}" of a root takes {size} bytes; at most {MAX_ROOT_BYTES} fit.'
        raise BadPath(text, Rule.MAX_LENGTH)
    if (size := len(sort_key(path).encode())) > MAX_SORT_KEY_BYTES:
        longest = max(path[1:], key=_bytes)
        raise BadPath(
            f"The path takes {size} bytes below its root; at most {MAX_SORT_KEY_BYTES} fit. "
            f'Its longest key, "{shorten(longest)}", takes {_bytes(longest)}.',
            Rule.MAX_LENGTH,
        )


def _bytes(segment: str) -> int:
    return len(encode_segment(segment).encode())
