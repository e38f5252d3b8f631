"""Every disruption budget works, and none blocks a drain that is under way."""

from collections import defaultdict
from collections.abc import Iterator

from rayhelm.live.cluster.kinds import NODES, POD_DISRUPTION_BUDGETS, PODS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, find_condition, labels_of, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.live.doctor.pods import is_selected


def _find(facts: Facts) -> Iterator[Finding]:
    budgets = facts.get_all(POD_DISRUPTION_BUDGETS, facts.namespaces)
    covered: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for budget in budgets:
        for pod in _select(budget, facts):
            covered[namespace_of(pod), pod["metadata"]["name"]].append(budget)
    yield from find_in_each(budgets, lambda budget: _find_without_effect(budget, facts))
    yield from _find_overlaps(covered)
    yield from _find_blocked_drains(covered, facts)


def _find_without_effect(budget: Object, facts: Facts) -> Iterator[Finding]:
    spec = budget["spec"]
    is_relative = "maxUnavailable" in spec or str(spec.get("minAvailable", "")).endswith("%")
    of_ray = [pod for pod in _select(budget, facts) if labels_of(pod).get("ray.io/is-ray-node") == "yes"]
    failed = find_condition(budget, "DisruptionAllowed")
    if not (is_relative and of_ray) and failed.get("reason") != "SyncFailed":
        return
    field = next((name for name in ("maxUnavailable", "minAvailable") if name in spec), "")
    yield Finding(
        object=name_object(budget),
        evidence=f"{field}: {spec.get(field)}, and it selects {len(of_ray)} pods of Ray",
        cause="it needs a scale subresource, which no kind of KubeRay has: the API server refuses every eviction of"
        " these"
        " pods, so drains hang",
        fix=f"kubectl patch pdb {budget['metadata']['name']} -n {namespace_of(budget)} --type=merge"
        ' -p \'{"spec":{"maxUnavailable":null,"minAvailable":1}}\'',
    )


def _find_overlaps(covered: dict[tuple[str, str], list[Object]]) -> Iterator[Finding]:
    for (namespace, pod), budgets in covered.items():
        if len(budgets) > 1:
            names = sorted(budget["metadata"]["name"] for budget in budgets)
            yield Finding(
                object=f"Pod {namespace}/{pod}",
                evidence=f"{len(names)} budgets select it: {', '.join(names)}",
                cause="the eviction API refuses a pod with more than one budget, so its node cannot be drained",
                fix=f"kubectl delete pdb -n {namespace} {names[0]}    # keep one",
            )


def _find_blocked_drains(covered: dict[tuple[str, str], list[Object]], facts: Facts) -> Iterator[Finding]:
    cordoned = {node["metadata"]["name"] for node in facts.get_all(NODES) if node.get("spec", {}).get("unschedulable")}
    pods = facts.get_all(PODS, facts.namespaces)
    yield from find_in_each(pods, lambda pod: _find_blocked_drain(pod, covered, cordoned))


def _find_blocked_drain(
    pod: Object, covered: dict[tuple[str, str], list[Object]], cordoned: set[str]
) -> Iterator[Finding]:
    node, namespace, name = pod["spec"].get("nodeName", ""), namespace_of(pod), pod["metadata"]["name"]
    for budget in covered.get((namespace, name), []):
        status = budget.get("status", {})
        if node not in cordoned or status.get("disruptionsAllowed", 0) > 0:
            continue
        yield Finding(
            object=f"Node {node}",
            evidence=f"it is cordoned, and {name_object(budget)} allows no disruption"
            f" ({status.get('currentHealthy', 0)} healthy pods, {status.get('desiredHealthy', 0)} needed)",
            cause=f"the drain waits for {name_object(pod)}: the budget has no pod to spare",
            fix=f"kubectl delete pod {name} -n {namespace}"
            "    # interrupts its requests; for none, add a replica first: `replicas` of the model in the fleet"
            " file",
        )


def _select(budget: Object, facts: Facts) -> list[Object]:
    selector = budget["spec"].get("selector") or {}
    return [
        pod
        for pod in facts.get_all(PODS, {namespace_of(budget)})
        if selector
        and is_selected(selector, labels_of(pod))
        and pod.get("status", {}).get("phase") in ("Running", "Pending")
    ]


CHECK = Check(
    title="disruption budgets",
    severity=Severity.warning,
    find=_find,
    reads=(POD_DISRUPTION_BUDGETS, PODS, NODES),
)
