"""The API services that others provide answer: without them HPAs have no series, and namespaces cannot be deleted."""

from collections.abc import Iterator

from rayhelm.live.cluster.kinds import API_SERVICES
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object


def _find(facts: Facts) -> Iterator[Finding]:
    return find_in_each(facts.get_all(API_SERVICES), _find_unavailable)


def _find_unavailable(item: Object) -> Iterator[Finding]:
    service, available = item["spec"].get("service"), find_condition(item, "Available")
    if service and available.get("status") == "False":
        yield Finding(
            object=name_object(item),
            evidence=f"Available is False: {available.get('reason', '')} {available.get('message', '')}"[:300],
            cause=f"Service {service['namespace']}/{service['name']} does not answer the API server: autoscalers"
            " that need"
            " it have no series, and the deletion of every namespace hangs",
            fix=f"kubectl get pods,endpointslices -n {service['namespace']}    # or, if it was uninstalled:"
            f" kubectl delete apiservice {item['metadata']['name']}",
        )


CHECK = Check(
    title="API services",
    severity=Severity.critical,
    find=_find,
    reads=(API_SERVICES,),
)
