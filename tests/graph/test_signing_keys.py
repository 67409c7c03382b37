"""A file of public keys that is none, when a server starts and while it runs."""

import pytest

from graph.settings import Settings
from graph.signing_keys import PublishedKeys, keys_in
from graph.tokens import tokens_of
from store.errors import BadInput, Unavailable

NONE = ["", "[]", "null", '"no"', "{}", '{"keys": {}}', "{"]


@pytest.mark.parametrize("text", NONE)
async def test_a_file_without_keys_is_refused_at_the_start_and_opens_nothing_later(tmp_path, text):
    file = tmp_path / "jwks.json"
    file.write_text(text)
    with pytest.raises(BadInput, match="no JWKS"):
        tokens_of(Settings(jwt_keys=str(file), jwt_issuer="https://issuer.example", jwt_audience="clade"))
    with pytest.raises(Unavailable):
        await PublishedKeys(keys_in(file), ["RS256"]).find("any")
