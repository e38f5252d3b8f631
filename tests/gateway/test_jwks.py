"""The keys of tokens: read again while the gateway runs, withdrawn, and refused when they cannot be used."""

import json
import threading

import pytest

from gateway.kit import start_gateway, start_upstreams, wait_for
from gateway.kit.identity import (
    create_claims,
    create_rsa_key,
    create_token,
    encode,
    es256,
    publish_ec,
    publish_rsa,
    rs256,
    sign_rsa,
    values_with_tokens,
    write_jwks,
)
from gateway.kit.process import replace_file

FIX = "fix: kubectl create configmap jwks --namespace models --from-file=jwks.json=FILE --dry-run=client -o yaml"


@pytest.fixture(scope="module")
def gateway():
    with (
        start_upstreams("one") as (one,),
        start_gateway(values_with_tokens(one), mounted={"jwks.json": write_jwks(publish_rsa("rsa"))}) as gateway,
    ):
        yield gateway


@pytest.fixture(autouse=True)
def first_key(gateway):
    """Begin each test with the key `rsa` alone. The other key shows that the gateway has read both files."""
    publish(gateway, write_jwks(publish_rsa("rsa"), publish_ec("ec")))
    wait_for(lambda: statuses(gateway, rs256(), es256()) == [200, 200], "both keys are valid")
    publish(gateway, write_jwks(publish_rsa("rsa")))
    wait_for(lambda: statuses(gateway, rs256(), es256()) == [200, 401], "only the first key is valid")


def publish(gateway, text):
    replace_file(gateway.folder / "jwks.json", text)


def statuses(gateway, *tokens):
    return [gateway.chat(key=token).status for token in tokens]


def test_token_is_refused_when_its_key_was_withdrawn_from_the_jwks(gateway):
    token = rs256()
    publish(gateway, write_jwks(publish_ec("ec")))
    wait_for(lambda: statuses(gateway, token) == [401], "the key is withdrawn")
    assert gateway.chat(key=token).error["code"] == "token_key_unknown"
    assert statuses(gateway, es256(), "acme-key") == [200, 200]


def test_token_is_accepted_again_when_its_key_returns(gateway):
    publish(gateway, write_jwks(publish_ec("ec")))
    wait_for(lambda: statuses(gateway, rs256()) == [401], "the key is withdrawn")
    publish(gateway, write_jwks(publish_ec("ec"), publish_rsa("rsa")))
    wait_for(lambda: statuses(gateway, rs256()) == [200], "the key is valid again")


def test_old_tokens_are_refused_when_their_kid_gets_another_key(gateway):
    publish(gateway, write_jwks({**publish_rsa("next"), "kid": "rsa"}))
    wait_for(lambda: statuses(gateway, rs256("next", {"kid": "rsa"})) == [200], "the new key is valid")
    assert gateway.chat(key=rs256()).error["code"] == "token_signature_invalid"


def test_jwks_rotation_under_load_loses_no_request(gateway):
    sent, ended, answered = [rs256()], threading.Event(), []

    def client():
        with gateway.connect() as connection:
            while not ended.is_set():
                response = connection.request("/v1/chat/completions", {"model": "llama", "messages": []}, key=sent[0])
                answered.append(response.status)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    publish(gateway, write_jwks(publish_rsa("rsa"), publish_ec("ec")))
    wait_for(lambda: statuses(gateway, es256()) == [200], "both keys are valid")
    sent[0] = es256()
    before = len(answered)
    wait_for(lambda: len(answered) > before + 50, "clients use the new key")
    publish(gateway, write_jwks(publish_ec("ec")))
    wait_for(lambda: statuses(gateway, rs256()) == [401], "the old key is withdrawn")
    ended.set()
    for thread in clients:
        thread.join(300)
    assert set(answered) == {200}


def test_tokens_are_refused_when_the_jwks_is_deleted(gateway):
    (gateway.folder / "jwks.json").unlink()
    wait_for(lambda: statuses(gateway, rs256()) == [401], "the keys are withdrawn")
    gateway.wait_for_output("jwks.json: it does not exist, so every token gets 401. " + FIX)
    assert statuses(gateway, "acme-key") == [200]


