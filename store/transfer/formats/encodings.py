"""Encodings of text files: certain by a byte order mark, zero bytes or as UTF-8, else guessed by charset-normalizer."""

import codecs
import re
from pathlib import Path

from store.errors import shorten
from store.transfer.formats.source import BLOCK_BYTES, opened

SAMPLE_BYTES = 64_000
ENOUGH_CHARACTERS = 1_000  # beyond ASCII, after which the encoding is clear
SHOWN_WORDS, SHOWN_CHARACTERS = 3, 30
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
# Those of spreadsheets and databases, the frequent ones first: of several that fit as well, that is taken.
_ENCODINGS = (
    "cp1252", "cp1250", "cp1251", "gb18030", "cp932", "big5", "cp949", "cp1253", "cp1254", "mac_roman", "cp850",
    "cp852", "cp866", "koi8_r", "cp1257", "iso8859_2",
)  # fmt: skip
_CONSOLES = ("cp850", "cp437", "cp852", "cp866")  # of Windows, in which it draws trees
_BEYOND_ASCII, _INVALID = re.compile("[^\x00-\x7f]"), re.compile("[\udc80-\udcff]")
# With some ASCII letters before it, which tell of its language, and the second bytes of East Asian characters.
_WORD = re.compile(rb"[A-Za-z]{0,20}[\x80-\xff][0-9@-~\x80-\xff]*")


def certain_encoding(start: bytes) -> str | None:
    """The encoding by the byte order mark at the beginning of a file, or by ends of lines in UTF-16; None without."""
    for mark, encoding in _BOMS:
        if start.startswith(mark):
            return encoding
    for encoding in ("utf-16-le", "utf-16-be") if b"\0" in start[:SAMPLE_BYTES] else ():
        if {"\n", "\r"} & {*start[:SAMPLE_BYTES].decode(encoding, "replace")}:
            return encoding
    return None


def guess_encoding(file: Path) -> tuple[str, str]:
    """The encoding of a file: UTF-8 where most characters beyond ASCII are so, else a guess by the words with them; and
    where it is not certain, the sentence of the doubt, without its stop.

    The file is read until it has enough of these characters.
    """
    characters = invalid = 0
    words: dict[bytes, None] = {}
    with opened(file) as source:
        block = source.read(BLOCK_BYTES)
        if certain := certain_encoding(block):
            return certain, ""
        while block and characters < ENOUGH_CHARACTERS:
            more = source.read(BLOCK_BYTES)
            cut = (max(block.rfind(b"\n"), block.rfind(b"\r")) + 1 if more else 0) or len(block)
            lines, block = block[:cut].splitlines(), block[cut:] + more
            part = b"\n".join([line for line in lines if not line.isascii()])
            text = part.decode("utf-8", "surrogateescape")
            characters += len(_BEYOND_ASCII.findall(text))
            invalid += len(_INVALID.findall(text))
            words |= dict.fromkeys(word[:SAMPLE_BYTES] for word in _WORD.findall(part))
    return _guess(file.name, [*words][:ENOUGH_CHARACTERS]) if 2 * invalid > characters else ("utf-8", "")


def _guess(name: str, words: list[bytes]) -> tuple[str, str]:
    from charset_normalizer import from_bytes  # which is needed for few files

    encodings = _CONSOLES if any(b"\xc4\xc4\xc4" in word for word in words) else _ENCODINGS
    # The words alone, since a text that is mostly ASCII is plausible in any encoding.
    matches = from_bytes(b" ".join(words)[:SAMPLE_BYTES], cp_isolation=[*encodings], threshold=1)
    fitting = {encoding: match.chaos for match in matches for encoding in match.could_be_from_charset}
    order = sorted(encodings, key=lambda one: (round(fitting.get(one, 1), 1), one not in fitting))
    shown: dict[str, str] = {}
    for encoding in order:
        read = [shorten(word.decode(encoding, "replace"), SHOWN_CHARACTERS) for word in words[:SHOWN_WORDS]]
        if ", ".join(read) not in shown.values():
            shown[encoding] = ", ".join(read)
    (first, text), *others = [*shown.items()][:3]
    alternatives = " and ".join(f'--encoding {encoding} "{read}"' for encoding, read in others)
    return first, f'{name} is not UTF-8; a guess is --encoding {first}, which reads "{text}" in it; {alternatives}'
