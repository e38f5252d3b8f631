"""Every Secret that the installation refers to exists, has the key, and can be parsed. No value is ever printed."""

import shlex
from collections.abc import Iterator
from typing import Any

from rayhelm.live.cluster.kinds import DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES, SECRETS
from rayhelm.live.cluster.reader import AbsentError, ForbiddenError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity
from rayhelm.live.doctor.references import SecretReference, find_pod_specs, list_references
from rayhelm.live.doctor.secret_content import find_content_problem


def find_wanted(facts: Facts) -> dict[tuple[str, str], list[SecretReference]]:
    """Return the references by namespace and name, without the tokens that KubeRay creates for each RayCluster."""
    objects = [*facts.manifests, *facts.get_all(DEPLOYMENTS, facts.namespaces), *facts.get_all(RAY_SERVICES)]
    made = {(namespace_of(item), item["metadata"]["name"]) for item in facts.get_all(RAY_CLUSTERS)}
    wanted: dict[tuple[str, str], list[SecretReference]] = {}
    for item in objects:
        for spec in find_pod_specs(item.get("spec")):
            for found in list_references(spec, namespace_of(item)):
                if not found.name:
                    continue
                wanted.setdefault((found.namespace, found.name), []).append(found)
        for secret in _list_tls(item):
            keys = [SecretReference(namespace_of(item), secret, key, False) for key in ("tls.crt", "tls.key")]
            wanted.setdefault((namespace_of(item), secret), []).extend(keys)
    return {key: sorted(set(found)) for key, found in wanted.items() if key not in made}


def _find(facts: Facts) -> Iterator[Finding]:
    refused: list[tuple[str, str]] = []
    wanted = {
        key: references
        for key, found in sorted(find_wanted(facts).items())
        if (references := [each for each in found if not each.is_jwks])
    }
    yield from find_in_each(
        wanted.items(),
        lambda each: _check_secret(*each, facts, refused),
        lambda each: "Secret {}/{}".format(*each[0]),
    )
    if refused:
        yield _describe_refused(refused)


def _check_secret(
    key: tuple[str, str], references: list[SecretReference], facts: Facts, refused: list[tuple[str, str]]
) -> Iterator[Finding]:
    """Find what is wrong with one Secret; one that may not be read is added to `refused`."""
    try:
        secret = facts.get(SECRETS, *key)
    except ForbiddenError:
        refused.append(key)
    except AbsentError:
        yield _describe_missing(references)
    else:
        yield from _check_content(secret, references, facts)


def _check_content(secret: dict[str, Any], references: list[SecretReference], facts: Facts) -> Iterator[Finding]:
    data, name = secret.get("data") or {}, secret["metadata"]["name"]
    namespace = namespace_of(secret)
    for key, path in sorted({(each.key, each.path) for each in references if each.key}):
        problem = find_content_problem(key, data[key], facts.now, path) if key in data else ""
        if key in data and not problem:
            continue
        yield Finding(
            object=f"Secret {namespace}/{name}",
            evidence=f"key {key} {problem}"
            if problem
            else f"no key {key}; it has: {', '.join(sorted(data)) or 'none'}",
            cause=_consequence(key) if problem else "pods that refer to this key do not start",
            severity=Severity.warning if "expires" in problem or "invalid lines of" in problem else None,
            fix=_fix(namespace, name, key),
        )


def _describe_missing(references: list[SecretReference]) -> Finding:
    first = references[0]
    is_optional = all(each.is_optional for each in references)
    return Finding(
        object=f"Secret {first.namespace}/{first.name}",
        evidence="it does not exist",
        cause="it is optional, so the gateway starts without it and refuses every key of the tenant with 401"
        if is_optional
        else "pods that refer to it wait with CreateContainerConfigError",
        fix=_fix(first.namespace, first.name, first.key or "KEY"),
    )


def _describe_refused(refused: list[tuple[str, str]]) -> Finding:
    import yaml

    roles = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "rayhelm-doctor-secrets", "namespace": namespace},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["secrets"],
                    "resourceNames": sorted(name for where, name in refused if where == namespace),
                    "verbs": ["get"],
                }
            ],
        }
        for namespace in sorted({namespace for namespace, _ in refused})
    ]
    return Finding(
        object="rayhelm doctor",
        evidence="forbidden: " + ", ".join(f"Secret {namespace}/{name}" for namespace, name in refused),
        cause="could not check whether these Secrets exist and can be parsed",
        severity=Severity.warning,
        fix=yaml.safe_dump_all(roles, sort_keys=False, default_flow_style=None, width=120).strip(),
    )


def _list_tls(item: dict[str, Any]) -> list[str]:
    """Secrets with the certificate of an Ingress."""
    if item["kind"] != "Ingress":
        return []
    return [each["secretName"] for each in item["spec"].get("tls") or [] if each.get("secretName")]


def _consequence(key: str) -> str:
    if key == "keys":
        return "the gateway refuses the keys of these lines with 401"
    if key.startswith("tls."):
        return "clients refuse the TLS connection"
    return "what reads the key gets a value that is refused"


def _fix(namespace: str, name: str, key: str) -> str:
    """A command to paste. Tenants choose the key: it must not end the command."""
    if key == "keys":
        return (
            f"kubectl create secret generic {name} -n {namespace} --from-file=keys"
            " --dry-run=client -o yaml | kubectl apply -f -    # a line for each key: SHA256 NAME [EXPIRY]"
        )
    if key in ("tls.crt", "tls.key"):
        return (
            f"kubectl create secret tls {name} -n {namespace} --cert=tls.crt --key=tls.key"
            " --dry-run=client -o yaml | kubectl apply -f -"
        )
    return (
        f"kubectl create secret generic {name} -n {namespace} --from-file={shlex.quote(key)}=FILE"
        " --dry-run=client -o yaml | kubectl apply -f -    # FILE without a line break at its end"
    )


CHECK = Check(
    title="keys and Secrets",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, RAY_SERVICES, RAY_CLUSTERS),
)
