"""Contents of files: their formats by the first bytes, where an extension is unknown or wrong, and what is not read."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import orjson

from store.transfer.formats.csv import looks_like_table
from store.transfer.formats.encodings import SAMPLE_BYTES, certain_encoding
from store.transfer.formats.source import content_name, opened
from store.transfer.formats.table import COMMENT

MARKDOWN = (".md", ".markdown")
_UNREAD = frozenset(
    ".xml .kml .gpx .graphml .mm .rss .xsd .opml .rdf .owl .ttl .n3 .trig .nt .nq .yaml .yml .toml .html .htm .xhtml "
    ".pdf .sql .mrc .numbers .mdb .accdb .rtf .doc .docx .odt .ppt .pptx .odp .db .sqlite .sqlite3 .dbf .shp .gpkg "
    ".py .php .rb .java .cs .7z .ldif .rar .tar .tgz .bz2 .xz .zst".split()
)
_KINDS = {
    "XML or HTML": re.compile(r"\s*(?:<\?xml|<!doctype|<!--|<[a-z][\w:.-]*(?:\s[^<>]*)?>(?=.*</))", re.I | re.S),
    "Turtle": re.compile(r"\s*(?:#.*\n\s*)*@(?:prefix|base)\s", re.I),
    "YAML": re.compile(r"%YAML|---\s*\n(?:#.*\n)*[\w -]+:(?:\s|$)"),
    "LDIF": re.compile(r"\s*(?:#.*\n\s*)*(?:version: *\d+\s+)?dn::? *\S+=.*\n", re.I),
    "JSON-LD": re.compile(r'\s*(?:\[\s*)?\{[^{}]*"@(?:context|graph|id)"\s*:(?!.*"FeatureCollection")', re.S),
    "a script with data, or JSON with other text": re.compile(
        r"(?:[^\n]*\n)*?[ \t]*(?:export\s+default|(?:(?:export\s+)?(?:var|let|const)\s+)?[\w$.]+(?::[^\n=]*)?\s*=)"
        r"\s*(?:[({[]\s*)+(?:[\"'{}\]]|[\w$]+\s*:)"
        r"|(?:\s|//[^\n]*+\n|(?>/\*(?s:.*?)\*/))*(?:[\w$.]*\(|//[^\n]*+\n|(?>/\*(?s:.*?)\*/)|\)]}',?)\s*[{[]\s*(?:[\"'{}[\]]|[\w$]+\s*:)"
    ),
    "PDF": re.compile("%PDF-"),
    "SQL": re.compile(r"\s*(?:--.*\n\s*)*(?:create\s+table\s.*\(|insert\s+into\s\S+\s*(?:\(|values|select))", re.I),
}
_YAML_LINE = re.compile(r"( *)((?:- +)*)(?:([^\s#:-][^#:]*):(?: +(\S.*)?)?$|(?<=- )\S)")
_JSON = re.compile(r"[{[]\s*(?:[\"'{}[\]]|[\w$]+\s*:)")
_CONTROL = re.compile("[\0-\x08\x0e-\x1a]")


def unread_kind(file: Path) -> str:
    """What a file is, by its extension or its content, that no import reads; empty where it may be read."""
    suffix = Path(content_name(file)).suffix.lower()
    if suffix in _UNREAD:
        return f"a file of the kind {suffix}"
    text = "" if suffix in MARKDOWN else _start(file)
    found = next((kind for kind, start in _KINDS.items() if start.match(text)), "")
    return found or ("YAML" if _is_yaml(text) else "")


def _is_yaml(text: str) -> bool:
    """Whether nearly all lines have names with values or with lines below them, and lists of these, or a name again.

    Lines such as `Tools:` and `- Saws` are an outline, too, as are those where each item has an own name.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found = [match for match in map(_YAML_LINE.match, lines) if match]
    names = Counter(match[3] for match in found if match[4])
    has_fields = sum(1 for match in found if match[2] and match[4]) > 1 or names.total() > len(names)
    places = [(match[3], match[4], match[2], len(match[1] + match[2])) for match in found]
    nests = any(
        name and (at < below if value is None else item and not next_item and at == below)
        for (name, value, item, at), (_, _, next_item, below) in pairwise(places)
    )
    return has_fields and nests and 10 * len(found) >= 9 * len(lines)


def readings(file: Path, *, is_known: bool) -> list[Sequence[str]]:
    """The options for a file of each format that it can be by its content, the likeliest first; none where that is not
    clear. For an extension that `is_known` those of a text that is no JSON are left out.
    """
    text, suffix = _start(file), Path(content_name(file)).suffix.lower()
    every = [line for line in text.splitlines() if line.strip()]
    lines = [line for line in every if not COMMENT.match(line)] if every and COMMENT.match(every[0]) else every
    if text.startswith("PAR1"):
        return [("--format", "parquet")]
    if text.startswith("PK"):
        return [("--format", "excel")] if "xl/" in text else []
    if text.lstrip()[:1] in ("{", "["):
        return [("--format", name) for name in _json_formats(text, every, is_known=is_known and suffix != ".txt")]
    if is_known or not lines or _CONTROL.search(text):
        return []
    if suffix in MARKDOWN:
        return [("--tree-by", "indent")]
    if looks_like_table(file):
        return [("--format", "csv")]
    if any(" > " in line for line in lines):
        return [("--format", "taxonomy")]
    if any(re.match(r"\s+\S|[-*+#]+\s|[├└│|]", line) for line in lines):
        return [("--tree-by", "indent")]
    return [("--format", "taxonomy"), *([("--format", "csv")] if lines == every else [])]


def _json_formats(text: str, lines: Sequence[str], *, is_known: bool) -> Sequence[str]:
    if len(lines) > 1 and _begins_as_json(lines[0], is_whole=True):
        return ("jsonl",)
    if not _begins_as_json(text):
        return () if is_known or not _JSON.match(text.lstrip()) else ("json",)  # which says what is wrong
    return ("json", "jsonl") if len(lines) == 1 else ("geojson", "json") if '"FeatureCollection"' in text else ("json",)


def _begins_as_json(text: str, *, is_whole: bool = False) -> bool:
    try:
        return isinstance(orjson.loads(text), dict | list)
    except orjson.JSONDecodeError as error:
        return not is_whole and error.msg == "unexpected end of data"


def _start(file: Path) -> str:
    """The beginning of a file as text, of an archive that is no .zip its bytes."""
    with file.open("rb") as raw:
        start = raw.read(SAMPLE_BYTES)
    if start[:2] != b"PK" or file.suffix.lower() == ".zip":
        with opened(file) as content:
            start = content.read(SAMPLE_BYTES)
    encoding = certain_encoding(start) if not start.startswith((b"PK", b"PAR1", b"SQLite")) else None
    return start.decode(encoding or ("utf-8" if start[:1] in b"{[" else "latin-1"), "replace").removeprefix("\ufeff")
