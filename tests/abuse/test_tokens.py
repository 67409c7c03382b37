"""Invalid tokens: unsigned, of other algorithms, issuers or audiences, expired, or malformed."""

import base64
import hashlib
import hmac
import json
import time
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import count, product

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from graph.auth.tokens import COOLDOWN_SECONDS, MAX_AGE_SECONDS, PublishedKeys, Tokens, download, tokens_of
from graph.settings import Settings
from store.errors import BadInput, Unavailable
from tests.rights.asking import caller_of
from tests.serving import handling

SECRET = "a secret of thirty-two bytes or more, for tests"
ISSUER, AUDIENCE = "https://issuer.example", "clade"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
KOBLITZ = ec.generate_private_key(ec.SECP256K1())
STRANGER = rsa.generate_private_key(65537, 2048)
RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def written(key):
    """A public or private key as JSON."""
    kinds = {"RS": RSAAlgorithm, "EC": ECAlgorithm}
    return json.loads(kinds.get(type(key).__name__[:2], OKPAlgorithm).to_jwk(key))


def jwk(key, name, **more):
    return {**written(key.public_key()), "kid": name, **more}


JWKS = {"keys": [jwk(RSA, "r", use="sig"), jwk(EC, "e"), jwk(STRANGER, "locked", use="enc")]}


def claims(**changes):
    now = int(time.time())
    whole = {
        "sub": "ana", "iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "iat": now, "grants": ["read:location/US"],
    } | changes  # fmt: skip
    return {name: value for name, value in whole.items() if value is not ...}


def signed(key=RSA, algorithm="RS256", kid="r", headers=None, **changes):
    named = {"kid": kid} if kid is not None else {}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=named | (headers or {}))


def handmade(header, payload, sign=lambda text: b""):
    """A token of any parts, also of such as no library writes."""
    parts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in (header, payload)]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    return (text + b"." + base64.urlsafe_b64encode(sign(text)).rstrip(b"=")).decode()


def hmac_with(key, hash=hashlib.sha256):
    return lambda text: hmac.new(key, text, hash).digest()


@pytest.fixture
def secret():
    return tokens_of(Settings(jwt_secret=SECRET, jwt_issuer=ISSUER, jwt_audience=AUDIENCE))


@pytest.fixture
def publish(tmp_path):
    """Tokens that the keys of a JWKS verify."""

    numbers = count()

    def begin(*keys):
        file = tmp_path / f"jwks-{next(numbers)}.json"
        file.write_text(json.dumps({"keys": keys}))
        return tokens_of(Settings(jwt_keys=str(file), jwt_issuer=ISSUER, jwt_audience=AUDIENCE))

    return begin


@pytest.fixture
def published(publish):
    return publish(*JWKS["keys"])


# -- valid ones --------------------------------------------------------------------------------------------------------


async def test_a_valid_token_is_a_caller_with_its_grants(published, secret):
    for tokens, text in (
        (published, signed(aud=["other", AUDIENCE])),
        (published, signed(EC, "ES256", "e")),
        (secret, signed(SECRET, "HS256", None)),
        (secret, signed(SECRET, "HS256", "any name")),
    ):
        who = await caller_of(tokens, text)
        assert (who.id, who.name) == ("sub:ana", "ana")
        assert who.reads.may_read("location", ("US", "NE"))
        assert not who.reads.may_read("location", ("FR",))
    without = await caller_of(published, signed(grants=...))
    assert not without.reads.may_read("location", ("US",))


EDWARDS = [ed25519.Ed25519PrivateKey.generate(), ed448.Ed448PrivateKey.generate()]
FITTING = [
    *[(RSA, name) for name in RSA_ALGORITHMS],
    *[(ec.generate_private_key(curve()), name) for name, curve in CURVES.items()],
    *[(key, "EdDSA") for key in EDWARDS],
]


