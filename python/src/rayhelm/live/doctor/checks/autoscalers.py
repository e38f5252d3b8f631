"""Every HPA and ScaledObject has a target that can scale, and a series to scale by."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import (
    API_SERVICES,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
)
from rayhelm.live.cluster.reader import AbsentError
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_APIS = {
    "Resource": ("metrics.k8s.io/v1beta1", "metrics-server"),
    "ContainerResource": ("metrics.k8s.io/v1beta1", "metrics-server"),
    "Pods": ("custom.metrics.k8s.io/v1beta1", "the Prometheus adapter"),
    "Object": ("custom.metrics.k8s.io/v1beta1", "the Prometheus adapter"),
    "External": ("external.metrics.k8s.io/v1beta1", "the Prometheus adapter or KEDA"),
}
"""API group that serves a type of metric, and what installs it."""


def _find(facts: Facts) -> Iterator[Finding]:
    scalers = facts.get_all(HORIZONTAL_POD_AUTOSCALERS, facts.namespaces)
    yield from find_in_each(scalers, lambda scaler: _find_bad_target(scaler, facts))
    yield from find_in_each(scalers, lambda scaler: _find_bad_metrics(scaler, facts))
    yield from find_in_each(scalers, _find_target_in_total)
    scaled = facts.get_all(SCALED_OBJECTS, facts.namespaces)
    yield from find_in_each(scaled, lambda scaler: _find_bad_target(scaler, facts))
    yield from find_in_each(scaled, _find_keda_problem)


def _find_bad_target(scaler: Object, facts: Facts) -> Iterator[Finding]:
    target = {"kind": "Deployment", **scaler["spec"]["scaleTargetRef"]}
    kind, name, namespace = target["kind"], target["name"], namespace_of(scaler)
    if kind.startswith("Ray"):
        yield Finding(
            object=name_object(scaler),
            evidence=f"its target is {kind} {name}",
            cause="no kind of KubeRay has a scale subresource, so this autoscaler can never scale it",
            fix=f"kubectl delete {_resource(scaler)} {scaler['metadata']['name']} -n {namespace}"
            "    # Ray Serve scales replicas, and Ray's autoscaler scales workers: `replicas` of the model",
        )
    elif kind == "Deployment" and not facts.find(DEPLOYMENTS, namespace, name):
        there = [item["metadata"]["name"] for item in facts.get_all(DEPLOYMENTS, {namespace})]
        yield Finding(
            object=name_object(scaler),
            evidence=f"its target Deployment {name} does not exist; there are: {', '.join(there) or 'none'}",
            cause="the autoscaler scales nothing",
            fix=f"kubectl delete {_resource(scaler)} {scaler['metadata']['name']} -n {namespace}    # or correct its"
            " scaleTargetRef",
        )


def _find_bad_metrics(scaler: Object, facts: Facts) -> Iterator[Finding]:
    types = {metric["type"] for metric in scaler["spec"].get("metrics") or []}
    for kind in sorted(types & set(_APIS)):
        group, source = _APIS[kind]
        if _is_served(group, facts):
            continue
        yield Finding(
            object=name_object(scaler),
            evidence=f"it scales by a metric of type {kind}, and the API server has no {group}",
            cause=f"the autoscaler has no series: {source} is not installed, or its APIService is not available",
            fix=f"kubectl get apiservice v1beta1.{group.partition('/')[0]} -o yaml    # its condition Available says"
            " why",
        )
        return
    active = find_condition(scaler, "ScalingActive")
    if active.get("status") == "False" and active.get("reason") != "ScalingDisabled":
        yield Finding(
            object=name_object(scaler),
            evidence=f"ScalingActive is False: {active.get('reason', '')} {active.get('message', '')}"[:400],
            cause="the autoscaler has no value of its metric, so the number of pods does not change",
            fix=f"kubectl describe hpa {scaler['metadata']['name']} -n {namespace_of(scaler)}",
        )


def _find_target_in_total(scaler: Object) -> Iterator[Finding]:
    """Find targets for which Kubernetes multiplies the ready pods only, and so removes those that load."""
    for metric in scaler["spec"].get("metrics") or []:
        external = metric.get("external") or {}
        target = external.get("target", {})
        if target.get("type") != "Value":
            continue
        yield Finding(
            object=name_object(scaler),
            evidence=f"metric {external['metric']['name']} has a target of type Value: {target.get('value')}",
            cause="for such a target an HPA counts only the pods that are ready: it removes the ones that still load",
            fix="# give the metric a target per pod: {type: AverageValue, averageValue: ...}; in a ScaledObject"
            " metricType: AverageValue",
            severity=Severity.warning,
        )


def _find_keda_problem(scaler: Object) -> Iterator[Finding]:
    name, namespace = scaler["metadata"]["name"], namespace_of(scaler)
    ready = find_condition(scaler, "Ready")
    if ready.get("status") == "False":
        yield Finding(
            object=name_object(scaler),
            evidence=f"Ready is False: {ready.get('reason', '')} {ready.get('message', '')}"[:400],
            cause="KEDA cannot read a trigger, or the target does not exist",
            fix=f"kubectl describe scaledobject {name} -n {namespace}; kubectl logs -n keda deploy/keda-operator"
            " --tail=50",
        )
    elif not scaler.get("status"):
        yield Finding(
            object=name_object(scaler),
            evidence="it has no status",
            cause="the KEDA operator has not seen it: the operator does not run, or does not watch this namespace",
            fix="kubectl get deployments -A -l app.kubernetes.io/name=keda-operator",
        )


def _is_served(group: str, facts: Facts) -> bool:
    try:
        facts.reader.get_path(f"/apis/{group}")
    except AbsentError:
        return False
    name = f"{group.partition('/')[2]}.{group.partition('/')[0]}"
    found = next((item for item in facts.get_all(API_SERVICES) if item["metadata"]["name"] == name), None)
    return found is None or find_condition(found, "Available").get("status") != "False"


def _resource(scaler: Object) -> str:
    return "hpa" if scaler["kind"] == "HorizontalPodAutoscaler" else "scaledobject"


CHECK = Check(
    title="autoscalers, their targets and their series",
    severity=Severity.critical,
    find=_find,
    reads=(HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, DEPLOYMENTS, API_SERVICES),
)
