"""The KubeRay operator runs, in the version that the fleet was rendered for."""

import re
from collections.abc import Iterator

from rayhelm.cluster.kinds import DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, Object, labels_of
from rayhelm.doctor.failures import find_in_each
from rayhelm.doctor.finding import Finding, Severity, name_object
from rayhelm.doctor.plant import Plant
from rayhelm.versions import versions

_VERSION = "ray.io/kuberay-version"
"""Annotation of the operator on each RayCluster."""
_LATE_S = 300
"""Seconds after which an operator that runs has seen a change."""


def _find(facts: Facts) -> Iterator[Finding]:
    operators = [item for item in facts.get_all(DEPLOYMENTS) if _is_operator(item)]
    yield from find_in_each(operators, _find_without_pods)
    if not operators:
        yield from find_in_each(facts.get_all(RAY_SERVICES), lambda item: _find_unseen(item, facts))
    yield from _find_versions(facts, operators)


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
            fix="helm install kuberay-operator kuberay/kuberay-operator -n kuberay-system --create-namespace"
            f" --version {versions().kuberay.default}",
        )


def _find_versions(facts: Facts, operators: list[Object]) -> Iterator[Finding]:
    found = {name_object(item): _read_tag(item) for item in operators}
    if not operators:
        clusters = facts.get_all(RAY_CLUSTERS)
        found = {name_object(item): (item["metadata"].get("annotations") or {}).get(_VERSION, "") for item in clusters}
    planned = facts.rendered.loaded.fleet.clusters[facts.region].kuberay if facts.rendered else ""
    for name, text in found.items():
        version = text.removeprefix("v")
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            continue
        if version not in versions().kuberay.supported:
            yield Finding(
                object=name,
                evidence=f"KubeRay {version}; tested: {', '.join(versions().kuberay.supported)}",
                cause="rayhelm was not tested with this version of KubeRay",
                fix=f"helm upgrade kuberay-operator kuberay/kuberay-operator -n kuberay-system --version"
                f" {planned or versions().kuberay.default}    # no edit of a RayService at the same time",
            )
        elif planned and version != planned:
            yield Finding(
                object=name,
                evidence=f"KubeRay {version}; the fleet file says {planned}",
                cause="the values were checked against the rules of another version of the operator",
                severity=Severity.warning,
                fix=f"clusters:\n  {facts.region}: {{kuberay: {version}}}",
            )


def _is_operator(item: Object) -> bool:
    return labels_of(item).get("app.kubernetes.io/name") == "kuberay-operator"


def _read_tag(item: Object) -> str:
    image: str = item["spec"]["template"]["spec"]["containers"][0].get("image", "")
    return image.partition("@")[0].rpartition(":")[2]


_OPERATOR: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "kuberay-operator",
        "namespace": "gateway",
        "labels": {"app.kubernetes.io/name": "kuberay-operator"},
    },
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "planted-operator"}},
        "template": {
            "metadata": {"labels": {"app": "planted-operator"}},
            "spec": {
                "nodeSelector": {"planted": "nowhere"},
                "containers": [{"name": "operator", "image": "quay.io/kuberay/operator:v1.4.0"}],
            },
        },
    },
}

CHECK = Check(
    title="KubeRay operator",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, RAY_CLUSTERS, RAY_SERVICES),
    plants=(
        Plant("The operator has no pod", "0 of 1 replicas", "Deployment gateway/kuberay-operator", create=(_OPERATOR,)),
        Plant(
            "The operator is of an untested version",
            r"KubeRay 1\.4\.0; tested",
            "Deployment gateway/kuberay-operator",
            create=(_OPERATOR,),
        ),
    ),
)