@pytest.mark.parametrize(("key", "algorithm"), FITTING, ids=lambda value: str(value)[:5])
async def test_a_key_verifies_its_algorithms_and_no_others(publish, key, algorithm):
    text = signed(key, algorithm, "k")
    for public in (jwk(key, "k"), jwk(key, "k", alg=None, use="sig"), jwk(key, "k", alg=algorithm)):
        assert await caller_of(publish(public), text) is not None
    assert await caller_of(publish(jwk(key, "k", alg=algorithm)), signed(key, algorithm, None)) is not None
    for other in {*RSA_ALGORITHMS, *CURVES, "EdDSA"} - {algorithm}:
        forged = handmade(
            {"alg": other, "kid": "k"}, claims(), partial(jwt.get_algorithm_by_name(algorithm).sign, key=key)
        )
        assert await caller_of(publish(jwk(key, "k")), forged) is None
        if key is RSA and other in RSA_ALGORITHMS:
            assert await caller_of(publish(jwk(key, "k", alg=algorithm)), signed(key, other, "k")) is None


async def test_a_curve_has_one_hash(publish):
    kinds = dict(zip(CURVES, (ECAlgorithm.SHA256, ECAlgorithm.SHA384, ECAlgorithm.SHA512), strict=True))
    for own, (named, hash) in product(CURVES, kinds.items()):
        key = ec.generate_private_key(CURVES[own]())
        forged = handmade({"alg": named, "kid": "k"}, claims(), partial(ECAlgorithm(hash).sign, key=key))
        assert (await caller_of(publish(jwk(key, "k")), forged) is not None) == (named == own)


async def test_keys_of_one_id_and_different_algorithms_are_all_used(publish):
    tokens = publish(jwk(RSA, "k", alg="RS256"), jwk(STRANGER, "k", alg="PS256"), jwk(EC, "k"))
    for key, algorithm in ((RSA, "RS256"), (STRANGER, "PS256"), (EC, "ES256")):
        assert await caller_of(tokens, signed(key, algorithm, "k")) is not None
    for key, algorithm in ((RSA, "PS256"), (STRANGER, "RS256")):
        assert await caller_of(tokens, signed(key, algorithm, "k")) is None


# -- keys that are ignored ---------------------------------------------------------------------------------------------

LEAKED = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="), "kid": "k"}
IGNORED = [
    None, [], "k", {}, {"kty": ["RSA"]}, {"kty": "RSA", "n": 5, "e": {}}, {**jwk(RSA, "k"), "n": "!"},
    {**jwk(EC, "k"), "x": "AA"}, {**jwk(EC, "k"), "crv": None}, {**jwk(RSA, "k"), "kid": ["k"]},
    jwk(RSA, "k", use="enc"), {**written(RSA), "kid": "k"}, {**written(EC), "kid": "k"},
    LEAKED, LEAKED | {"alg": "HS256"}, LEAKED | {"alg": "RS256"}, jwk(KOBLITZ, "k"), jwk(KOBLITZ, "k", alg="ES256K"),
    *[jwk(RSA, "k", alg=name) for name in ("HS256", "none", "", "RSA-OAEP", "ES256", ["RS256"], 5)],
    *[jwk(EC, "k", alg=name) for name in ("ES384", "HS256", "RS256")],
]  # fmt: skip


@pytest.mark.parametrize("key", IGNORED, ids=range(len(IGNORED)))
async def test_a_key_that_is_not_public_or_does_not_fit_is_ignored_and_the_others_are_used(publish, key):
    tokens = publish(key, jwk(STRANGER, "other"))
    for kid in ("other", None):
        assert await caller_of(tokens, signed(STRANGER, kid=kid)) is not None, "it is the only one"
    forged = [handmade({"alg": name, "kid": "k"}, claims(), hmac_with(SECRET.encode())) for name in ("HS256", "RS256")]
    for text in (signed(RSA, kid="k"), signed(EC, "ES256", "k"), signed(KOBLITZ, "ES256K", "k"), *forged):
        assert await caller_of(tokens, text) is None
    with pytest.raises(BadInput, match="has no public key for signatures"):
        publish(key)


@pytest.mark.parametrize("key", [RSA, EC, EDWARDS[0]], ids=lambda key: type(key).__name__)
async def test_a_public_key_is_not_accepted_as_a_secret(publish, key):
    pem, der = [
        key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
    ]
    public = jwk(key, "k")
    number = public.get("n") or public["x"]
    secrets = [pem, der, pem.strip(), json.dumps(public).encode(), number.encode(),
               base64.urlsafe_b64decode(number + "=="), b""]  # fmt: skip
    tokens = publish(public)
    for secret, (algorithm, hash), kid in product(secrets, HASHES.items(), ("k", None)):
        for named in (algorithm, "RS256", "ES256", "EdDSA"):
            header = {"alg": named} | ({"kid": kid} if kid else {})
            assert await caller_of(tokens, handmade(header, claims(), hmac_with(secret, hash))) is None


