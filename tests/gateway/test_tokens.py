"""JSON Web Tokens beside API keys: which are accepted, and a refusal for each other one."""

import hmac
import time
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.kit import start_gateway, start_upstreams, tenant, wait_for
from gateway.kit.identity import (
    create_claims,
    create_rsa_key,
    create_token,
    encode,
    es256,
    publish_ec,
    publish_rsa,
    rs256,
    sign_ec,
    sign_rsa,
    values_with_tokens,
    write_jwks,
)

KEYS = write_jwks(publish_rsa("rsa"), publish_ec("ec"))


@pytest.fixture(scope="module")
def environment():
    with start_upstreams("one") as (one,):
        more = {
            "tenants": {"search": {**tenant("search", ["llama"]), "claimValues": ["finders"]}},
            "oidc": {"nameClaim": "sub", "clockSkewSeconds": 300},
        }
        with start_gateway(values_with_tokens(one, more), mounted={"jwks.json": KEYS}) as gateway:
            yield gateway, one


def assert_refused(gateway, token, code):
    response = gateway.chat(key=token)
    assert (response.status, response.error["code"]) == (401, code)
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize("create", [rs256, es256])
def test_token_is_accepted(gateway, one, create):
    assert gateway.chat(key=create()).endpoint == "one"
    assert one.requests[-1].header("authorization") is None
    assert one.requests[-1].header("x-rayhelm-tenant") == "acme"


def test_api_key_is_accepted_beside_tokens(gateway):
    assert gateway.chat().endpoint == "one"


def test_token_reaches_the_tenant_of_its_claim(gateway, one):
    for claim, owner in (("finders", "search"), (["other", "finders"], "search"), ("acme <admins>", "acme")):
        assert gateway.chat(key=rs256(tenant=claim)).endpoint == "one"
        assert one.requests[-1].header("x-rayhelm-tenant") == owner


def test_token_is_accepted_with_one_of_its_audiences(gateway):
    assert gateway.chat(key=rs256(aud=["elsewhere", "other"])).endpoint == "one"


def test_token_is_accepted_within_the_clock_skew(gateway):
    now = int(time.time())
    assert gateway.chat(key=rs256(exp=now - 1)).status == 200
    assert gateway.chat(key=rs256(nbf=now + 299)).status == 200


@pytest.mark.parametrize(
    ("sub", "name"), [("ci@acme", "@ci@acme"), ('evil","tenant":"search', "@token"), (7, "@token")]
)
def test_log_has_the_name_claim_when_its_characters_are_safe(gateway, sub, name):
    token = rs256(sub=sub)
    request = f"named-{len(str(sub))}"
    gateway.chat(key=token, headers=[("X-Request-Id", request)])
    entry = gateway.log_entry(request)
    assert (entry["tenant"], entry["key"]) == ("acme", name)
    assert token.rsplit(".", 1)[1] not in gateway.output


def test_token_without_signature_is_refused_when_its_algorithm_is_none(gateway):
    for name in ("none", "None", "NONE", ""):
        unsigned = create_token(lambda data: b"", {"alg": name, "kid": "rsa"}, create_claims())
        assert_refused(gateway, unsigned, "token_algorithm")


def test_token_without_signature_is_refused_when_its_algorithm_is_accepted(gateway):
    unsigned = create_token(lambda data: b"", {"alg": "RS256", "kid": "rsa"}, create_claims())
    assert_refused(gateway, unsigned, "token_signature_invalid")


def test_hs256_token_is_refused_with_a_public_key_as_its_secret(gateway):
    public = create_rsa_key("rsa").public_key()
    forms = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        publish_rsa("rsa")["n"].encode(),
        (gateway.folder / "token-key-1.pem").read_bytes(),
        b"./token-key-1.pem",
    ]
    for secret in forms:
        forged = create_token(
            lambda data, secret=secret: hmac.digest(secret, data, sha256),
            {"alg": "HS256", "kid": "rsa"},
            create_claims(),
        )
        assert_refused(gateway, forged, "token_algorithm")


def test_token_is_refused_with_the_algorithm_of_another_key(gateway):
    assert_refused(gateway, rs256(header={"kid": "ec"}), "token_algorithm")
    assert_refused(gateway, es256(header={"kid": "rsa"}), "token_algorithm")


def test_token_is_refused_with_another_hash(gateway):
    assert_refused(gateway, rs256(header={"alg": "RS512"}), "token_algorithm")


@pytest.mark.parametrize("kid", ["another", "", None, 1, ["rsa"], "../rsa", "./token-key-1.pem"])
def test_token_is_refused_with_a_kid_that_the_jwks_lacks(gateway, kid):
    assert_refused(gateway, rs256(header={"kid": kid}), "token_key_unknown")


def test_token_is_refused_with_the_kid_of_another_key(gateway):
    forged = create_token(sign_rsa("attacker"), {"alg": "RS256", "kid": "rsa"}, create_claims())
    assert_refused(gateway, forged, "token_signature_invalid")
    forged = create_token(sign_ec("attacker"), {"alg": "ES256", "kid": "ec"}, create_claims())
    assert_refused(gateway, forged, "token_signature_invalid")


