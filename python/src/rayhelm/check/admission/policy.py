"""ValidatingAdmissionPolicies and their bindings, read from YAML."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rayhelm.deploy.charts.helm import Loader, charts_dir
from rayhelm.deploy.label_selectors import holds

__all__ = ["AdmissionPolicy", "Validation", "load_chart_policies", "read_policies"]

Object = Mapping[str, Any]

FIELD = "rayhelm.dev/field-"
"""Prefix of a policy's annotations with the possible paths of a rule's field, the nearest first."""
PLURALS = {
    "RayService": "rayservices",
    "RayCluster": "rayclusters",
    "RayJob": "rayjobs",
    "Pod": "pods",
    "Job": "jobs",
    "Service": "services",
    "Namespace": "namespaces",
    "Ingress": "ingresses",
    "NetworkPolicy": "networkpolicies",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "ServiceAccount": "serviceaccounts",
    "Endpoints": "endpoints",
    "EndpointSlice": "endpointslices",
    "PodMonitor": "podmonitors",
    "ServiceMonitor": "servicemonitors",
    "ScrapeConfig": "scrapeconfigs",
    "HTTPRoute": "httproutes",
    "GRPCRoute": "grpcroutes",
    "TCPRoute": "tcproutes",
    "TLSRoute": "tlsroutes",
}
"""API resources by kind, as the API server maps them."""


@dataclass(frozen=True)
class Validation:
    """One condition of a policy."""

    expression: str
    message: str
    message_expression: str = ""


@dataclass(frozen=True)
class AdmissionPolicy:
    """A policy with one of its bindings."""

    name: str
    rules: tuple[Object, ...]
    """`matchConstraints.resourceRules`."""
    conditions: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    """Names and expressions, in the order of the policy."""
    validations: tuple[Validation, ...]
    actions: tuple[str, ...]
    """`Deny`, `Warn`, `Audit`."""
    namespaces: Object
    """Selector of namespaces, of the policy and its binding."""
    fields: Mapping[str, tuple[str, ...]]
    """Possible paths of the field, by rule."""

    def matches(self, item: Object, namespace: Object, operation: str = "CREATE") -> bool:
        """Return whether the API server would evaluate this policy for the object."""
        group, _, version = str(item["apiVersion"]).rpartition("/")
        resource = PLURALS.get(str(item["kind"]))
        return _is_selected(self.namespaces, _collect_labels(item, namespace)) and any(
            resource in rule["resources"]
            and group in rule["apiGroups"]
            and {version, "*"} & {*rule["apiVersions"]}
            and {operation, "*"} & {*rule["operations"]}
            for rule in self.rules
        )


@cache
def load_chart_policies() -> tuple[AdmissionPolicy, ...]:
    """Return the policies of the chart `platform`, with their defaults."""
    folder = charts_dir() / "platform/files/policies"
    return tuple(read_policies(item for file in sorted(folder.glob("*.yaml")) for item in _read_documents(file)))


def read_policies(objects: Iterable[Object]) -> Iterator[AdmissionPolicy]:
    """Yield the policies in `objects`, once for each of their bindings."""
    items = [item for item in objects if item]
    policies = {item["metadata"]["name"]: item for item in items if item["kind"] == "ValidatingAdmissionPolicy"}
    for item in items:
        if item["kind"] == "ValidatingAdmissionPolicyBinding" and item["spec"]["policyName"] in policies:
            yield _parse_policy(policies[item["spec"]["policyName"]], item["spec"])


def _parse_policy(item: Object, binding: Object) -> AdmissionPolicy:
    spec, annotations = item["spec"], item["metadata"].get("annotations") or {}
    return AdmissionPolicy(
        name=item["metadata"]["name"],
        rules=tuple(spec["matchConstraints"]["resourceRules"]),
        conditions=tuple(each["expression"] for each in spec.get("matchConditions", ())),
        variables=tuple((each["name"], each["expression"]) for each in spec.get("variables", ())),
        validations=tuple(
            Validation(each["expression"], each.get("message", ""), each.get("messageExpression", ""))
            for each in spec["validations"]
        ),
        actions=tuple(binding["validationActions"]),
        namespaces=_join_selectors(spec["matchConstraints"], binding.get("matchResources", {})),
        fields={
            key.removeprefix(FIELD): tuple(part.strip() for part in text.split(","))
            for key, text in annotations.items()
            if key.startswith(FIELD)
        },
    )


def _join_selectors(*matched: Object) -> Object:
    found = [each.get("namespaceSelector") or {} for each in matched]
    return {"matchExpressions": [one for each in found for one in each.get("matchExpressions", ())]}


def _read_documents(file: Path) -> Iterator[Object]:
    yield from yaml.load_all(file.read_text(), Loader=Loader)


def _collect_labels(item: Object, namespace: Object) -> Object:
    """Return the labels that a namespace selector compares. The API server adds the name of the namespace to them."""
    if item["kind"] != "Namespace":
        return namespace["metadata"].get("labels") or {}
    about = item["metadata"]
    return {**(about.get("labels") or {}), "kubernetes.io/metadata.name": about["name"]}


def _is_selected(selector: Object, labels: Object) -> bool:
    """Return whether a label selector matches. Only `matchExpressions` are supported: these policies use no others."""
    return all(holds(each, labels) for each in selector.get("matchExpressions", ()))
