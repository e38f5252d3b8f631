"""The weights are there: no download Job failed or hangs, and every claim is bound."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import EVENTS, JOBS, PERSISTENT_VOLUME_CLAIMS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import PART_OF, Facts, Object, find_condition, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_LONG_S = 4 * 3600
_RECENT_S = 3600
_BIND_S = 300
"""Seconds after which a claim that is not bound is stuck; a driver creates a volume in a minute or two."""


def _find(facts: Facts) -> Iterator[Finding]:
    yield from find_in_each(facts.get_all(JOBS, facts.namespaces), lambda job: _find_bad_download(job, facts))
    claims = facts.get_all(PERSISTENT_VOLUME_CLAIMS, facts.namespaces)
    yield from find_in_each(claims, lambda claim: _find_unbound(claim, facts))
    yield from find_in_each(facts.get_all(EVENTS, facts.namespaces), lambda event: _find_unattached(event, facts))


def _find_bad_download(job: Object, facts: Facts) -> Iterator[Finding]:
    name, namespace = job["metadata"]["name"], namespace_of(job)
    failed, done = find_condition(job, "Failed"), find_condition(job, "Complete")
    is_download = labels_of(job["spec"]["template"]).get("rayhelm.dev/role") == "download"
    if failed.get("status") == "True" and (is_download or labels_of(job).get(PART_OF[0]) == PART_OF[1]):
        yield Finding(
            object=name_object(job),
            evidence=f"Failed: {failed.get('reason', '')} {failed.get('message', '')}".strip(),
            cause="the weights were not downloaded, so new workers wait for them forever: the hub or"
            " bucket refused the credentials, the network policy blocks it, the content is not of the revision, or"
            " the volume is full"
            if is_download
            else "the Job gave up",
            fix=f"kubectl logs -n {namespace} job/{name} --all-containers --tail=50"
            f"    # then: kubectl delete job {name} -n {namespace}, and apply the release again",
        )
    elif is_download and done.get("status") != "True" and facts.age_of(job) > _LONG_S:
        yield Finding(
            object=name_object(job),
            evidence=f"created {facts.age_s(job['metadata']['creationTimestamp']) / 3600:.0f} hours ago, not complete",
            cause="the download of the weights hangs or is very slow",
            severity=Severity.warning,
            fix=f"kubectl logs -n {namespace} job/{name} --all-containers --tail=50",
        )


def _find_unbound(claim: Object, facts: Facts) -> Iterator[Finding]:
    phase = claim.get("status", {}).get("phase", "Pending")
    if phase == "Bound" or (phase == "Pending" and facts.age_of(claim) < _BIND_S):
        return
    yield Finding(
        object=name_object(claim),
        evidence=f"phase {phase}, StorageClass {claim['spec'].get('storageClassName') or 'default'}, access"
        f" {','.join(claim['spec'].get('accessModes', []))}",
        cause="no volume is bound to the claim: the StorageClass does not exist or its driver cannot create such a"
        " volume (block storage has no ReadWriteMany), and pods that mount it wait"
        if phase == "Pending"
        else "the volume behind the claim is gone",
        fix=f"kubectl describe pvc {claim['metadata']['name']} -n {namespace_of(claim)}; kubectl get storageclass"
        "    # then name one with this access mode: clusters.NAME.weights.storageClass",
    )


def _find_unattached(event: Object, facts: Facts) -> Iterator[Finding]:
    message, involved = event.get("message", ""), event["involvedObject"]
    if "Multi-Attach error" not in message or facts.age_of_event(event) > _RECENT_S:
        return
    yield Finding(
        object=f"{involved.get('kind', '')} {namespace_of(event)}/{involved.get('name', '')}",
        evidence=message[:300],
        cause="the claim is ReadWriteOnce, and a pod on another node has its volume: this pod waits for its end",
        fix=f"kubectl get pods -n {namespace_of(event)} -o wide    # pods on several nodes need ReadWriteMany:"
        " clusters.NAME.weights in the fleet file, and a new claim",
    )


CHECK = Check(
    title="weights",
    severity=Severity.critical,
    find=_find,
    reads=(JOBS, PERSISTENT_VOLUME_CLAIMS, EVENTS),
)
