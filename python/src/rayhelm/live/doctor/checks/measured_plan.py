"""The plan is the one that the last measurements of `rayhelm probe` give."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from rayhelm.errors import collect
from rayhelm.fleet.load import LoadedFleet
from rayhelm.fleet.measurements import CONFIG_MAP, KEY, FleetMeasurements, parse_measurements
from rayhelm.live.cluster.kinds import CONFIG_MAPS
from rayhelm.live.doctor.check import Check
from rayhelm.live.doctor.facts import Facts, Object, namespace_of
from rayhelm.live.doctor.failures import find_in_each
from rayhelm.live.doctor.finding import Finding, Severity, name_object


def _find(facts: Facts) -> Iterator[Finding]:
    assert facts.rendered
    # A tenant may create any ConfigMap in its namespace: figures of hardware are not taken from there.
    found = [
        item
        for item in facts.get_all(CONFIG_MAPS)
        if item["metadata"]["name"] == CONFIG_MAP and namespace_of(item) not in facts.tenant_namespaces
    ]
    return find_in_each(found, partial(_find_changes, loaded=facts.rendered.loaded, region=facts.region))


def _find_changes(item: Object, loaded: LoadedFleet, region: str) -> Iterator[Finding]:
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
    yield from _list_stale(item, live, loaded, region)
    yield from _compare(item, live, loaded, region)


def _list_stale(item: dict[str, Any], live: FleetMeasurements, loaded: LoadedFleet, region: str) -> Iterator[Finding]:
    for name in live.pools:
        if name not in loaded.fleet.pools:
            yield Finding(
                object=name_object(item),
                evidence=f"it has pool `{name}`; cluster `{region}` has: {', '.join(_mine(loaded, region))}",
                cause="the pool was renamed or removed after its measurement, which is not used",
                fix=f"kubectl delete configmap {CONFIG_MAP} -n {namespace_of(item)}    # then: rayhelm probe FLEET"
                " --setup | kubectl apply -f -, and rayhelm probe FLEET",
            )


def _compare(item: dict[str, Any], live: FleetMeasurements, loaded: LoadedFleet, region: str) -> Iterator[Finding]:
    from rayhelm.planner.plan_changes import list_measured_changes

    mine = _mine(loaded, region)
    pools = {name: pool for name, pool in live.pools.items() if name in mine}
    others = {
        name: pool for name, pool in (loaded.measured.pools if loaded.measured else {}).items() if name not in pools
    }
    models = loaded.measured.models if loaded.measured else {}
    now = FleetMeasurements(pools={**others, **pools}, models=models, file=live.file)
    changes, problems = collect(lambda: list(list_measured_changes(loaded, loaded.measured, now)))
    for change in (*(changes or ()), *(f"the fleet has no plan: {problem.message}" for problem in problems[:1])):
        yield Finding(
            object=name_object(item),
            evidence=f"with these measurements, {change}",
            cause="the plan in use is based on other figures of the hardware than the last `rayhelm probe` measured",
            fix=f"kubectl get configmap {CONFIG_MAP} -n {namespace_of(item)} -o yaml > measurements.yaml"
            "    # name it in the fleet file (measurements: measurements.yaml), then: rayhelm diff",
        )


def _mine(loaded: LoadedFleet, region: str) -> list[str]:
    return [name for name, pool in loaded.fleet.pools.items() if pool.cluster == region]


CHECK = Check(
    title="plan and measurements",
    severity=Severity.warning,
    find=_find,
    reads=(CONFIG_MAPS,),
    needs_fleet=True,
)
