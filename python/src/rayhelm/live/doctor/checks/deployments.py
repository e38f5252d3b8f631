"""Every Deployment of the charts, and each in their namespaces, has its pods; a pod that has not says why."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import DEPLOYMENTS, PODS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.pods import PodProblem, find_pod_problem, is_selected


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(DEPLOYMENTS, facts.namespaces), lambda item: _find_missing_pods(item, facts))


def _find_missing_pods(deployment: Object, facts: Facts) -> Iterator[Finding]:
    wanted = deployment["spec"].get("replicas", 1)
    available = deployment.get("status", {}).get("availableReplicas", 0)
    pods = facts.get_all(PODS, {namespace_of(deployment)})
    mine = [pod for pod in pods if is_selected(deployment["spec"]["selector"], labels_of(pod))]
    problems = [problem for pod in mine if (problem := find_pod_problem(pod))]
    progress, failure = find_condition(deployment, "Progressing"), find_condition(deployment, "ReplicaFailure")
    is_stuck = progress.get("reason") == "ProgressDeadlineExceeded" or failure.get("status") == "True"
    if (available >= wanted and not is_stuck) or not (problems or is_stuck):
        return
    found = problems[0] if problems else None
    name, namespace = deployment["metadata"]["name"], namespace_of(deployment)
    yield Finding(
        object=name_object(deployment),
        evidence=f"{available} of {wanted} replicas are available; {found.evidence if found else ''}"
        f" {failure.get('message', '') if is_stuck else ''}".strip("; ")[:500],
        cause=_choose_cause(found, failure),
        severity=Severity.warning if available else None,
        fix=found.fix if found else f"kubectl describe deployment {name} -n {namespace}",
    )


def _choose_cause(found: PodProblem | None, failure: Object) -> str:
    if found:
        return found.cause
    if failure.get("status") == "True":
        return "the API server refuses its pods: Pod Security, a quota or an admission policy; the evidence has its"
        " words"
    return "the rollout does not end, and no pod reports an error"


CHECK = Check(
    title="Deployments and their pods",
    severity=Severity.critical,
    find=_find,
    reads=(DEPLOYMENTS, PODS),
)