BAD = {
    "": "it is not JSON",
    "{": "it is not JSON",
    "[]": "it has no list `keys`",
    "{}": "it has no list `keys`",
    '{"keys": {}}': "it has no list `keys`",
    '{"keys": []}': "none of its 0 keys has a `kid` and verifies RS256 or ES256",
    '{"keys": ["text"]}': "key 1 is not an object",
    '{"keys": [{"kty": "oct", "kid": "rsa", "k": "c2VjcmV0"}]}': "key 1 is not public: it has `k`",
    write_jwks(publish_rsa("rsa", d="AQAB")): "key 1 is not public: it has `d`",
    write_jwks(publish_rsa("rsa"), publish_ec("rsa")): "keys 1 and 2 have the same `kid`",
    write_jwks(publish_rsa("rsa", kid=None)): "none of its 1 keys has a `kid`",
    write_jwks(publish_rsa("rsa", use="enc")): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", alg="RS512")): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", alg="HS256")): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", key_ops=["encrypt"])): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", n=encode(b"\xff" * 128))): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", n="not base64!")): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", e="AQ")): "none of its 1 keys",
    write_jwks(publish_rsa("rsa", e="")): "none of its 1 keys",
    write_jwks(publish_ec("rsa", crv="P-384")): "none of its 1 keys",
    write_jwks(publish_ec("rsa", x="AA")): "none of its 1 keys",
    '{"keys": [], "keys": []}': "it is not JSON: key that occurs twice",
    " " * 1_048_577: "it is larger than 1 MiB",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_keys_stay_when_the_new_jwks_cannot_be_used(gateway, text):
    publish(gateway, text)
    wait_for(lambda: any(f"jwks.json: {BAD[text]}" in line and FIX in line for line in new_lines(gateway)), "its log")
    assert statuses(gateway, rs256()) == [200]
    assert gateway.is_ready


def new_lines(gateway):
    """Return the lines of the log after the last JWKS that was read."""
    lines = gateway.output.splitlines()
    read = [number for number, line in enumerate(lines) if "jwks.json: 1 keys" in line]
    return lines[read[-1] :]


def test_number_of_token_keys_is_shown(gateway):
    def read():
        lines = gateway.request_metrics_port("/metrics/tenants")[1].splitlines()
        return dict(line.split(" ") for line in lines if line.startswith("rayhelm_gateway_token_keys"))

    wait_for(lambda: read()["rayhelm_gateway_token_keys"] == "1", "one key")
    assert int(read()["rayhelm_gateway_token_keys_read_timestamp_seconds"]) > 0
    (gateway.folder / "jwks.json").unlink()
    wait_for(lambda: read()["rayhelm_gateway_token_keys"] == "0", "no key")


def test_other_keys_of_the_jwks_are_ignored(gateway):
    other = [
        {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "ed"},
        publish_rsa("encrypts", use="enc"),
        {"kty": "new"},
    ]
    publish(gateway, write_jwks(*other, publish_rsa("rsa"), publish_ec("ec")))
    wait_for(lambda: statuses(gateway, rs256(), es256()) == [200, 200], "both keys are valid")
    gateway.wait_for_output("jwks.json: 2 keys, 3 without use here")


def test_key_that_openssl_refuses_gets_401(gateway):
    """The point is not on the curve, which only OpenSSL checks."""
    publish(gateway, write_jwks(publish_ec("ec", x=encode(bytes(31) + b"\x05")), publish_rsa("rsa")))
    refused = "jwks.json: HAProxy does not load a key"
    wait_for(lambda: statuses(gateway, es256()) == [401] and refused in gateway.output, "its log")
    assert gateway.chat(key=es256()).error["code"] == "token_key_unknown"
    assert statuses(gateway, rs256()) == [200]


def test_large_rsa_key_is_accepted(gateway):
    public = create_rsa_key("large", 4096).public_key().public_numbers()
    publish(gateway, write_jwks(publish_rsa("rsa", kid="large", n=encode(public.n.to_bytes(512, "big")))))
    token = create_token(sign_rsa("large", 4096), {"alg": "RS256", "kid": "large"}, create_claims())
    wait_for(lambda: statuses(gateway, token) == [200], "the large key is valid")


@pytest.mark.parametrize("mounted", [{}, {"jwks.json": "{"}, {"jwks.json": json.dumps({"keys": []})}])
def test_gateway_is_not_ready_until_it_has_read_a_valid_jwks(mounted):
    with (
        start_upstreams("one") as (one,),
        start_gateway(values_with_tokens(one), mounted=mounted, is_ready=False) as gateway,
    ):
        gateway.wait_for_output(FIX)
        assert gateway.request_metrics_port("/readyz") == (503, "no valid JWKS was read yet; see the log")
        publish(gateway, write_jwks(publish_rsa("rsa")))
        wait_for(lambda: gateway.is_ready, "the pod is ready")
        assert statuses(gateway, rs256()) == [200]


def test_gateway_is_ready_without_api_keys_when_its_tenants_have_tokens():
    values = {"tenants": {"acme": {"keys": {"secretName": ""}}}}
    mounted = {"jwks.json": write_jwks(publish_rsa("rsa"))}
    with (
        start_upstreams("one") as (one,),
        start_gateway(values_with_tokens(one, values), keys=False, mounted=mounted) as gateway,
    ):
        wait_for(lambda: gateway.is_ready, "the pod is ready")
        assert statuses(gateway, rs256(), "acme-key") == [200, 401]


def test_only_the_configured_algorithms_are_accepted():
    mounted = {"jwks.json": write_jwks(publish_rsa("rsa"), publish_ec("ec"))}
    with (
        start_upstreams("one") as (one,),
        start_gateway(values_with_tokens(one, {"oidc": {"algorithms": ["ES256"]}}), mounted=mounted) as gateway,
    ):
        assert statuses(gateway, es256()) == [200]
        assert gateway.chat(key=rs256()).error["code"] == "token_algorithm"
