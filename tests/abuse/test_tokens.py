"""Invalid tokens: unsigned, of other algorithms, issuers or audiences, expired, or malformed."""

import base64
import hashlib
import hmac
import json
import time
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from itertools import count, product

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from graph.auth import jwks
from graph.auth.authentication import Authenticator, Unauthenticated
from graph.auth.jwks import PublishedKeys
from graph.auth.jwt_tokens import Tokens, tokens_of
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.access.grants import Visibility
from store.connect import open_store
from store.errors import BadInput, Unavailable
from tests.rights.asking import caller_of
from tests.serving import handling

SECRET = "a secret of thirty-two bytes or more, for tests"
ISSUER, AUDIENCE = "https://issuer.example", "clade"
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(65537, 2048)
RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
KINDS = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}


def jwk(key, name, **more):
    algorithm = next((found for kind, found in KINDS.items() if isinstance(key, kind)), OKPAlgorithm)
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": name, **more}


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


def ecdsa_with(key, hash):
    """A signature by a curve and a hash that no algorithm combines."""
    size = (key.curve.key_size + 7) // 8
    return lambda text: b"".join(n.to_bytes(size) for n in decode_dss_signature(key.sign(text, ec.ECDSA(hash))))


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


# -- good ones ---------------------------------------------------------------------------------------------------------


async def test_a_valid_token_is_a_caller_with_its_grants(published, secret):
    good = [
        (published, signed()),
        (published, signed(EC, "ES256", "e")),
        (secret, signed(SECRET, "HS256", None)),
        (secret, signed(SECRET, "HS256", "any name")),
        (published, signed(aud=["other", AUDIENCE])),
    ]
    for tokens, text in good:
        who = await caller_of(tokens, text)
        assert (who.id, who.name) == ("sub:ana", "ana")
        assert who.reads.visibility("location", ("US", "NE")) is Visibility.FULL
        assert who.reads.visibility("location", ("FR",)) is Visibility.HIDDEN


async def test_a_token_without_grants_has_none(published):
    who = await caller_of(published, signed(grants=...))
    assert who.reads.visibility("location", ("US",)) is Visibility.HIDDEN


async def test_a_claim_of_another_name_may_hold_the_grants():
    tokens = tokens_of(Settings(jwt_secret=SECRET, jwt_grants_claim="https://clade.example/grants"))
    text = signed(SECRET, "HS256", None, **{"https://clade.example/grants": ["write:category"]})
    assert (await caller_of(tokens, text)).writes.may_write("category", ("Books",))


CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
FITTING = [
    (RSA, RSA_ALGORITHMS),
    *((ec.generate_private_key(curve()), [name]) for name, curve in CURVES.items()),
    (ed25519.Ed25519PrivateKey.generate(), ["EdDSA"]),
    (ed448.Ed448PrivateKey.generate(), ["EdDSA"]),
]


@pytest.mark.parametrize(("key", "algorithms"), FITTING, ids=lambda value: type(value).__name__)
async def test_a_key_verifies_the_algorithms_of_its_type(publish, key, algorithms):
    for public in (jwk(key, "k"), jwk(key, "k", alg=None, use="sig")):
        tokens = publish(public)
        for algorithm in algorithms:
            assert await caller_of(tokens, signed(key, algorithm, "k")) is not None
    for algorithm in algorithms:
        assert await caller_of(publish(jwk(key, "k", alg=algorithm)), signed(key, algorithm, "k")) is not None


async def test_keys_of_one_id_and_different_algorithms_are_all_used(publish):
    curve = ec.generate_private_key(ec.SECP384R1())
    tokens = publish(jwk(RSA, "k", alg="RS256"), jwk(STRANGER, "k", alg="PS256"), jwk(EC, "k"), jwk(curve, "k"))
    for key, algorithm in ((RSA, "RS256"), (STRANGER, "PS256"), (EC, "ES256"), (curve, "ES384")):
        assert await caller_of(tokens, signed(key, algorithm, "k")) is not None
    for key, algorithm in ((RSA, "PS256"), (STRANGER, "RS256")):
        assert await caller_of(tokens, signed(key, algorithm, "k")) is None


