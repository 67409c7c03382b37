"""HCL writer: values, attributes and blocks of Terraform's native syntax."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_INDENT = "  "


@dataclass(frozen=True)
class Expression:
    """An expression that is written as it is, such as `aws_dynamodb_table.clade.arn`."""

    text: str


@dataclass
class Block:
    """A block: its type with its labels, attributes in their order, and blocks inside."""

    header: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    blocks: list["Block"] = field(default_factory=list)

    def lines(self, indent: str = "") -> Iterator[str]:
        yield f"{indent}{self.header} {{"
        inner = indent + _INDENT
        width = max(map(len, self.attributes), default=0)
        for name, value in self.attributes.items():
            yield f"{inner}{name:<{width}} = {write(value, inner)}"
        for number, block in enumerate(self.blocks):
            if number or self.attributes:
                yield ""
            yield from block.lines(inner)
        yield f"{indent}}}"


def write(value: Any, indent: str = "") -> str:
    """A value: text, number, boolean, list, map or expression. Texts have no templates: `${` is escaped."""
    inner = indent + _INDENT
    match value:
        case Expression(text):
            return text
        case list() if value:
            items = "".join(f"{inner}{write(item, inner)},\n" for item in value)
            return f"[\n{items}{indent}]"
        case Mapping() if value:
            pairs = "".join(f"{inner}{_text(key)} = {write(item, inner)}\n" for key, item in value.items())
            return f"{{\n{pairs}{indent}}}"
        case str():
            return _text(value)
        case _:
            return json.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
