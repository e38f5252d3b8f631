"""Every RayCluster has its head and the workers that it wants."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import PODS, RAY_CLUSTERS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.pods import find_pod_problem

_START_S = 900
"""Seconds that a cluster may take to start all pods."""


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(RAY_CLUSTERS), lambda cluster: _find_in_cluster(cluster, facts))


def _find_in_cluster(cluster: Object, facts: Facts) -> Iterator[Finding]:
    if cluster["metadata"].get("deletionTimestamp"):
        return
    status = cluster.get("status", {})
    if cluster["spec"].get("suspend") or find_condition(cluster, "RayClusterSuspended").get("status") == "True":
        yield Finding(
            object=name_object(cluster),
            evidence="spec.suspend is true",
            cause="the cluster is suspended: it has no pods, and with KubeRay 1.6 its RayService keeps saying Ready",
            fix=_command("patch", cluster, '--type=merge -p \'{"spec":{"suspend":false}}\''),
        )
        return
    problems = _list_problems(cluster, facts)
    replica_failure = find_condition(cluster, "ReplicaFailure")
    if replica_failure.get("status") == "True":
        yield Finding(
            object=name_object(cluster),
            evidence=f"ReplicaFailure: {replica_failure.get('reason', '')} {replica_failure.get('message', '')}"[:400],
            cause="the API server refuses a pod of the cluster: a quota, a policy or Pod Security",
            fix=_command("describe", cluster),
        )
    wanted, ready = status.get("desiredWorkerReplicas", 0), status.get("readyWorkerReplicas", 0)
    is_late = facts.age_of(cluster) > _START_S
    head = find_condition(cluster, "HeadPodReady")
    if head.get("status") == "False" and (is_late or problems):
        yield _describe(cluster, f"HeadPodReady is False: {head.get('message') or head.get('reason', '')}", problems)
    elif ready < wanted and (is_late or problems):
        yield _describe(
            cluster, f"{ready} of {wanted} workers are ready", problems, Severity.warning if ready else None
        )


def _list_problems(cluster: Object, facts: Facts) -> list[tuple[str, str]]:
    pods = facts.get_all(PODS, {namespace_of(cluster)})
    mine = [pod for pod in pods if labels_of(pod).get("ray.io/cluster") == cluster["metadata"]["name"]]
    found = [problem for pod in mine if (problem := find_pod_problem(pod))]
    return [(f"{each.cause} ({each.evidence})", each.fix) for each in found]


def _describe(
    cluster: Object, evidence: str, problems: list[tuple[str, str]], severity: Severity | None = None
) -> Finding:
    cause, fix = problems[0] if problems else ("no pod reports an error", _command("describe", cluster))
    return Finding(object=name_object(cluster), evidence=evidence, cause=cause, fix=fix, severity=severity)


def _command(verb: str, cluster: Object, rest: str = "") -> str:
    return f"kubectl {verb} raycluster {cluster['metadata']['name']} -n {namespace_of(cluster)} {rest}".rstrip()


CHECK = Check(
    title="RayClusters",
    severity=Severity.critical,
    find=_find,
    reads=(RAY_CLUSTERS, PODS),
)