# -- other algorithms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", RSA_ALGORITHMS)
async def test_a_key_with_an_algorithm_verifies_no_other(publish, named):
    tokens = publish(jwk(RSA, "r", alg=named))
    for algorithm in RSA_ALGORITHMS:
        for kid in ("r", None):
            assert (await caller_of(tokens, signed(RSA, algorithm, kid)) is not None) == (algorithm == named)


async def test_the_algorithm_of_a_token_is_that_of_its_signature(publish):
    tokens = publish(jwk(RSA, "r"), jwk(EC, "e"))
    for real in RSA_ALGORITHMS:
        sign = partial(jwt.get_algorithm_by_name(real).sign, key=RSA)
        for named in [*RSA_ALGORITHMS, "ES256", "EdDSA"]:
            text = handmade({"alg": named, "kid": "r"}, claims(), sign)
            assert (await caller_of(tokens, text) is not None) == (named == real)


async def test_a_curve_has_one_algorithm(publish):
    sizes = {"ES256": hashes.SHA256(), "ES384": hashes.SHA384(), "ES512": hashes.SHA512()}
    for own, curve in CURVES.items():
        key = ec.generate_private_key(curve())
        for named, hash in sizes.items():
            forged = handmade({"alg": named, "kid": "k"}, claims(), ecdsa_with(key, hash))
            assert (await caller_of(publish(jwk(key, "k")), forged) is not None) == (named == own)


async def test_keys_whose_algorithm_does_not_fit_their_type_are_ignored(publish):
    curve = ec.generate_private_key(ec.SECP256K1())
    for key, named, algorithm in (
        (RSA, "HS256", "RS256"), (RSA, "none", "RS256"), (RSA, "", "RS256"), (RSA, "RSA-OAEP", "RS256"),
        (RSA, "ES256", "RS256"), (RSA, ["RS256"], "RS256"), (RSA, 5, "RS256"), (EC, "ES384", "ES256"),
        (EC, "HS256", "ES256"), (EC, "RS256", "ES256"), (curve, "ES256K", "ES256K"), (curve, None, "ES256K"),
    ):  # fmt: skip
        tokens = publish(jwk(STRANGER, "other"), jwk(key, "k", alg=named))
        assert await caller_of(tokens, signed(key, algorithm, "k")) is None
        assert await caller_of(tokens, signed(STRANGER, kid="other")) is not None
        pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        assert await caller_of(tokens, handmade({"alg": "HS256", "kid": "k"}, claims(), hmac_with(pem))) is None


HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


@pytest.mark.parametrize("key", [key for key, _ in FITTING], ids=lambda key: type(key).__name__)
async def test_a_public_key_is_not_accepted_as_a_secret(publish, key):
    encoded = [
        key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
    ]
    public = jwk(key, "k")
    number = public.get("n") or public["x"]
    secrets = [
        *encoded, encoded[0].strip(), json.dumps(public).encode(), number.encode(),
        base64.urlsafe_b64decode(number + "=="), b"",
    ]  # fmt: skip
    for tokens in (publish(public), publish(public, jwk(STRANGER, "other"))):
        for secret, (algorithm, hash) in product(secrets, HASHES.items()):
            for named, kid in product((algorithm, "RS256", "ES256", "EdDSA"), ("k", None)):
                forged = handmade(
                    {"alg": named, "kid": kid} if kid else {"alg": named}, claims(), hmac_with(secret, hash)
                )
                assert await caller_of(tokens, forged) is None


