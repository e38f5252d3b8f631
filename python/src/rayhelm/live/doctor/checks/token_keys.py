"""The JWKS of each gateway with tokens exists, can be read, and has a key that the gateway accepts."""

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from rayhelm.live.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS, SECRETS
from rayhelm.live.cluster.reader import AbsentError, ForbiddenError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity
from rayhelm.live.doctor.jwks import JwksSource, find_jwks_problem, list_jwks_sources
from rayhelm.live.doctor.references import find_pod_specs

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


CHECK = Check(
    title="keys of tokens",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, CONFIG_MAPS),
)
