"""Objects that a probe needs once: its namespace, rights, policies, and the ConfigMap of the results.

The pods that measure have no rights and no token. They reach DNS and each other, and nothing else.
"""

from collections.abc import Sequence
from typing import Any

from rayhelm.fleet.measurements import CONFIG_MAP
from rayhelm.live.probe.policy import build_policy

__all__ = ["ACCOUNT", "NAMESPACE", "WORKER", "build_setup", "format_objects"]

NAMESPACE = "rayhelm-probe"
"""A namespace of its own: who may create Jobs in a namespace can use each account, Secret and ConfigMap of it."""
ACCOUNT = "rayhelm-probe"
"""Name of the account that runs a probe in the cluster, and of its rights."""
WORKER = "rayhelm-probe-worker"
"""Name of the pods that measure: their account, label, Service and NetworkPolicy."""

Object = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"


def build_setup(
    namespace: str = NAMESPACE, images: Sequence[str] = (), priority_class: str = "rayhelm-batch"
) -> list[Object]:
    """Return the objects, without the Jobs. The policy allows Jobs with these images; without any, none."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": levels}},
        *build_policy(namespace, ACCOUNT, WORKER, images, priority_class),
        _build("v1", "ServiceAccount", ACCOUNT, namespace, automountServiceAccountToken=False),
        _build("v1", "ServiceAccount", WORKER, namespace, automountServiceAccountToken=False),
        _build(f"{_RBAC}/v1", "ClusterRole", ACCOUNT, "", rules=[_rule("", "nodes", ["list"])]),
        _build(f"{_RBAC}/v1", "Role", ACCOUNT, namespace, rules=_list_rules()),
        _bind("ClusterRoleBinding", "ClusterRole", namespace),
        _bind("RoleBinding", "Role", namespace),
        _build("v1", "ConfigMap", CONFIG_MAP, namespace),
        _build_service(namespace),
        _build_network_policy(namespace),
    ]


def format_objects(objects: list[Object]) -> str:
    """Return objects as YAML documents."""
    import json

    import yaml

    # Copies: YAML would write a part that is used twice as an anchor and an alias.
    text: str = yaml.safe_dump_all(json.loads(json.dumps(objects)), sort_keys=False, width=120)
    return text.strip()


def _list_rules() -> list[Object]:
    """Rights in the namespace of the probe: Jobs and their pods, and one ConfigMap."""
    return [
        _rule("batch", "jobs", ["create", "get", "delete"]),
        _rule("", "pods", ["list"]),
        {**_rule("", "configmaps", ["get", "patch"]), "resourceNames": [CONFIG_MAP]},
    ]


def _rule(group: str, plural: str, verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": [plural], "verbs": verbs}


def _bind(kind: str, role: str, namespace: str) -> Object:
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    reference = {"apiGroup": _RBAC, "kind": role, "name": ACCOUNT}
    where = "" if role == "ClusterRole" else namespace
    return _build(f"{_RBAC}/v1", kind, ACCOUNT, where, roleRef=reference, subjects=[subject])


def _build_service(namespace: str) -> Object:
    """Names for the pods of a pair."""
    spec = {"clusterIP": "None", "selector": {"app.kubernetes.io/name": WORKER}, "publishNotReadyAddresses": True}
    return _build("v1", "Service", WORKER, namespace, spec=spec)


def _build_network_policy(namespace: str) -> Object:
    each_other = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": WORKER}}}
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    ports = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    spec = {
        **each_other,
        "policyTypes": ["Ingress", "Egress"],
        # All ports: NCCL and gloo choose theirs.
        "ingress": [{"from": [each_other]}],
        "egress": [{"to": [each_other]}, {"to": [dns], "ports": ports}],
    }
    return _build("networking.k8s.io/v1", "NetworkPolicy", WORKER, namespace, spec=spec)


def _build(api: str, kind: str, name: str, namespace: str, **rest: Any) -> Object:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "rayhelm"}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}