def test_token_is_refused_with_a_key_in_its_header(gateway):
    header = {"alg": "RS256", "kid": "attacker", "jwk": publish_rsa("attacker"), "jku": "https://attacker.example/jwks"}
    assert_refused(gateway, create_token(sign_rsa("attacker"), header, create_claims()), "token_key_unknown")


@pytest.mark.parametrize("signature", ["A" * 342, "A" * 86, "", "A" * 341 + "="])
def test_token_is_refused_with_another_signature(gateway, signature):
    code = "token_malformed" if "=" in signature else "token_signature_invalid"
    assert_refused(gateway, f"{rs256().rsplit('.', 1)[0]}.{signature}", code)


def test_es256_token_is_refused_with_a_signature_of_zeros(gateway):
    forged = create_token(lambda data: bytes(64), {"alg": "ES256", "kid": "ec"}, create_claims())
    assert_refused(gateway, forged, "token_signature_invalid")


def test_token_is_refused_when_its_claims_were_changed(gateway):
    head, _, signature = rs256().split(".")
    assert_refused(gateway, f"{head}.{encode(create_claims(tenant='finders'))}.{signature}", "token_signature_invalid")


def test_expired_token_is_refused(gateway):
    assert_refused(gateway, rs256(exp=int(time.time()) - 301), "token_expired")


def test_token_is_refused_when_it_expires_after_it_was_accepted(gateway):
    def accept():
        created = rs256(exp=int(time.time()) - 297)
        return created if gateway.chat(key=created).status == 200 else None

    token = wait_for(accept, "a token that expires within 3 s is accepted")
    wait_for(lambda: gateway.chat(key=token).status == 401, "the token has expired")
    assert_refused(gateway, token, "token_expired")


def test_token_that_is_not_yet_valid_is_refused(gateway):
    assert_refused(gateway, rs256(nbf=int(time.time()) + 3600), "token_not_yet_valid")


@pytest.mark.parametrize("claims", [{"exp": None}, {"exp": "never"}, {"exp": {}}, {"nbf": "now"}])
def test_token_is_refused_without_a_valid_time(gateway, claims):
    assert_refused(gateway, rs256(**claims), "token_malformed")


@pytest.mark.parametrize("issuer", ["https://attacker.example", "https://idp.example.org/realms/main/", None, [], {}])
def test_token_of_another_issuer_is_refused(gateway, issuer):
    assert_refused(gateway, rs256(iss=issuer), "token_issuer")


@pytest.mark.parametrize("audience", ["elsewhere", "", None, [], ["elsewhere"], {"rayhelm": "rayhelm"}, True])
def test_token_for_another_audience_is_refused(gateway, audience):
    assert_refused(gateway, rs256(aud=audience), "token_audience")


@pytest.mark.parametrize("claim", ["nothing", "search", "", None, 7, [], {"acme": "acme"}, [["acme"]]])
def test_token_of_an_unknown_tenant_is_refused(gateway, claim):
    assert_refused(gateway, rs256(tenant=claim), "token_tenant_unknown")


def test_token_of_two_tenants_is_refused(gateway):
    assert_refused(gateway, rs256(tenant=["acme", "finders"]), "token_tenant_unknown")


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({"crit": ["exp"]}, None),
        ({"crit": []}, None),
        ({}, "[]"),
        ({}, '"text"'),
        ({}, "{"),
        ({}, "null"),
        ({}, '{"a": 01}'),
    ],
)
def test_malformed_token_is_refused(gateway, header, claims):
    token = create_token(sign_rsa("rsa"), {"alg": "RS256", "kid": "rsa", **header}, claims or create_claims())
    assert_refused(gateway, token, "token_malformed")


def test_token_is_refused_when_a_claim_occurs_twice(gateway):
    valid = create_claims()
    twice = (
        f'{{"iss": "{valid["iss"]}", "aud": "rayhelm", "exp": {valid["exp"]}, "tenant": "finders", "tenant": "acme"}}'
    )
    token = create_token(sign_rsa("rsa"), {"alg": "RS256", "kid": "rsa"}, twice)
    assert_refused(gateway, token, "token_malformed")


@pytest.mark.parametrize("token", ["eyJhbGciOiJub25lIn0", "eyJ.eyJ", "a.b.c", "eyJ" + "a" * 20000 + ".b.c"])
def test_what_is_no_token_is_refused_as_a_key(gateway, token):
    response = gateway.chat(key=token)
    assert response.status in (401, 431)
    assert response.error["code"] == "invalid_api_key"


def test_token_is_refused_in_two_headers(gateway):
    headers = [("Authorization", f"Bearer {rs256()}")] * 2
    assert gateway.chat(key=None, headers=headers).error["code"] == "invalid_api_key"


def test_token_does_not_reach_models_of_other_tenants(gateway):
    assert gateway.chat("other", key=rs256()).error["code"] == "model_not_found"


def test_refused_tokens_are_counted_by_reason(gateway):
    gateway.chat(key=rs256(aud="counted"))
    line = 'rayhelm_gateway_rejections_total{tenant="",reason="token_audience"}'
    wait_for(lambda: line in gateway.request_metrics_port("/metrics/tenants")[1], "the counter of the reason")
