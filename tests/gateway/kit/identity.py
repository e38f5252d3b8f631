"""An identity provider: signs tokens and publishes its keys as a JWKS."""

import base64
import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from gateway.kit.upstream import Upstream
from gateway.kit.values import Values, minimal_values

ISSUER = "https://idp.example.org/realms/main"
AUDIENCE = "rayhelm"
Jwk = dict[str, Any]
Sign = Callable[[bytes], bytes]


def create_rsa_key(kid: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the same key for the same arguments within a process, because its creation takes a second."""
    return _create_rsa_key(kid, bits)


@cache
def _create_rsa_key(kid: str, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def create_ec_key(kid: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def encode(data: bytes | Any) -> str:
    """Return base64url without padding; JSON of anything but bytes."""
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def publish_rsa(kid: str, /, **more: Any) -> Jwk:
    public = create_rsa_key(kid).public_key().public_numbers()
    numbers = {"n": encode(public.n.to_bytes(256, "big")), "e": encode(public.e.to_bytes(3, "big"))}
    return {"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", **numbers, **more}


def publish_ec(kid: str, /, **more: Any) -> Jwk:
    public = create_ec_key(kid).public_key().public_numbers()
    numbers = {"x": encode(public.x.to_bytes(32, "big")), "y": encode(public.y.to_bytes(32, "big"))}
    return {"kty": "EC", "kid": kid, "crv": "P-256", **numbers, **more}


def sign_rsa(kid: str, bits: int = 2048) -> Sign:
    return lambda data: create_rsa_key(kid, bits).sign(data, padding.PKCS1v15(), SHA256())


def sign_ec(kid: str) -> Sign:
    def sign(data: bytes) -> bytes:
        r, s = decode_dss_signature(create_ec_key(kid).sign(data, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return sign


def create_claims(**claims: Any) -> dict[str, Any]:
    """Return claims that the gateway accepts, changed by `claims`; None removes one."""
    now = int(time.time())
    valid = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 3600, "iat": now, "sub": "ci", "tenant": "acme"}
    return {name: value for name, value in (valid | claims).items() if value is not None}


def create_token(sign: Sign, header: dict[str, Any], claims: dict[str, Any] | str) -> str:
    """Return a token; claims in text form are used as they are."""
    payload = encode(claims.encode() if isinstance(claims, str) else claims)
    signed = f"{encode({'typ': 'JWT', **header})}.{payload}"
    return f"{signed}.{encode(sign(signed.encode()))}"


def rs256(kid: str = "rsa", header: dict[str, Any] | None = None, **claims: Any) -> str:
    return create_token(sign_rsa(kid), {"alg": "RS256", "kid": kid, **(header or {})}, create_claims(**claims))


def es256(kid: str = "ec", header: dict[str, Any] | None = None, **claims: Any) -> str:
    return create_token(sign_ec(kid), {"alg": "ES256", "kid": kid, **(header or {})}, create_claims(**claims))


def write_jwks(*keys: Jwk) -> str:
    return json.dumps({"keys": keys})


def values_with_tokens(upstream: Upstream, overlay: Values | None = None) -> Values:
    """Tenant `acme` has the claim value `acme`."""
    oidc = {"enabled": True, "issuer": ISSUER, "audiences": [AUDIENCE, "other"], "jwks": {"configMapName": "jwks"}}
    values = minimal_values(upstream, overlay)
    values["oidc"] = {**oidc, **values.get("oidc", {})}
    values["tenants"]["acme"].setdefault("claimValues", ["acme", "acme <admins>"])
    values.setdefault("timeouts", {}).setdefault("keyRefreshSeconds", 0.1)
    return values
