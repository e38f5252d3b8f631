"""Objects that a member of a tenant may create, and the attacks that are laid over them."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from policies.kit.cases import FOLDER, documents
from rayhelm.check.admission.evaluate import MESSAGE
from rayhelm.deploy.charts.helm import template
from rayhelm.fleet.yaml_nodes import Loader

__all__ = [
    "ATTACKS",
    "NAMESPACE",
    "OBJECTS",
    "RULES",
    "Attack",
    "Object",
    "build_namespace",
    "lay_over",
    "list_single_rules",
]

Object = dict[str, Any]

NAMESPACE = "attacks"
IMAGE = "rayproject/ray@sha256:" + "4f" * 32


def _build_pod(container: str) -> Object:
    return {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": container, "image": IMAGE}],
    }


_RAY: Object = {
    "rayVersion": "2.60.0",
    "authOptions": {"mode": "token"},
    "headGroupSpec": {"rayStartParams": {}, "template": {"spec": _build_pod("ray-head")}},
}
_SERVE = '{\n  "applications": [],\n  "http_options": {\n    "request_timeout_s": 1200\n  }\n}\n'
OBJECTS: dict[str, Object] = {
    "pod": {"apiVersion": "v1", "kind": "Pod", "spec": _build_pod("main")},
    "service": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}], "selector": {"app": "mine"}}},
    "alias": {"apiVersion": "v1", "kind": "Service", "spec": {"type": "ExternalName", "externalName": "a.b.svc"}},
    "config-map": {"apiVersion": "v1", "kind": "ConfigMap"},
    "secret": {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"},
    "service-account": {"apiVersion": "v1", "kind": "ServiceAccount"},
    "endpoint-slice": {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"labels": {"kubernetes.io/service-name": "chat"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"]}],
        "ports": [{"port": 8000}],
    },
    "network-policy": {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}}},
    "ray-cluster": {"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {**_RAY, "suspend": True}},
    "route": {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "spec": {"rules": [{"backendRefs": [{"name": "gateway", "port": 80}]}]},
    },
    "job-on-a-cluster": {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {"entrypoint": "python work.py"},
    },
    "ray-job": {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {"entrypoint": "python work.py", "rayClusterSpec": _RAY},
    },
    "ray-service": {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "spec": {"upgradeStrategy": {"type": "None"}, "serveConfigV2": _SERVE, "rayClusterConfig": _RAY},
    },
}


@dataclass(frozen=True)
class Attack:
    """One attack: an object that is created, changed or deleted."""

    name: str
    finding: int
    rule: str
    base: Object
    changes: Object
    labels: Mapping[str, str] | None
    """Labels of the object that is there already; None if the attack creates it."""
    is_deletion: bool
    is_unlabeled: bool
    """The namespace is not of chart `tenant` and has no Pod Security level."""

    def __str__(self) -> str:
        return f"{self.finding}-{self.name}"

    @property
    def before(self) -> Object | None:
        """The object that is there already."""
        if self.labels is None:
            return None
        found = _name(self.base, self.name)
        found["metadata"]["labels"] = dict(self.labels)
        return found

    @property
    def item(self) -> Object | None:
        """The object that the member sends; None for a deletion."""
        return None if self.is_deletion else lay_over(_name(self.base, self.name), self.changes)


def _name(item: Object, name: str) -> Object:
    found = copy.deepcopy(item)
    found["metadata"] = {"name": name, "namespace": NAMESPACE, **found.get("metadata", {})}
    return found


def lay_over(item: Object, changes: Mapping[str, Any]) -> Object:
    """Lay changes over an object; lists are replaced."""
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(item.get(key), dict)
        item[key] = lay_over(item[key], value) if both else copy.deepcopy(value)
    return item


def _read(file: Path) -> list[Attack]:
    rows = yaml.load(file.read_text(), Loader=Loader)
    return [
        Attack(
            name, row["finding"], row["rule"], OBJECTS[row["of"]], row["over"], row.get("before"),
            row.get("delete", False), row.get("unlabeled", False),
        )
        for name, row in rows.items()
    ]  # fmt: skip


ATTACKS = _read(Path(__file__).parents[1] / "attacks.yaml")
RULES = sorted({attack.rule for attack in ATTACKS})


def build_namespace(name: str = NAMESPACE, *, is_unlabeled: bool = False) -> Object:
    """Return the namespace of chart `tenant` with its annotations, which the policies read. Pod Security lets every pod
    through, so that the policies alone judge. `is_unlabeled`: a namespace that no chart made."""
    if is_unlabeled:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}}
    quota = {"gpus": {"nvidia.com/gpu": {"planned": 1, "upgradeSurge": 0}}}
    objects = template("tenant", NAMESPACE, "tenants", {"quota": quota})
    (found,) = (dict(item) for item in objects if item["kind"] == "Namespace")
    about = found["metadata"]
    labels = {key: value for key, value in about["labels"].items() if not key.startswith("pod-security")}
    notes = {**about["annotations"], "rayhelm.dev/pod-security-reason": "policies alone judge here"}
    found["metadata"] = {**about, "name": name, "labels": labels, "annotations": notes}
    return found


def list_single_rules() -> list[tuple[str, Object, Object]]:
    """Return each rule of the attacks as a policy of its own, with its binding: so one rule can be off by itself."""
    found = []
    for file in sorted(FOLDER.glob("*/policy.yaml")):
        policy, binding = documents(file)
        parts: dict[str, list[Object]] = {}
        for validation in policy["spec"]["validations"]:
            matched = MESSAGE.fullmatch(validation["message"])
            assert matched
            parts.setdefault(matched["rule"], []).append(validation)
        for rule in sorted(parts.keys() & set(RULES)):
            single, bound = copy.deepcopy(policy), copy.deepcopy(binding)
            single["metadata"]["name"] = bound["metadata"]["name"] = f"attacks-{rule}"
            single["spec"]["validations"] = parts[rule]
            bound["spec"]["policyName"] = f"attacks-{rule}"
            found.append((rule, single, bound))
    return found
