"""The JWKS of each gateway with tokens exists, can be read, and has a key that the gateway accepts."""

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from rayhelm.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS, SECRETS
from rayhelm.cluster.reader import AbsentError, ForbiddenError
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, namespace_of
from rayhelm.doctor.failures import find_in_each
from rayhelm.doctor.finding import Finding, Severity
from rayhelm.doctor.jwks import JwksSource, find_jwks_problem, list_jwks_sources
from rayhelm.doctor.plant import Plant
from rayhelm.doctor.references import find_pod_specs

_ALGORITHMS = ["RS256", "ES256"]


def _find(facts: Facts) -> Iterator[Finding]:
    objects = [*facts.manifests, *facts.get_all(DEPLOYMENTS, facts.namespaces)]
    found = {
        (namespace_of(item), source): None
        for item in objects
        if item["kind"] == "Deployment"
        for spec in find_pod_specs(item.get("spec"))
        for source in list_jwks_sources(spec)
    }
    return find_in_each(
        sorted(found),
        lambda each: _check(facts, *each),
        lambda each: f"{each[1].kind} {each[0]}/{each[1].name}",
    )


def _check(facts: Facts, namespace: str, source: JwksSource) -> Iterator[Finding]:
    name = f"{source.kind} {namespace}/{source.name}"
    try:
        item = _get(facts, namespace, source)
    except ForbiddenError:
        rule = f'{{apiGroups: [""], resources: [secrets], resourceNames: [{source.name}], verbs: [get]}}'
        yield Finding(
            object="rayhelm doctor",
            evidence=f"forbidden: {name}",
            cause="could not check the keys with which the gateway verifies tokens",
            severity=Severity.warning,
            fix=f"# add to a Role of the doctor's account in namespace {namespace}:\n{rule}",
        )
        return
    if item is None:
        yield _describe(name, namespace, source, "it does not exist", "the gateway answers 401 to every token")
        return
    data = _read_data(source, item)
    if source.key not in data:
        evidence = f"no key {source.key}; it has: {', '.join(sorted(data)) or 'none'}"
        yield _describe(name, namespace, source, evidence, "the gateway answers 401 to every token")
        return
    problem = find_jwks_problem(data[source.key], _find_algorithms(facts, namespace, source))
    if problem:
        cause = (
            "every token gets 401"
            if "oidc.algorithms" in problem
            else "running pods keep the earlier keys, and new pods do not become ready"
        )
        yield _describe(name, namespace, source, f"key {source.key} {problem}", cause)


def _get(facts: Facts, namespace: str, source: JwksSource) -> dict[str, Any] | None:
    """Return the object, or None. Raises ForbiddenError for a Secret: these are not listed."""
    if source.kind == "ConfigMap":
        return facts.find(CONFIG_MAPS, namespace, source.name)
    try:
        return facts.get(SECRETS, namespace, source.name)
    except AbsentError:
        return None


def _read_data(source: JwksSource, item: dict[str, Any]) -> dict[str, str]:
    """Return the texts of a ConfigMap or a Secret by key; a value that is no base64 is empty."""
    is_secret = source.kind == "Secret"
    texts = {} if is_secret else dict(item.get("data") or {})
    encoded = item.get("data" if is_secret else "binaryData") or {}
    for key, value in encoded.items():
        try:
            texts[key] = base64.b64decode(value, validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            texts[key] = ""
    return texts


def _find_algorithms(facts: Facts, namespace: str, source: JwksSource) -> list[str]:
    """Return the algorithms that the gateway accepts, from its configuration; all that it can if that is missing."""
    for name in source.config_maps:
        item = facts.find(CONFIG_MAPS, namespace, name)
        text = ((item or {}).get("data") or {}).get("oidc.json", "")
        try:
            return list(json.loads(text)["algorithms"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return _ALGORITHMS


def _describe(name: str, namespace: str, source: JwksSource, evidence: str, cause: str) -> Finding:
    kind = "configmap" if source.kind == "ConfigMap" else "secret generic"
    fix = (
        f"kubectl create {kind} {source.name} -n {namespace} --from-file={source.key}=FILE"
        " --dry-run=client -o yaml | kubectl apply -f -    # FILE: the JWKS at `jwks_uri` of the provider"
    )
    return Finding(object=name, evidence=evidence, cause=cause, fix=fix)


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

CHECK = Check(
    title="keys of tokens",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, CONFIG_MAPS),
    plants=(
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
    ),
)
