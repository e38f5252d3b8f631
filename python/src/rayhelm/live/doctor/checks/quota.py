"""The quota of each tenant has room for the plan, and nothing was refused for it."""

from collections import Counter
from collections.abc import Iterator

from rayhelm.facts.quantities import parse_quantity
from rayhelm.live.cluster.kinds import DEVICE_CLASSES, EVENTS, RESOURCE_QUOTAS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_RECENT_S = 3600
_CLAIMS = "count/resourceclaims.resource.k8s.io"
_RAISE = "    # then raise `gpus` of the tenant in the fleet file, or free what others use"
_RAISE_CLAIMS = "    # then apply the values of the chart tenant again, without quota.objects.resourceClaims"


def _find(facts: Facts) -> Iterator[Finding]:
    yield from _find_too_small(facts)
    yield from _find_few_claims(facts)
    yield from find_in_each(facts.get_all(EVENTS, facts.namespaces), lambda event: _find_refused(event, facts))


def _find_refused(event: Object, facts: Facts) -> Iterator[Finding]:
    if "exceeded quota" not in event.get("message", "") or facts.age_of_event(event) > _RECENT_S:
        return
    involved, namespace = event["involvedObject"], namespace_of(event)
    cause, fix = "the API server refused pods, because the quota of the namespace is used up", _RAISE
    if _CLAIMS in event["message"]:
        cause = (
            "the scheduler creates a ResourceClaim for the GPUs of this pod, which its quota refuses: it stays Pending"
        )
        fix = _RAISE_CLAIMS
    yield Finding(
        object=f"{involved.get('kind', '')} {namespace}/{involved.get('name', '')}",
        evidence=event["message"][:300],
        cause=cause,
        severity=Severity.critical,
        fix=f"kubectl describe resourcequota -n {namespace}{fix}",
    )


def _find_few_claims(facts: Facts) -> Iterator[Finding]:
    """Find quotas with fewer ResourceClaims than GPUs that device classes serve: the scheduler creates a claim for each
    pod with such GPUs."""
    classes = {
        resource: item["metadata"]["name"]
        for item in facts.get_all(DEVICE_CLASSES)
        if (resource := item["spec"].get("extendedResourceName"))
    }
    quotas = facts.get_all(RESOURCE_QUOTAS, facts.namespaces)
    for quota in quotas:
        limit = quota["spec"].get("hard", {}).get(_CLAIMS)
        beside = [each["spec"].get("hard", {}) for each in quotas if namespace_of(each) == namespace_of(quota)]
        for resource, name in classes.items():
            gpus = max((parse_quantity(hard.get(f"requests.{resource}", 0)) for hard in beside), default=0)
            if limit is None or parse_quantity(limit) >= gpus:
                continue
            yield Finding(
                object=name_object(quota),
                evidence=f"hard {_CLAIMS} is {limit}; device class {name} serves {resource}, of which pods of the"
                f" namespace may have {gpus:g}",
                cause="the scheduler creates a ResourceClaim for each pod with such GPUs: further pods stay Pending",
                fix=f"kubectl patch resourcequota {quota['metadata']['name']} -n {namespace_of(quota)} --type=merge"
                f' -p \'{{"spec":{{"hard":{{"{_CLAIMS}":"{gpus:g}"}}}}}}\'{_RAISE_CLAIMS}',
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


CHECK = Check(
    title="quotas",
    severity=Severity.warning,
    find=_find,
    reads=(RESOURCE_QUOTAS, EVENTS, DEVICE_CLASSES),
)
