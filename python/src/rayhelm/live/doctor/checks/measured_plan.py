"""The plan is the one that the last measurements of `rayhelm probe` give."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from rayhelm.errors import collect
from rayhelm.fleet.measurements import CONFIG_MAP, KEY, FleetMeasurements, parse_measurements
from rayhelm.live.cluster.kinds import CONFIG_MAPS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object
from rayhelm.planner.plan import Plan


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.rendered
    # A tenant may create any ConfigMap in its namespace: figures of hardware are not taken from there.
    found = [
        item
        for item in facts.get_all(CONFIG_MAPS)
        if item["metadata"]["name"] == CONFIG_MAP and namespace_of(item) not in facts.tenant_namespaces
    ]
    return find_in_each(found, partial(_find_changes, plan=facts.rendered.plan, region=facts.region))


def _find_changes(item: Object, plan: Plan, region: str) -> Iterator[Finding]:
    text = item.get("data", {}).get(KEY)
    if text is None:
        return
    source = f"ConfigMap {namespace_of(item)}/{CONFIG_MAP}, data.{KEY}"
    live, problems = collect(lambda: parse_measurements(text, source))
    if not live:
        yield Finding(
            object=name_object(item),
            evidence=problems[0].message,
            cause="the measurements cannot be read: another program wrote them, or not all of them",
            fix="rayhelm probe FLEET    # replaces them",
        )
        return
    yield from _list_stale(item, live, plan, region)
    yield from _compare(item, live, plan, region)


def _list_stale(item: dict[str, Any], live: FleetMeasurements, plan: Plan, region: str) -> Iterator[Finding]:
    for name in live.pools:
        if name not in plan.declared.pools:
            yield Finding(
                object=name_object(item),
                evidence=f"it has pool `{name}`; cluster `{region}` has: {', '.join(_mine(plan, region))}",
                cause="the pool was renamed or removed after its measurement, which is not used",
                fix=f"kubectl delete configmap {CONFIG_MAP} -n {namespace_of(item)}    # then: rayhelm probe FLEET"
                " --setup | kubectl apply -f -, and rayhelm probe FLEET",
            )


def _compare(item: dict[str, Any], live: FleetMeasurements, plan: Plan, region: str) -> Iterator[Finding]:
    from rayhelm.planner.plan_changes import list_shape_changes, plan_measured

    mine, measured = _mine(plan, region), plan.source.measured
    pools = {name: pool for name, pool in live.pools.items() if name in mine}
    others = {name: pool for name, pool in (measured.pools if measured else {}).items() if name not in pools}
    models = measured.models if measured else {}
    now = FleetMeasurements(pools={**others, **pools}, models=models, file=live.file)
    after, problems = collect(lambda: plan_measured(plan, now))
    no_plan = (f"the fleet has no plan: {problem.message}" for problem in problems[:1])
    for change in list_shape_changes(plan, after) if after else no_plan:
        yield Finding(
            object=name_object(item),
            evidence=f"with these measurements, {change}",
            cause="the plan in use is based on other figures of the hardware than the last `rayhelm probe` measured",
            fix=f"kubectl get configmap {CONFIG_MAP} -n {namespace_of(item)} -o yaml > measurements.yaml"
            "    # name it in the fleet file (measurements: measurements.yaml), then: rayhelm diff",
        )


def _mine(plan: Plan, region: str) -> list[str]:
    return [name for name, pool in plan.declared.pools.items() if pool.cluster == region]


CHECK = Check(
    title="plan and measurements",
    severity=Severity.warning,
    find=_find,
    reads=(CONFIG_MAPS,),
    needs_fleet=True,
)
