"""The NetworkPolicies of the heads allow the pods of the KubeRay operator."""

import re
from collections.abc import Iterator, Mapping

from rayhelm.live.cluster.kinds import DEPLOYMENTS, NETWORK_POLICIES, PODS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import PART_OF, Facts, Object, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.pods import is_selected

_DASHBOARD = 8265
_IMAGE = re.compile(r"(^|/)kuberay/operator([:@]|$)")
_NAME, _COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
_NAMESPACE = "kubernetes.io/metadata.name"
"""Label of each namespace with its name; the charts select namespaces by it."""


def _find(facts: Facts) -> Iterator[Finding]:
    policies = [item for item in facts.get_all(NETWORK_POLICIES, facts.namespaces) if _allows_dashboard(item)]
    operators = facts.find_operators(_is_operator)
    found = [(namespace_of(item), labels_of(item["spec"]["template"])) for item in operators]
    # An operator outside of the cluster has no Deployment and no pods.
    pods = found or [(namespace_of(item), labels_of(item)) for item in facts.get_all(PODS)]
    yield from find_in_each(policies, lambda policy: _find_without_access(policy, pods, operators, facts))


def _find_without_access(
    policy: Object, pods: list[tuple[str, dict[str, str]]], operators: list[Object], facts: Facts
) -> Iterator[Finding]:
    peers = [peer for rule in _list_dashboard_rules(policy) for peer in rule.get("from") or []]
    own = namespace_of(policy)
    namespaces = {_name_namespace(peer, own) for peer in peers}
    candidates = pods if operators else [pod for pod in pods if pod[0] in namespaces]
    if not candidates or any(_selects(peer, own, *pod) for peer in peers for pod in candidates):
        return
    wanted = "; ".join(_describe(peer, own) for peer in peers)
    namespace, labels = candidates[0] if operators else (sorted(namespaces)[0], {})
    yield Finding(
        object=name_object(policy),
        evidence=f"port {_DASHBOARD} is open for {wanted}; " + _describe_operators(operators),
        cause="the KubeRay operator cannot reach the dashboard of the head, so a new Ray cluster never becomes ready",
        fix=_describe_fix(facts, policy, namespace, labels),
    )


def _describe_fix(facts: Facts, policy: Object, namespace: str, labels: Mapping[str, str]) -> str:
    """Return values of the chart, or keys of the fleet file, whose plan decides the namespace."""
    component = labels.get(_COMPONENT) or "LABEL OF YOUR OPERATOR"
    if not facts.rendered:
        return (
            "networkPolicy:    # values of chart ray-service\n  operator:\n"
            f"    namespace: {namespace}\n    podLabels: {{{_COMPONENT}: {component}}}"
        )
    fix = f"clusters:\n  {facts.region}: {{kuberayOperator: {{namespace: {namespace}}}}}"
    if component == "kuberay-operator":
        return fix
    service = labels_of(policy).get("app.kubernetes.io/instance", "NAME")
    operator = f"{{podLabels: {{{_COMPONENT}: {component}}}}}"
    return f"{fix}\nservices:\n  {service}: {{values: {{networkPolicy: {{operator: {operator}}}}}}}"


def _is_operator(item: Object) -> bool:
    """Return whether a Deployment is KubeRay's operator, by its labels or its image.

    `nameOverride` and `componentOverride` of its chart change the labels."""
    labels = labels_of(item) | labels_of(item["spec"]["template"])
    images = [each.get("image", "") for each in item["spec"]["template"]["spec"]["containers"]]
    named = "kuberay-operator" in (labels.get(_NAME), labels.get(_COMPONENT))
    return named or any(_IMAGE.search(image) for image in images)


def _allows_dashboard(policy: Object) -> bool:
    return labels_of(policy).get(PART_OF[0]) == PART_OF[1] and bool(_list_dashboard_rules(policy))


def _list_dashboard_rules(policy: Object) -> list[Object]:
    rules = policy["spec"].get("ingress") or []
    return [rule for rule in rules if _DASHBOARD in [port.get("port") for port in rule.get("ports") or []]]


def _name_namespace(peer: Object, own: str) -> str:
    """Return the namespace of a peer. A peer without a selector of namespaces is in that of the policy, `own`."""
    if "namespaceSelector" not in peer:
        return own
    return str(((peer.get("namespaceSelector") or {}).get("matchLabels") or {}).get(_NAMESPACE, ""))


def _selects(peer: Object, own: str, namespace: str, labels: Mapping[str, str]) -> bool:
    return namespace == _name_namespace(peer, own) and is_selected(peer.get("podSelector") or {}, dict(labels))


def _describe(peer: Object, own: str) -> str:
    labels = (peer.get("podSelector") or {}).get("matchLabels") or {}
    return f"pods of namespace {_name_namespace(peer, own)} with labels {_join(labels) or 'any'}"


def _describe_operators(operators: list[Object]) -> str:
    if not operators:
        return "no pod of that namespace has them"
    return "; ".join(f"{name_object(item)} has {_join(labels_of(item['spec']['template']))}" for item in operators)


def _join(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


CHECK = Check(
    title="access of the KubeRay operator to the heads",
    severity=Severity.critical,
    find=_find,
    reads=(NETWORK_POLICIES, DEPLOYMENTS, PODS),
)