async def test_a_token_for_a_secret_has_no_other_algorithm(secret):
    for algorithm, hash in HASHES.items():
        text = handmade({"alg": algorithm}, claims(), hmac_with(SECRET.encode(), hash))
        assert (await caller_of(secret, text) is not None) == (algorithm == "HS256")


async def test_private_keys_in_a_jwks_are_ignored(publish):
    for key, algorithm in ((RSA, "RS256"), (EC, "ES256")):
        kind = RSAAlgorithm if key is RSA else ECAlgorithm
        private = {**json.loads(kind.to_jwk(key)), "kid": "k"}
        assert await caller_of(publish(private, jwk(STRANGER, "other")), signed(key, algorithm, "k")) is None
        with pytest.raises(BadInput, match="has no public key for signatures"):
            publish(private)


async def test_damaged_keys_do_not_disable_the_others(publish):
    for damaged in (
        None, [], "k", {}, {"kty": ["RSA"]}, {"kty": "RSA", "n": 5, "e": {}}, {**jwk(RSA, "k"), "n": "!"},
        {**jwk(EC, "k"), "x": "AA"}, {**jwk(EC, "k"), "crv": None}, {**jwk(RSA, "k"), "kid": ["k"]},
    ):  # fmt: skip
        tokens = publish(damaged, jwk(STRANGER, "other"))
        assert await caller_of(tokens, signed(STRANGER, kid="other")) is not None
        assert await caller_of(tokens, signed(STRANGER, kid=None)) is not None, "it is the only one"


# -- bad ones ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1_000_000_000}, {"exp": ...}, {"exp": "soon"}, {"exp": None}, {"exp": float("nan")},
        {"exp": float("inf")}, {"exp": 10**400}, {"exp": []}, {"nbf": 9_000_000_000},
        {"iat": 9_000_000_000}, {"iss": "https://other.example"}, {"iss": ...}, {"iss": [ISSUER]},
        {"iss": ISSUER + "/"}, {"aud": "other"}, {"aud": ...}, {"aud": []}, {"aud": {"clade": 1}}, {"sub": ...},
        {"sub": 7}, {"sub": ""}, {"sub": "a\nb"}, {"sub": "\ud800"}, {"sub": "a" * 257}, {"grants": "read:location"},
        {"grants": [1]}, {"grants": ["all"]}, {"grants": {"read": "location"}}, {"grants": None},
        {"grants": ["read:location/US"] * 1001},
    ],
    ids=lambda changes: "-".join([next(iter(changes)), str(next(iter(changes.values())))[:20]]),
)  # fmt: skip
async def test_invalid_claims_are_rejected(published, secret, changes):
    payload = claims(**changes)
    assert await caller_of(secret, handmade({"alg": "HS256"}, payload, hmac_with(SECRET.encode()))) is None
    assert await caller_of(secret, handmade({"alg": "HS256"}, claims(), hmac_with(SECRET.encode()))) is not None


async def test_unsigned_tokens_are_rejected(published, secret):
    for tokens in (published, secret):
        for name in ("none", "None", "NONE", "nOnE", "", None, 5, ["RS256"]):
            for kid in ("r", None):
                assert await caller_of(tokens, handmade({"alg": name, "kid": kid}, claims())) is None
        assert await caller_of(tokens, handmade({"kid": "r"}, claims())) is None
    head, body, _ = signed().split(".")
    assert await caller_of(published, f"{head}.{body}.") is None
    assert await caller_of(published, f"{head}.{body}") is None


async def test_a_secret_in_a_jwks_is_ignored(publish):
    leaked = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="), "kid": "o"}
    for more in ({}, {"alg": "HS256"}, {"alg": "RS256"}):
        tokens = publish(*JWKS["keys"], leaked | more)
        with pytest.raises(BadInput, match="has no public key for signatures"):
            publish(leaked | more)
        for algorithm in ("HS256", "RS256"):
            forged = handmade({"alg": algorithm, "kid": "o"}, claims(), hmac_with(SECRET.encode()))
            assert await caller_of(tokens, forged) is None


