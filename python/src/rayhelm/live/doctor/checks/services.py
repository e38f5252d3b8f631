"""Every Service of the charts, and the one of each RayService, leads to a pod."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import ENDPOINT_SLICES, SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import PART_OF, Facts, Object, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_START_S = 900
"""Seconds after which a Service without endpoints is not one of an installation that starts."""


def _find(facts: Facts) -> Iterator[Finding]:
    ready: set[tuple[str, str]] = set()
    for item in facts.get_all(ENDPOINT_SLICES, facts.namespaces):
        if any((each.get("conditions") or {}).get("ready") is not False for each in item.get("endpoints") or []):
            ready.add((namespace_of(item), labels_of(item).get("kubernetes.io/service-name", "")))
    services = facts.get_all(SERVICES, facts.namespaces)
    yield from find_in_each(services, lambda service: _find_without_endpoint(service, ready, facts))


def _find_without_endpoint(service: Object, ready: set[tuple[str, str]], facts: Facts) -> Iterator[Finding]:
    name, namespace = service["metadata"]["name"], namespace_of(service)
    selector = service["spec"].get("selector")
    is_young = facts.age_of(service) < _START_S
    if not _is_ours(service) or not selector or (namespace, name) in ready or (is_young and _is_of_ray(service)):
        return
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    yield Finding(
        object=name_object(service),
        evidence="no ready endpoint",
        cause="no pod with the labels of its selector is ready, so every connection is refused",
        fix=f"kubectl get pods -n {namespace} -l '{labels}'",
    )


def _is_ours(service: Object) -> bool:
    return labels_of(service).get(PART_OF[0]) == PART_OF[1] or _is_of_ray(service)


def _is_of_ray(service: Object) -> bool:
    """The Service for requests; those of heads follow their RayCluster."""
    return labels_of(service).get("ray.io/serve") is not None or service["metadata"]["name"].endswith("-serve-svc")


CHECK = Check(
    title="Services",
    severity=Severity.critical,
    find=_find,
    reads=(SERVICES, ENDPOINT_SLICES),
)
