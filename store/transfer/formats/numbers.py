"""Number formats: how numbers are written in text files, such as `1.234,56`."""

import re
from dataclasses import dataclass

from store.errors import BadInput
from store.text import shorten

EXAMPLES = ("1,234.56", "1.234,56", "1 234,56", "1'234.56")
_SPACES = re.compile("[\u00a0\u2009\u202f]")  # narrow and no-break spaces, as programs write them between thousands


@dataclass(frozen=True)
class NumberFormat:
    """A way to write numbers, named by an example: one of `EXAMPLES`."""

    example: str

    def __post_init__(self) -> None:
        if self.example not in EXAMPLES:
            written = " or ".join(f'"{example}"' for example in EXAMPLES)
            raise BadInput(f'"{shorten(self.example)}" is not a format of numbers; use {written}.')

    def plain(self, text: str) -> str:
        """A number with a decimal point and without thousands, such as 1234.56. Raises BadInput for any other text."""
        thousands, decimal = self.example[1], self.example[5]
        found = _SPACES.sub(" ", text.strip()) if thousands == " " else text.strip()
        group, point = re.escape(thousands), re.escape(decimal)
        if not re.fullmatch(rf"[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]+)({point}[0-9]+)?", found):
            raise BadInput(f'"{shorten(text)}" is not a number like {self.example}.')
        return found.replace(thousands, "").replace(decimal, ".")
