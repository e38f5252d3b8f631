"""No LimitRange refuses the init container that KubeRay adds to every worker."""

from collections.abc import Iterator

from rayhelm.facts.quantities import parse_quantity
from rayhelm.live.cluster.kinds import LIMIT_RANGES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object

_INJECTED = {"cpu": "200m", "memory": "256Mi"}
"""Limits of `wait-gcs-ready`: fixed in KubeRay, common/pod.go."""


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(LIMIT_RANGES, facts.namespaces), _find_too_high)


def _find_too_high(item: Object) -> Iterator[Finding]:
    for limit in item["spec"]["limits"]:
        for resource, injected in _INJECTED.items():
            least = (limit.get("min") or {}).get(resource)
            if limit["type"] == "Container" and least and parse_quantity(least) > parse_quantity(injected):
                yield Finding(
                    object=name_object(item),
                    evidence=f"min.{resource} is {least}; the init container `wait-gcs-ready` has {injected}",
                    cause="the API server refuses every Ray worker, because KubeRay adds this container with fixed"
                    " limits",
                    fix=f"kubectl edit limitrange {item['metadata']['name']} -n {item['metadata']['namespace']}"
                    f"    # min.{resource}: at most {injected}",
                )


CHECK = Check(
    title="limit ranges",
    severity=Severity.critical,
    find=_find,
    reads=(LIMIT_RANGES,),
)