async def test_keys_of_others_or_of_another_type_or_use_are_rejected(published, secret):
    for text in (
        signed(STRANGER), signed(STRANGER, kid="e"), signed(EC, "ES256", "r"), signed(RSA, "RS256", "e"),
        signed(STRANGER, kid="locked"),
        signed(SECRET + SECRET, "HS512", None), signed(SECRET + "!", "HS256", None),
    ):  # fmt: skip
        assert await caller_of(published, text) is None
        assert await caller_of(secret, text) is None
    assert await caller_of(published, signed(SECRET, "HS256")) is None


async def test_keys_within_a_token_are_ignored(published):
    own = jwk(STRANGER, "mine")
    for headers in ({"jwk": own}, {"jku": "http://127.0.0.1:9/jwks"}, {"x5u": "file:///etc/passwd"}, {"x5c": ["AA"]}):
        for kid in ("mine", "r", None):
            assert await caller_of(published, signed(STRANGER, kid=kid, headers=headers)) is None


async def test_a_key_id_is_never_a_path_or_a_query(published):
    for kid in ("../../etc/passwd", "r' OR '1'='1", "r\x00", "", " r", "R", "r" * 5_000):
        assert await caller_of(published, signed(kid=kid)) is None
    for kid in (7, ["r"], {"kid": "r"}, True):
        assert await caller_of(published, handmade({"alg": "RS256", "kid": kid}, claims())) is None
    assert await caller_of(published, signed(kid=None)) is None, "there are several keys"


async def test_text_that_is_no_token_is_rejected(published, secret):
    deep = b"[" * 4_000 + b"]" * 4_000
    for text in (
        "", ".", "..", "...", "a.b.c", "é.é.é", signed() + ".", signed()[:-8], signed().replace(".", " "),
        handmade({"alg": "RS256", "kid": "r"}, deep), handmade(deep, claims()), handmade(b"null", claims()),
        handmade(b"[]", claims()), handmade({"alg": "RS256", "kid": "r"}, b"[1]"), handmade(b"\xff", b"\xff"),
        handmade({"alg": "RS256", "kid": "r", "crit": ["exp"]}, claims()),
        handmade({"alg": "HS256", "b64": False, "crit": ["b64"]}, claims(), hmac_with(SECRET.encode())),
    ):  # fmt: skip
        assert await caller_of(published, text) is None
        assert await caller_of(secret, text) is None


async def test_a_changed_payload_is_rejected(published):
    head, _, signature = signed().split(".")
    forged = handmade({}, claims(grants=["write:location"])).split(".")[1]
    assert await caller_of(published, f"{head}.{forged}.{signature}") is None


async def test_a_verified_token_still_expires(published, monkeypatch):
    text = signed(exp=int(time.time()) + 2)
    assert await caller_of(published, text) is not None
    later = time.time() + 20
    monkeypatch.setattr(time, "time", lambda: later)
    assert await caller_of(published, text) is None


