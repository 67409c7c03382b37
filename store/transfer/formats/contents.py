"""Contents of files: their formats by the first bytes, where an extension is unknown or wrong, and what is not read."""

import re
from collections.abc import Sequence
from pathlib import Path

import orjson

from store.transfer.formats.csv import looks_like_table
from store.transfer.formats.encodings import SAMPLE_BYTES, certain_encoding
from store.transfer.formats.source import content_name, opened

MARKDOWN = (".md", ".markdown")
_UNREAD = {
    "XML": "xml kml gpx graphml mm rss xsd", "OPML": "opml", "RDF": "rdf owl", "Turtle": "ttl n3 trig",
    "N-Triples": "nt nq", "YAML": "yaml yml", "TOML": "toml", "HTML": "html htm xhtml", "PDF": "pdf", "SQL": "sql",
    "MARC": "mrc marc", "a Numbers document": "numbers", "an Access database": "mdb accdb", "RTF": "rtf",
    "a Word document": "doc docx odt", "a presentation": "ppt pptx odp key", "an SQLite database": "db sqlite sqlite3",
    "dBase": "dbf", "a shapefile": "shp", "GeoPackage": "gpkg", "Avro": "avro", "ORC": "orc", "Feather": "feather",
    "an archive": "7z rar tar tgz bz2 xz zst", "an XMind document": "xmind",
}  # fmt: skip
_ENDINGS = {ending: kind for kind, endings in _UNREAD.items() for ending in endings.split()}
_STARTS = {
    "PDF": "%PDF-", "RTF": r"\{\\rtf", "an SQLite database": "SQLite format 3\0", "an archive": "7z\xbc\xaf|Rar!|BZh",
    "an Access database": r"\x00\x01\x00\x00Standard (?:Jet|ACE)", "MARC": r"\d{5}[a-z]{3}[ a-z#][ a]22\d{5}",
    "RDF": r"\s*(?:<\?xml.*)?<rdf:RDF", "OPML": r"\s*(?:<\?xml.*)?<opml",
    "HTML": r"\s*<(?:!doctype\s+html|html|\?xml(?=.*<html)|table|head)\b",
    "XML": r"\s*(?:<\?xml|<!doctype|<!--|<[a-z][\w:.-]*(?:\s[^<>]*)?>(?=.*</))",
    "Turtle": r"\s*(?:#[^\n]*\n\s*)*@(?:prefix|base)\s", "N-Triples": r"<[^<>\s]+>\s+<[^<>\s]+>\s+\S[^\n]*\.\s*$",
    "YAML": r"%YAML|---\s*\n(?:#[^\n]*\n)*[\w -]+:(?:\s|$)",
    "SQL": r"(?:.*\n)?\s*(?:create\s+table\s[^\n]*\(|insert\s+into\s\S+\s*(?:\(|values|select))",
}  # fmt: skip
_KINDS = {kind: re.compile(start, re.IGNORECASE | re.MULTILINE | re.DOTALL) for kind, start in _STARTS.items()}
_CONTROL = re.compile("[\0-\x08\x0e-\x1a]")


def unread_kind(file: Path) -> str:
    """What a file is, by its extension or its content, that no import reads; empty where it may be read."""
    suffix = Path(content_name(file)).suffix.lower()
    if suffix in MARKDOWN or _start(file)[:2] == "PK":
        return _ENDINGS.get(suffix[1:], "")
    text = _start(file)
    return _ENDINGS.get(suffix[1:]) or next((kind for kind, start in _KINDS.items() if start.match(text)), "")


def readings(file: Path, *, is_known: bool) -> list[Sequence[str]]:
    """The options for a file of each format that it can be by its content, the likeliest first; none where that is not
    clear. For an extension that `is_known` those of a text that is no JSON are left out.
    """
    text = _start(file)
    if text.startswith("PAR1"):
        return [("--format", "parquet")]
    if text.startswith("PK"):
        return [("--format", "excel")] if "xl/" in text else []
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip()[:1] in ("{", "["):
        return [("--format", name) for name in _json_formats(text, lines)]
    if is_known or not lines or _CONTROL.search(text):
        return []
    if looks_like_table(file):
        return [("--format", "csv")]
    if any(" > " in line for line in lines):
        return [("--format", "taxonomy")]
    if any(re.match(r"\s+\S|[-*+#]+\s|[├└│|]", line) for line in lines):
        return [("--tree-by", "indent")]
    return [("--format", "taxonomy"), ("--format", "csv")]


def _json_formats(text: str, lines: Sequence[str]) -> Sequence[str]:
    is_cut = len(text) >= SAMPLE_BYTES
    if _is_json(lines[0]):
        is_line = len(lines) > 1 and (_is_json(lines[1]) or (is_cut and len(lines) == 2))
        return ("jsonl",) if is_line else ("json", "jsonl") if len(lines) == 1 else ()
    if not _is_json(text) and not (is_cut and re.match(r'\s*[\[{]\s*[\[{"]', text)):
        return ()
    return ("geojson", "json") if '"FeatureCollection"' in text else ("json",)


def _is_json(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict | list)
    except orjson.JSONDecodeError:
        return False


def _start(file: Path) -> str:
    """The beginning of a file as text, of an archive that is no .zip its bytes."""
    with file.open("rb") as raw:
        start = raw.read(SAMPLE_BYTES)
    if start[:2] != b"PK" or file.suffix.lower() == ".zip":
        with opened(file) as content:
            start = content.read(SAMPLE_BYTES)
    encoding = certain_encoding(start) if not start.startswith((b"PK", b"PAR1", b"SQLite")) else None
    return start.decode(encoding or ("utf-8" if start[:1] in b"{[" else "latin-1"), "replace").removeprefix("\ufeff")
