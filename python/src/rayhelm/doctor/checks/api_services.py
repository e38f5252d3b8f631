"""The API services that others provide answer: without them HPAs have no series, and namespaces cannot be deleted."""

from collections.abc import Iterator

from rayhelm.cluster.kinds import API_SERVICES
from rayhelm.doctor.check import Check
from rayhelm.doctor.facts import Facts, Object, find_condition
from rayhelm.doctor.failures import find_in_each
from rayhelm.doctor.finding import Finding, Severity, name_object
from rayhelm.doctor.plant import Plant


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
    plants=(
        Plant(
            "The metrics API has no Service behind it",
            "Available is False",
            "APIService v1beta1.external.metrics.k8s.io",
            create=(
                {
                    "apiVersion": "apiregistration.k8s.io/v1",
                    "kind": "APIService",
                    "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
                    "spec": {
                        "group": "external.metrics.k8s.io",
                        "version": "v1beta1",
                        "service": {"namespace": "gateway", "name": "gone"},
                    },
                    "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]},
                },
            ),
            is_only_recorded=True,
        ),
    ),
)