async def test_a_huge_credential_is_rejected_without_decoding(published, tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        callers = Authenticator(ApiKeyAuthenticator(store), published)
        good = signed().encode()
        assert (await callers.by_credential({b"authorization": b"Bearer " + good}, ConcurrencyLimiter(1))).name == "ana"
        with pytest.raises(Unauthenticated):
            await callers.by_credential({b"authorization": b"Bearer " + good + b" " * 9_000}, ConcurrencyLimiter(1))


# -- settings that would let anybody in --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"jwt_secret": "short"}, {"jwt_secret": SECRET, "jwt_keys": "keys.json"},
        {"jwt_secret": SECRET, "jwt_secret_file": "secret.txt"}, {"jwt_secret_file": "nowhere.txt"},
        {"jwt_secret_file": "/dev/null"},
        {"jwt_keys": "https://issuer.example/jwks"},
        {"jwt_keys": "https://issuer.example/jwks", "jwt_issuer": ISSUER},
        {"jwt_keys": "http://issuer.example/jwks", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
        {"jwt_keys": "http://127.0.0.1.issuer.example/jwks", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
        {"jwt_keys": "http://localhost@issuer.example/jwks", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
        {"jwt_keys": "file:///etc/jwks", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
        {"jwt_keys": "nowhere.json", "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
    ],
)  # fmt: skip
def test_unsafe_settings_are_errors_at_start(settings):
    with pytest.raises(BadInput) as refused:
        tokens_of(Settings(**settings))
    assert SECRET not in str(refused.value)


def test_the_secret_is_not_in_the_repr_of_the_settings(tmp_path):
    assert SECRET not in repr(Settings(jwt_secret=SECRET))
    file = tmp_path / "secret.txt"
    file.write_text(f"{SECRET}\n")
    assert tokens_of(Settings(jwt_secret_file=str(file))) is not None


# -- keys at an address ------------------------------------------------------------------------------------------------


class Issuer:
    """An issuer's server: what it answers, and how often it was asked."""

    def __init__(self):
        self.keys = JWKS
        self.status = 200
        self.asked = 0


@contextmanager
def issuing():
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            issuer.asked += 1
            self.send_response(issuer.status)
            if issuer.status == 302:
                self.send_header("location", "/elsewhere")
            self.end_headers()
            self.wfile.write(json.dumps(issuer.keys).encode())

    with handling(Handler) as url:
        yield issuer, f"{url}/jwks"


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def issuer():
    with issuing() as (server, url):
        clock = Clock()
        keys = PublishedKeys(jwks.keys_at(url), clock=clock)
        yield server, clock, Tokens(keys, ISSUER, AUDIENCE)


async def test_unknown_key_ids_do_not_cause_more_reads_of_the_keys(issuer):
    server, clock, tokens = issuer
    assert await caller_of(tokens, signed()) is not None
    for n in range(50):
        assert await caller_of(tokens, signed(kid=f"made up {n}")) is None
    assert server.asked == 1
    clock.now += jwks.COOLDOWN_SECONDS + 1
    assert await caller_of(tokens, signed(kid="made up")) is None
    assert server.asked == 2


async def test_new_keys_are_accepted_soon_and_removed_keys_rejected(issuer):
    server, clock, tokens = issuer
    assert await caller_of(tokens, signed(jti="1")) is not None
    server.keys = {"keys": [jwk(STRANGER, "next")]}
    clock.now += jwks.COOLDOWN_SECONDS + 1
    assert await caller_of(tokens, signed(STRANGER, kid="next")) is not None
    assert await caller_of(tokens, signed(STRANGER, kid=None)) is not None, "there is only one"
    assert await caller_of(tokens, signed(jti="2")) is None


async def test_without_the_issuer_known_keys_stay_valid(issuer):
    server, clock, tokens = issuer
    server.status = 500
    with pytest.raises(Unavailable):
        await caller_of(tokens, signed())
    with pytest.raises(Unavailable):
        await caller_of(tokens, signed())
    assert server.asked == 1
    server.status = 200
    clock.now += jwks.COOLDOWN_SECONDS + 1
    assert await caller_of(tokens, signed(jti="1")) is not None
    server.status = 302
    clock.now += jwks.MAX_AGE_SECONDS + 1
    assert await caller_of(tokens, signed(kid="made up")) is None
    assert await caller_of(tokens, signed(jti="2")) is not None
    assert server.asked == 3, "redirects are not followed"


@pytest.mark.parametrize("keys", [[], {}, {"keys": []}, {"keys": "no"}, {"keys": [{"kty": "?"}]}, "no", None])
async def test_a_url_without_keys_accepts_no_token(issuer, keys):
    server, _, tokens = issuer
    server.keys = keys
    with pytest.raises(Unavailable):
        await caller_of(tokens, signed())
