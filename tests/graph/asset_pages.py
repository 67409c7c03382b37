"""Pages with asset files: what holds for the explorer and for GraphiQL alike."""

import hashlib

import httpx

from graph.asset_files import AssetFiles


def check_page(answer: httpx.Response, policy: str, scripts: int) -> None:
    """Fail unless a page has exactly this policy, and nothing inline: each of its scripts is a file."""
    assert answer.headers["content-security-policy"] == policy
    assert "<style" not in answer.text
    assert "style=" not in answer.text
    assert answer.text.count("<script") == answer.text.count("></script>") == scripts


def check_sums(files: AssetFiles, folder: str, names: set[str]) -> None:
    """Fail unless SHA256SUMS of a folder ("" or "NAME/") lists these files, with their digests."""
    sums = [line.split() for line in files.content(f"{folder}SHA256SUMS").decode().splitlines()]
    assert {name for _, name in sums} == names
    for digest, name in sums:
        assert hashlib.sha256(files.content(f"{folder}{name}")).hexdigest() == digest, name