# -- invalid ones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1_000_000_000}, {"exp": ...}, {"exp": "soon"}, {"exp": None}, {"exp": float("nan")},
        {"exp": float("inf")}, {"exp": 10**400}, {"exp": []}, {"nbf": 9_000_000_000},
        {"iat": 9_000_000_000}, {"iss": "https://other.example"}, {"iss": ...}, {"iss": [ISSUER]},
        {"iss": ISSUER + "/"}, {"aud": "other"}, {"aud": ...}, {"aud": []}, {"aud": {"clade": 1}}, {"sub": ...},
        {"aud": [AUDIENCE, 7]}, {"aud": 7}, {"aud": True}, {"aud": [[AUDIENCE]]}, {"aud": ""}, {"aud": AUDIENCE + " "},
        {"sub": 7}, {"sub": ""}, {"sub": "a\nb"}, {"sub": "\ud800"}, {"sub": "a" * 257}, {"grants": 7},
        {"grants": [1]}, {"grants": [["read:location"]]}, {"grants": {"read": "location"}}, {"grants": None},
        {"grants": ["read:location/US"] * 1001}, {"grants": " ".join(["read:location/US"] * 1001)},
    ],
    ids=lambda changes: "-".join([next(iter(changes)), str(next(iter(changes.values())))[:20]]),
)  # fmt: skip
async def test_invalid_claims_are_rejected(secret, changes):
    payload = claims(**changes)
    assert await caller_of(secret, handmade({"alg": "HS256"}, payload, hmac_with(SECRET.encode()))) is None
    assert await caller_of(secret, handmade({"alg": "HS256"}, claims(), hmac_with(SECRET.encode()))) is not None


