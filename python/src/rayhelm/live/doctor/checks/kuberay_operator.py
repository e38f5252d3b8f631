"""The KubeRay operator runs, in the version and in the namespace that the fleet was rendered for."""

import re
from collections.abc import Iterator

from rayhelm.facts.versions import versions
from rayhelm.live.cluster.kinds import DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_VERSION = "ray.io/kuberay-version"
"""Annotation of the operator on each RayCluster."""
_LATE_S = 300
"""Seconds after which an operator that runs has seen a change."""


def _find(facts: Facts) -> Iterator[Finding]:
    operators = facts.find_operators(_is_operator)
    yield from find_in_each(operators, _find_without_pods)
    if not operators:
        yield from find_in_each(facts.get_all(RAY_SERVICES), lambda item: _find_unseen(item, facts))
    yield from _find_versions(facts, operators)
    yield from _find_elsewhere(facts, operators)


def _find_without_pods(operator: Object) -> Iterator[Finding]:
    if not operator.get("status", {}).get("availableReplicas"):
        yield Finding(
            object=name_object(operator),
            evidence=f"0 of {operator['spec'].get('replicas', 1)} replicas are available",
            cause="the KubeRay operator does not run: edits of RayServices have no effect, and lost pods stay lost",
            fix=f"kubectl describe pods -n {operator['metadata']['namespace']} -l"
            " app.kubernetes.io/name=kuberay-operator",
        )


def _find_unseen(item: Object, facts: Facts) -> Iterator[Finding]:
    """Find a RayService that no operator has seen: without a Deployment it can run outside of the cluster."""
    seen = item.get("status", {}).get("observedGeneration", 0)
    if seen < item["metadata"].get("generation", 0) and facts.age_of(item) > _LATE_S:
        yield Finding(
            object=name_object(item),
            evidence=f"generation {item['metadata']['generation']}, but the operator has seen {seen}; no Deployment"
            " of the KubeRay operator was found",
            cause="the KubeRay operator does not run",
            fix=f"helm install kuberay-operator kuberay/kuberay-operator -n {facts.kuberay_namespace}"
            f" --create-namespace --version {versions().kuberay.default}",
        )


def _find_versions(facts: Facts, operators: list[Object]) -> Iterator[Finding]:
    found = {name_object(item): _read_tag(item) for item in operators}
    if not operators:
        clusters = facts.get_all(RAY_CLUSTERS)
        found = {name_object(item): (item["metadata"].get("annotations") or {}).get(_VERSION, "") for item in clusters}
    planned = facts.rendered.plan.declared.clusters[facts.region].kuberay if facts.rendered else ""
    for name, text in found.items():
        version = text.removeprefix("v")
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            continue
        if version not in versions().kuberay.supported:
            yield Finding(
                object=name,
                evidence=f"KubeRay {version}; tested: {', '.join(versions().kuberay.supported)}",
                cause="rayhelm was not tested with this version of KubeRay",
                fix="helm upgrade kuberay-operator kuberay/kuberay-operator"
                f" -n {_find_namespace(name, operators) or facts.kuberay_namespace}"
                f" --version {planned or versions().kuberay.default}    # no edit of a RayService at the same time",
            )
        elif planned and version != planned:
            yield Finding(
                object=name,
                evidence=f"KubeRay {version}; the fleet file says {planned}",
                cause="the values were checked against the rules of another version of the operator",
                severity=Severity.warning,
                fix=f"clusters:\n  {facts.region}: {{kuberay: {version}}}",
            )


def _find_namespace(name: str, operators: list[Object]) -> str:
    return next((namespace_of(item) for item in operators if name_object(item) == name), "")


def _find_elsewhere(facts: Facts, operators: list[Object]) -> Iterator[Finding]:
    """Find operators in another namespace than that of the fleet file, if none is in it."""
    namespaces = sorted({namespace_of(item) for item in operators})
    if not facts.rendered or not operators or facts.kuberay_namespace in namespaces:
        return
    yield Finding(
        object=name_object(operators[0]),
        evidence=f"it runs in namespace {namespaces[0]}; the fleet file says {facts.kuberay_namespace}",
        cause="NetworkPolicies allow the KubeRay operator and Prometheus finds it only in the namespace of the fleet"
        " file: a new Ray cluster never becomes ready, and the operator has no metrics",
        fix=f"clusters:\n  {facts.region}: {{kuberayOperator: {{namespace: {namespaces[0]}}}}}",
    )


def _is_operator(item: Object) -> bool:
    return labels_of(item).get("app.kubernetes.io/name") == "kuberay-operator"


def _read_tag(item: Object) -> str:
    image: str = item["spec"]["template"]["spec"]["containers"][0].get("image", "")
    return image.partition("@")[0].rpartition(":")[2]


CHECK = Check(
    title="KubeRay operator",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES),
)
