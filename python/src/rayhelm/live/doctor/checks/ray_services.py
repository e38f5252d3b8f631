"""Every RayService is Ready, and so is each of its Serve applications: Ready alone only counts endpoints."""

from collections.abc import Iterator
from typing import Any

from rayhelm.live.cluster.kinds import EVENTS, PODS, RAY_SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.pods import find_pod_problem

_START_S = 900
"""Seconds that a service may take to start before it counts as stuck; the weights may have to be loaded."""
_UPGRADE_S = 3600
_BAD = {"DEPLOY_FAILED", "UNHEALTHY", "NOT_STARTED"}
"""Statuses of applications and deployments of Ray Serve that serve no requests."""


def _find(facts: Facts) -> Iterator[Finding]:
    services = facts.get_all(RAY_SERVICES)
    yield from find_in_each(services, lambda service: _find_not_ready(service, facts))
    yield from find_in_each(services, _find_applications)
    yield from find_in_each(services, lambda service: _find_stuck_upgrade(service, facts))


def _find_not_ready(service: Object, facts: Facts) -> Iterator[Finding]:
    ready = find_condition(service, "Ready")
    if ready.get("status") == "True":
        return
    since = ready.get("lastTransitionTime")
    age = facts.age_s(since) if since else facts.age_of(service)
    name, namespace = service["metadata"]["name"], namespace_of(service)
    cause, fix = _find_cause(service, facts)
    if not cause and age < _START_S and ready.get("reason") != "ValidationFailed":
        return
    yield Finding(
        object=name_object(service),
        evidence=f"Ready is {ready.get('status', 'not set')} for {age / 60:.0f} minutes: {ready.get('reason', '')}"
        f" {ready.get('message', '')}".strip(),
        cause=cause or "no pod of the service reports an error; the operator or Ray reports why in the events",
        fix=fix or f"kubectl describe rayservice {name} -n {namespace}",
    )


def _find_cause(service: Object, facts: Facts) -> tuple[str, str]:
    """Return cause and fix, from the operator's refusal or from the pods; empty if neither reports an error."""
    name, namespace = service["metadata"]["name"], namespace_of(service)
    if find_condition(service, "Ready").get("reason") == "ValidationFailed":
        return (
            "the operator refuses the spec",
            f"kubectl get rayservice {name} -n {namespace} -o yaml    # correct what the evidence names, then apply it",
        )
    if find_condition(service, "Suspended").get("status") == "True":
        return (
            "the service is suspended",
            f'kubectl patch rayservice {name} -n {namespace} --type=merge -p \'{{"spec":{{"suspend":false}}}}\'',
        )
    for pod in facts.get_all(PODS, {namespace}):
        owner = labels_of(pod).get("rayhelm.dev/service", labels_of(pod).get("ray.io/originated-from-cr-name"))
        if owner == name and (problem := find_pod_problem(pod)):
            return f"{problem.cause} ({problem.evidence})", problem.fix
    for event in facts.get_all(EVENTS, {namespace}):
        involved = event.get("involvedObject", {})
        if (
            event.get("type") == "Warning"
            and involved.get("name", "").startswith(name)
            and "quota" in event.get("message", "")
        ):
            return event["message"][:200], f"kubectl describe resourcequota -n {namespace}"
    return "", ""


def _find_applications(service: Object) -> Iterator[Finding]:
    name, namespace = service["metadata"]["name"], namespace_of(service)
    applications = service.get("status", {}).get("activeServiceStatus", {}).get("applicationStatuses") or {}
    for application, state in applications.items():
        deployments: dict[str, Any] = state.get("serveDeploymentStatuses") or {}
        bad = {key: each for key, each in deployments.items() if each.get("status") in _BAD}
        if state.get("status") not in _BAD and not bad:
            continue
        messages = [f"{key} is {each['status']}: {each.get('message', '')}" for key, each in bad.items()]
        ready = find_condition(service, "Ready").get("status")
        evidence = f"application {application} is {state.get('status')}: {state.get('message', '')}"
        f" {'; '.join(messages)}"
        yield Finding(
            object=name_object(service),
            evidence=evidence.strip()[:500],
            cause="Ray Serve cannot run this application"
            + (", although the RayService is Ready: that condition only counts endpoints" if ready == "True" else ""),
            fix=f"kubectl logs -n {namespace} -l ray.io/node-type=worker,rayhelm.dev/service={name} --tail=200"
            "    # the replica's traceback: out of memory, missing weights, or wrong engine arguments",
        )


def _find_stuck_upgrade(service: Object, facts: Facts) -> Iterator[Finding]:
    upgrade = find_condition(service, "UpgradeInProgress")
    age = facts.age_s(upgrade.get("lastTransitionTime", ""))
    if upgrade.get("status") != "True" or age < _UPGRADE_S:
        return
    cause, fix = _find_cause(service, facts)
    pending = service["status"].get("pendingServiceStatus", {}).get("rayClusterName", "")
    yield Finding(
        object=name_object(service),
        evidence=f"UpgradeInProgress for {age / 60:.0f} minutes; the new RayCluster is {pending or 'not created'}",
        cause=cause or "the new RayCluster does not become ready, so the old one keeps serving the old spec",
        severity=Severity.warning,
        fix=fix or f"kubectl describe raycluster {pending} -n {namespace_of(service)}",
    )


CHECK = Check(
    title="RayServices and their applications",
    severity=Severity.critical,
    find=_find,
    reads=(RAY_SERVICES, PODS, EVENTS),
)