HEAD, BODY, SIGNATURE = signed().split(".")
FORGED = handmade({}, claims(grants=["write:location"])).split(".")[1]
DEEP = b"[" * 4_000 + b"]" * 4_000
INVALID = {
    "unsigned": [
        *[handmade({"alg": name, "kid": kid}, claims())
          for name, kid in product(("none", "None", "nOnE", "", None, 5, ["RS256"]), ("r", None))],
        handmade({"kid": "r"}, claims()), f"{HEAD}.{BODY}.", f"{HEAD}.{BODY}", f"{HEAD}.{FORGED}.{SIGNATURE}",
    ],
    "no tokens": [
        "", ".", "..", "...", "a.b.c", "é.é.é", signed() + ".", signed()[:-8], signed().replace(".", " "),
        handmade({"alg": "RS256", "kid": "r"}, DEEP), handmade(DEEP, claims()), handmade(b"null", claims()),
        handmade(b"[]", claims()), handmade({"alg": "RS256", "kid": "r"}, b"[1]"), handmade(b"\xff", b"\xff"),
        handmade({"alg": "RS256", "kid": "r", "crit": ["exp"]}, claims()),
        handmade({"alg": "HS256", "b64": False, "crit": ["b64"]}, claims(), hmac_with(SECRET.encode())),
    ],
    "of other keys": [
        signed(STRANGER), signed(STRANGER, kid="e"), signed(EC, "ES256", "r"), signed(RSA, "RS256", "e"),
        signed(STRANGER, kid="locked"), signed(SECRET + SECRET, "HS512", None), signed(SECRET + "!", "HS256", None),
        *[handmade({"alg": name}, claims(), hmac_with(SECRET.encode(), HASHES[name])) for name in ("HS384", "HS512")],
    ],
    "with their own keys": [
        signed(STRANGER, kid=kid, headers=headers) for kid in ("mine", "r", None) for headers in
        ({"jwk": jwk(STRANGER, "mine")}, {"jku": "http://127.0.0.1:9/jwks"}, {"x5u": "file:///etc/passwd"})
    ],
    "of unknown key ids": [
        *[signed(kid=kid) for kid in ("../../etc/passwd", "r' OR '1'='1", "r\x00", "", " r", "R", "r" * 5_000, None)],
        *[handmade({"alg": "RS256", "kid": kid}, claims()) for kid in (7, ["r"], {"kid": "r"}, True)],
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", INVALID)
async def test_invalid_tokens_are_rejected(published, secret, kind):
    for text in INVALID[kind]:
        assert await caller_of(published, text) is None, text
        assert await caller_of(secret, text) is None, text


async def test_a_verified_token_still_expires(published, monkeypatch):
    text = signed(exp=int(time.time()) + 2)
    assert await caller_of(published, text) is not None
    later = time.time() + 20
    monkeypatch.setattr(time, "time", lambda: later)
    assert await caller_of(published, text) is None


# -- settings that would let anybody in --------------------------------------------------------------------------------

HTTPS = {"jwt_keys": "https://issuer.example/jwks"}
NAMED = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


@pytest.mark.parametrize(
    "settings",
    [
        {"jwt_secret": "short"}, {"jwt_secret": SECRET, "jwt_keys": "keys.json"},
        {"jwt_secret": SECRET, "jwt_secret_file": "secret.txt"}, {"jwt_secret_file": "nowhere.txt"},
        {"jwt_secret_file": "/dev/null"}, HTTPS, HTTPS | {"jwt_issuer": ISSUER}, HTTPS | {"jwt_audience": AUDIENCE},
        *[{"jwt_keys": place, **NAMED} for place in (
            "http://issuer.example/jwks", "http://127.0.0.1.issuer.example/jwks", "nowhere.json",
            "http://localhost@issuer.example/jwks", "file:///etc/jwks",
        )],
    ],
)  # fmt: skip
def test_unsafe_settings_are_errors_at_start(settings):
    with pytest.raises(BadInput) as refused:
        tokens_of(Settings(**settings))
    assert SECRET not in str(refused.value)


def test_the_secret_is_not_in_the_repr_of_the_settings_and_may_be_in_a_file(tmp_path):
    assert SECRET not in repr(Settings(jwt_secret=SECRET))
    file = tmp_path / "secret.txt"
    file.write_text(f"{SECRET}\n")
    assert tokens_of(Settings(jwt_secret_file=str(file))) is not None


# -- keys at an address ------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Issuer:
    """What an issuer answers, and how often it was asked, at a time of its own."""

    def __init__(self):
        self.keys, self.is_away, self.asked, self.clock = JWKS, False, 0, Clock()
        self.tokens = Tokens(PublishedKeys(self.read, clock=self.clock), Settings(**NAMED))

    async def read(self):
        self.asked += 1
        if self.is_away:
            raise OSError("The issuer is away.")
        return json.dumps(self.keys).encode()

    async def accepts(self, text):
        return await caller_of(self.tokens, text) is not None


async def test_unknown_key_ids_do_not_cause_more_reads_of_the_keys():
    issuer = Issuer()
    assert await issuer.accepts(signed())
    for n in range(50):
        assert not await issuer.accepts(signed(kid=f"made up {n}"))
    assert issuer.asked == 1
    issuer.clock.now += COOLDOWN_SECONDS + 1
    assert not await issuer.accepts(signed(kid="made up"))
    assert issuer.asked == 2


async def test_new_keys_are_accepted_soon_and_removed_keys_rejected():
    issuer = Issuer()
    assert await issuer.accepts(signed(jti="1"))
    issuer.keys = {"keys": [jwk(STRANGER, "next")]}
    issuer.clock.now += COOLDOWN_SECONDS + 1
    assert await issuer.accepts(signed(STRANGER, kid="next"))
    assert await issuer.accepts(signed(STRANGER, kid=None)), "there is only one"
    assert not await issuer.accepts(signed(jti="2"))


async def test_without_the_issuer_known_keys_stay_valid():
    issuer = Issuer()
    issuer.is_away = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            await issuer.accepts(signed())
    assert issuer.asked == 1
    issuer.is_away = False
    issuer.clock.now += COOLDOWN_SECONDS + 1
    assert await issuer.accepts(signed(jti="1"))
    issuer.is_away = True
    issuer.clock.now += MAX_AGE_SECONDS + 1
    assert not await issuer.accepts(signed(kid="made up"))
    assert await issuer.accepts(signed(jti="2"))
    assert issuer.asked == 3


@pytest.mark.parametrize("status", [302, 500])
async def test_an_address_that_redirects_or_fails_has_no_keys(status):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status if self.path == "/jwks" else 200)
            self.send_header("location", "/elsewhere")
            self.end_headers()
            self.wfile.write(json.dumps(JWKS).encode())

    with handling(Elsewhere) as url, pytest.raises((OSError, ValueError)):
        await download(f"{url}/jwks")
