"""The quota of each tenant has room for the plan, and nothing was refused for it."""

from collections import Counter
from collections.abc import Iterator

from rayhelm.cluster.kinds import EVENTS, RESOURCE_QUOTAS
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, Object, namespace_of
from rayhelm.doctor.failures import find_in_each
from rayhelm.doctor.finding import Finding, Severity, name_object
from rayhelm.doctor.plant import Change, Plant
from rayhelm.doctor.quantities import parse_quantity

_RECENT_S = 3600


def _find(facts: Facts) -> Iterator[Finding]:
    yield from _find_too_small(facts)
    yield from find_in_each(facts.get_all(EVENTS, facts.namespaces), lambda event: _find_refused(event, facts))


def _find_refused(event: Object, facts: Facts) -> Iterator[Finding]:
    if "exceeded quota" not in event.get("message", "") or facts.age_s(_time_of(event)) > _RECENT_S:
        return
    involved, namespace = event["involvedObject"], namespace_of(event)
    yield Finding(
        object=f"{involved.get('kind', '')} {namespace}/{involved.get('name', '')}",
        evidence=event["message"][:300],
        cause="the API server refused pods, because the quota of the namespace is used up",
        severity=Severity.critical,
        fix=f"kubectl describe resourcequota -n {namespace}    # then raise `gpus` of the tenant in"
        " the fleet file, or free what others use",
    )


def _find_too_small(facts: Facts) -> Iterator[Finding]:
    if not facts.rendered:
        return
    planned: dict[str, Counter[str]] = {}
    for service in facts.rendered.plan.services.values():
        if service.cluster == facts.region and service.tenant:
            surge = 2 if service.upgrade == "NewCluster" else 1
            sums = planned.setdefault(service.namespace, Counter())
            sums.update({f"requests.{name}": count * surge for name, count in service.gpu_resources.items()})
    for quota in facts.get_all(RESOURCE_QUOTAS, set(planned)):
        hard = quota["spec"].get("hard", {})
        for resource, count in planned[quota["metadata"]["namespace"]].items():
            if resource in hard and parse_quantity(hard[resource]) < count:
                yield Finding(
                    object=name_object(quota),
                    evidence=f"hard {resource} is {hard[resource]}; the plan needs {count}",
                    cause="the quota is smaller than the plan: pods will be refused when a service scales or is"
                    " upgraded",
                    fix=f"kubectl patch resourcequota {quota['metadata']['name']} -n {quota['metadata']['namespace']}"
                    f' --type=merge -p \'{{"spec":{{"hard":{{"{resource}":"{count}"}}}}}}\''
                    "    # better: apply the values of the chart tenant again",
                )


def _time_of(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


CHECK = Check(
    title="quotas",
    severity=Severity.warning,
    find=_find,
    reads=(RESOURCE_QUOTAS, EVENTS),
    plants=(
        Plant(
            "The quota has fewer GPUs than the plan",
            r"hard requests\.nvidia\.com/gpu is 1; the plan needs 2",
            "ResourceQuota lab/lab",
            change=(Change(RESOURCE_QUOTAS, "lab", "lab", {"spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}),),
        ),
        Plant(
            "The API server refused a pod for its quota",
            "exceeded quota",
            "RayCluster lab/planted",
            create=(
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": "planted-quota", "namespace": "lab"},
                    "involvedObject": {"kind": "RayCluster", "namespace": "lab", "name": "planted"},
                    "type": "Warning",
                    "reason": "FailedToCreateWorkerPod",
                    "message": 'pods "w" is forbidden: exceeded quota: lab, requested: requests.nvidia.com/gpu=1',
                },
            ),
        ),
    ),
)
