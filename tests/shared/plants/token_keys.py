"""Faults that the check `token-keys` finds."""

import json
from typing import Any

from shared.plant import Plant


def _gateway(jwks: str, config: str = "gateway") -> dict[str, Any]:
    sources = [
        {"configMap": {"name": config}},
        {"configMap": {"name": jwks, "optional": True, "items": [{"key": "jwks.json", "path": "jwks.json"}]}},
    ]
    labels = {"app": jwks}
    container = {"name": "haproxy", "image": "haproxy:3.4.7"}
    spec = {"containers": [container], "volumes": [{"name": "config", "projected": {"sources": sources}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": jwks, "namespace": "gateway"},
        # Without pods: their images cannot be pulled where the faults are planted.
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _config_map(name: str, **data: str) -> dict[str, Any]:
    data = {key.replace("_", "."): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "gateway"}, "data": data}


_EC_KEY = {"kty": "EC", "crv": "P-256", "kid": "one", "x": "A" * 43, "y": "A" * 43}

_SETS = {
    "is malformed": ("<html>502 Bad Gateway</html>", "key jwks.json is not JSON.*new pods do not become ready"),
    "is empty": ('{"keys": []}', "has 0 keys, and none has a `kid`"),
    "has no key that the gateway can use": (
        json.dumps({"keys": [{**_EC_KEY, "crv": "P-384"}]}),
        "has 1 keys, and none",
    ),
    "has a private key": (json.dumps({"keys": [{**_EC_KEY, "d": "AA"}]}), "private key, number 1, with `d`"),
}

PLANTS = (
    Plant(
        "The JWKS of a gateway does not exist",
        "it does not exist.*401 to every token",
        "ConfigMap gateway/planted-jwks",
        create=(_gateway("planted-jwks"),),
    ),
    Plant(
        "The ConfigMap of a JWKS has another key",
        "no key jwks.json; it has: keys.json",
        "ConfigMap gateway/planted-jwks-key",
        create=(_gateway("planted-jwks-key"), _config_map("planted-jwks-key", keys_json="{}")),
    ),
    *(
        Plant(
            f"A JWKS {name}",
            found,
            f"ConfigMap gateway/planted-jwks-{number}",
            create=(
                _gateway(f"planted-jwks-{number}"),
                _config_map(f"planted-jwks-{number}", jwks_json=text),
            ),
        )
        for number, (name, (text, found)) in enumerate(_SETS.items())
    ),
    Plant(
        "No key of a JWKS has an accepted algorithm",
        "has keys for ES256 only, and the gateway accepts RS256.*every token gets 401",
        "ConfigMap gateway/planted-jwks-algorithm",
        create=(
            _gateway("planted-jwks-algorithm", "planted-oidc"),
            _config_map("planted-oidc", oidc_json='{"algorithms": ["RS256"]}'),
            _config_map("planted-jwks-algorithm", jwks_json=json.dumps({"keys": [_EC_KEY]})),
        ),
    ),
)
