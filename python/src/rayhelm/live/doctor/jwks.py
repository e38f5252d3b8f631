"""JSON Web Key Sets that gateways mount, and whether a gateway can use one, as its `jwks.lua` decides."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["JWKS_FILE", "JwksSource", "find_jwks_problem", "list_jwks_sources"]

JWKS_FILE = "jwks.json"
"""Name of the file in the pod, whatever the key of the object is."""
_MAX_BYTES = 1_048_576
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class JwksSource(NamedTuple):
    """The object that a pod spec mounts as JWKS."""

    kind: str
    """ConfigMap or Secret."""
    name: str
    key: str
    config_maps: tuple[str, ...]
    """Other ConfigMaps of the same folder: one of them has the gateway's configuration."""


def list_jwks_sources(spec: dict[str, Any]) -> Iterator[JwksSource]:
    """Yield the sources of a pod spec."""
    for volume in spec.get("volumes") or []:
        sources = (volume.get("projected") or {}).get("sources") or []
        config_maps = tuple(each["configMap"]["name"] for each in sources if each.get("configMap"))
        for source in sources:
            for kind, named in (("ConfigMap", source.get("configMap")), ("Secret", source.get("secret"))):
                for item in (named or {}).get("items") or []:
                    if named and item.get("path") == JWKS_FILE:
                        yield JwksSource(kind, named["name"], item["key"], config_maps)


class _InvalidError(ValueError):
    """The set is refused; the text says why."""


def find_jwks_problem(text: str, algorithms: Sequence[str]) -> str:
    """Return why a gateway refuses the set, or why it verifies no token; empty if it can be used.

    `algorithms` are those that the gateway accepts. No key is ever shown."""
    if len(text.encode()) > _MAX_BYTES:
        return "is larger than 1 MiB"
    try:
        found = _read(text)
    except (ValueError, RecursionError) as error:
        return str(error) if isinstance(error, _InvalidError) else "is not JSON"
    if not [each for each in found if each]:
        return f"has {len(found)} keys, and none has a `kid` and verifies RS256 or ES256"
    if not set(found) & set(algorithms):
        has = ", ".join(sorted(each for each in set(found) if each))
        return f"has keys for {has} only, and the gateway accepts {', '.join(algorithms)} (`oidc.algorithms`)"
    return ""


def _read(text: str) -> list[str]:
    """Return the algorithm of each key; empty for a key without use."""
    content = json.loads(text, object_pairs_hook=_to_object, parse_constant=_refuse_constant)
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list):
        raise _InvalidError("has no list `keys`")
    seen: set[str] = set()
    for number, key in enumerate(keys, start=1):
        if not isinstance(key, dict):
            raise _InvalidError(f"has a key {number} that is not an object")
        if private := [name for name in _PRIVATE if name in key]:
            raise _InvalidError(f"has a private key, number {number}, with `{private[0]}`: replace it at the provider")
        kid = key.get("kid")
        if isinstance(kid, str) and kid and kid in seen:
            raise _InvalidError(f"has two keys with the `kid` of key {number}")
        seen.add(str(kid))
    return [_find_algorithm(key) for key in keys]


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _InvalidError("is not JSON: it has a name that occurs twice in one object")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _find_algorithm(key: dict[str, Any]) -> str:
    kid, use, operations = key.get("kid"), key.get("use", "sig"), key.get("key_ops", ["verify"])
    finder = {"RSA": _find_rsa, "EC": _find_ec}.get(str(key.get("kty")))
    found = finder(key) if finder else ""
    is_used = isinstance(kid, str) and kid and use == "sig" and isinstance(operations, list) and "verify" in operations
    return found if is_used and key.get("alg", found) == found else ""


def _find_rsa(key: dict[str, Any]) -> str:
    modulus, exponent = (_decode(key.get(name)).lstrip(b"\0") for name in ("n", "e"))
    is_odd = 1 <= len(exponent) <= 4 and exponent[-1] % 2 == 1 and exponent != b"\1"
    return "RS256" if 256 <= len(modulus) <= 1024 and is_odd else ""


def _find_ec(key: dict[str, Any]) -> str:
    is_point = all(len(_decode(key.get(name))) == 32 for name in ("x", "y"))
    return "ES256" if key.get("crv") == "P-256" and is_point else ""


def _decode(text: Any) -> bytes:
    """Bytes of base64url without padding; empty if it is none."""
    import base64

    if not isinstance(text, str) or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        return b""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
