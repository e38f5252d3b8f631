"""Compare two sides: what happens to each release."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rayhelm.check.diff.access import list_access_changes
from rayhelm.check.diff.advice import QUEUE_LABEL, advise_fleet, advise_release
from rayhelm.check.diff.gpus import GpuCount, count_gpus, list_gpu_needs, list_quota_needs, sum_after, sum_meanwhile
from rayhelm.check.diff.immutable import list_refused_changes
from rayhelm.check.diff.kept import list_kept_objects
from rayhelm.check.diff.measured import explain_measurements
from rayhelm.check.diff.report import Danger, DiffReport, ModelReport, ReleaseEffect, ReleaseReport
from rayhelm.check.diff.requests import describe_requests, estimate_seconds
from rayhelm.check.diff.side import RAY_SERVICE, ReleaseKey, Side, SideRelease
from rayhelm.check.diff.waves import GpuChange, list_limits, order_waves
from rayhelm.check.forecast.differences import list_changes
from rayhelm.check.forecast.serve_config import ServeChange, compare_serve_configs, list_replicas, parse_serve_config
from rayhelm.check.forecast.service import Forecast, LiveService, Surroundings, forecast_service, install
from rayhelm.errors import collect
from rayhelm.facts.versions import versions
from rayhelm.planner.plan import ModelPlan

__all__ = ["compare_sides"]

Object = dict[str, Any]
_EFFECTS: Mapping[str, ReleaseEffect] = {
    "in place": "in place",
    "new cluster": "new cluster",
    "new cluster, waiting": "new cluster, waiting",
    "held back": "held back",
    "suspended": "suspended",
    "invalid": "invalid",
    "refused": "refused",
}
"""Effects of the forecast that are effects of the release."""
_LIVE_MAPS = "each pod takes over the new limits and weights when its kubelet has written them, by default within 90 s"
_LOADING = ("new cluster", "new cluster, waiting")


@dataclass
class _Totals:
    """Sums over all releases."""

    gpus: dict[str, GpuCount] = field(
        default_factory=lambda: {name: Counter() for name in ("before", "meanwhile", "after")}
    )
    by_namespace: dict[tuple[str, str], GpuCount] = field(default_factory=lambda: defaultdict(Counter))
    changes: list[GpuChange] = field(default_factory=list)
    """Of all RayServices, also of those that stay as they are."""


def compare_sides(old: Side, new: Side) -> DiffReport:
    """Return what replacing `old` by `new` does. Raises FleetError if values cannot be rendered at all."""
    old, new = _unify_clusters(old, new), _unify_clusters(new, old)
    totals, reports = _Totals(), []
    keys = dict.fromkeys((*old.releases, *new.releases))
    if old.rendered is None and not old.fleet:  # a live cluster has RayServices only
        keys = {key: None for key in keys if key[1] == RAY_SERVICE}
    for key in keys:
        reports.append(_compare_release(key, old, new, totals))
    changed = tuple(each for each in reports if each.effect != "nothing")
    gpus = tuple(list_gpu_needs(totals.gpus, new, old))
    quotas = tuple(list_quota_needs(totals.by_namespace, new))
    is_short = any(each.is_short for each in gpus) or any(each.is_short for each in quotas)
    waves = order_waves(totals.changes, list_limits(gpus, quotas)) if is_short else ()
    advice = tuple(advise_fleet(gpus, quotas, waves))
    dangers = {danger for each in changed for danger in each.dangers} | ({"no-room"} if is_short else set())
    return DiffReport(
        old=old.label,
        new=new.label,
        releases=changed,
        unchanged=len(reports) - len(changed),
        gpus=gpus,
        quotas=quotas,
        waves=waves,
        price_before=old.rendered.plan.price_per_hour if old.rendered else None,
        price_after=new.rendered.plan.price_per_hour if new.rendered else None,
        dangers=tuple(sorted(dangers)),
        advice=advice,
        notes=tuple(dict.fromkeys((*old.notes, *new.notes, *_list_notes(old, new), *explain_measurements(old, new)))),
    )


def _unify_clusters(side: Side, other: Side) -> Side:
    """Name the cluster of a side that does not know it, if the other side has one cluster."""
    names = {key[0] for key in other.releases} | set(other.kuberay)
    if {key[0] for key in side.releases} != {""} or len(names) != 1:
        return side
    (name,) = names
    releases = {(name, *key[1:]): replace(release, cluster=name) for key, release in side.releases.items()}
    return replace(side, releases=releases, kuberay={name: side.kuberay.get("", "")})


def _list_notes(old: Side, new: Side) -> Iterator[str]:
    if old.fleet and new.fleet and old.fleet != new.fleet:
        yield f"OLD is fleet `{old.fleet}` and NEW is fleet `{new.fleet}`: are these two states of one fleet?"
    for cluster, version in new.kuberay.items():
        before = old.kuberay.get(cluster, version)
        if before != version:
            where = f" of cluster `{cluster}`" if len(new.kuberay) > 1 else ""
            yield (
                f"the KubeRay operator{where} changes from {before} to {version}: when it starts, it overwrites every"
                " RayCluster in place. Upgrade its CRDs first, and change nothing else in the same merge"
            )


def _compare_release(key: ReleaseKey, old: Side, new: Side, totals: _Totals) -> ReleaseReport:
    before, after = old.releases.get(key), new.releases.get(key)
    release = after or before
    assert release
    kept = {"cluster": release.cluster, "chart": release.chart, "release": release.name, "namespace": release.namespace}
    if before and after and _is_same(before, after, key, old, new):
        if release.chart == RAY_SERVICE:
            count = count_gpus(after, after.service, new, old)
            _add(totals, release, "nothing", count, count)
        return ReleaseReport(**kept, effect="nothing")
    listed, problems = collect(lambda: (_list_objects(before), _list_objects(after)))
    if not listed:
        reasons = tuple(problem.message for problem in problems)
        return ReleaseReport(**kept, effect="refused", reasons=reasons, dangers=("refused",))
    first, last = listed
    if refused := tuple(list_refused_changes(first, last)):
        if before and release.chart == RAY_SERVICE:
            count = count_gpus(before, before.service, old, new)
            _add(totals, release, "refused", count, count)
        return ReleaseReport(**kept, effect="refused", reasons=refused, dangers=("refused",))
    objects = _compare_objects(first, last)
    gone = [item for item in first if _name_object(item) not in {_name_object(other) for other in last}]
    stay = tuple(list_kept_objects(gone, release.namespace, is_uninstalled=after is None))
    in_full = {each.object for each in stay if len(each.kept_by) > 1}
    objects["pruned_objects"] = tuple(name for name in objects["pruned_objects"] if name not in in_full)
    if release.chart != RAY_SERVICE:
        effect: ReleaseEffect = "install" if not before else "uninstall" if not after else "objects only"
        if not any(objects.values()) and not stay:
            effect = "nothing"
        access: tuple[str, ...] = ()
        if release.chart == "gateway" and before and after and before.values and after.values:
            access = tuple(list_access_changes(before.values, after.values))
        requests = _describe_gateway(release, effect, first, last)
        return ReleaseReport(**kept, effect=effect, reasons=access, **objects, kept_objects=stay, requests=requests)
    report = _compare_service(kept, before, after, old, new, totals, objects)
    return report.model_copy(update={"kept_objects": stay, **_describe_move(report, new)})


def _describe_move(report: ReleaseReport, new: Side) -> dict[str, tuple[str, ...]]:
    """Return what is special of a service that another tenant takes over: it is another release, in its namespace."""
    for cluster, chart, namespace, name in new.releases:
        is_same = (cluster, chart, name) == (report.cluster, report.chart, report.release)
        if report.effect == "uninstall" and is_same and namespace != report.namespace:
            moved = f"it moves to namespace {namespace}, where its models are loaded again, also their weights"
            advice = (
                f"add a second model with the `servedAs` of the old one in a service of the new tenant, wait until it"
                f" serves, and remove {name} from namespace {report.namespace} then"
            )
            return {"reasons": (*report.reasons, moved), "advice": (advice,)}
    return {}


def _is_same(before: SideRelease, after: SideRelease, key: ReleaseKey, old: Side, new: Side) -> bool:
    is_operator_kept = old.kuberay.get(key[0]) == new.kuberay.get(key[0])
    has_values = before.values is not None and before.values == after.values
    return has_values and is_operator_kept and before.kubernetes in ("", after.kubernetes)


def _list_objects(release: SideRelease | None) -> list[Object]:
    return release.objects if release and release.values is not None else []


def _compare_objects(before: list[Object], after: list[Object]) -> dict[str, tuple[str, ...]]:
    first, last = ({_name_object(item): item for item in items} for items in (before, after))
    if not before:  # unknown on a live cluster, and everything in an installation
        return {"added_objects": (), "changed_objects": (), "pruned_objects": ()}
    changed = [name for name in first if name in last and list_changes(first[name], last[name])]
    return {
        "added_objects": tuple(name for name in last if name not in first),
        "changed_objects": tuple(changed),
        "pruned_objects": tuple(name for name in first if name not in last),
    }


def _name_object(item: Mapping[str, Any]) -> str:
    return f"{item['kind']} {item['metadata']['name']}"


def _compare_service(
    kept: dict[str, str],
    before: SideRelease | None,
    after: SideRelease | None,
    old: Side,
    new: Side,
    totals: _Totals,
    objects: dict[str, tuple[str, ...]],
) -> ReleaseReport:
    first, last = (each.service if each else None for each in (before, after))
    release = after or before
    assert release
    forecast = _forecast(before, first, last, old, new, release)
    change = _compare_serve(first, last)
    effect = _pick_effect(before, after, forecast, change, objects)
    models = tuple(_list_models(effect, change, release.name, first, last, old, new))
    replicas = list_replicas(_read_config(first))
    requests, is_risky = describe_requests(effect, models, replicas, _find_shared_names(models, release, old, new))
    delay = float((last or {}).get("spec", {}).get("rayClusterDeletionDelaySeconds", 60))
    seconds, basis = estimate_seconds(effect, models, replicas, delay)
    counts = count_gpus(before, first, old, new), count_gpus(after, last, new, old)
    _add(totals, release, effect, *counts)
    report = ReleaseReport(
        **kept,
        effect=effect,
        reasons=(*forecast.reasons, *(f"the API server drops {path}" for path in forecast.dropped)),
        changed=forecast.changes,
        at_next_switch=forecast.at_next_switch,
        **objects,
        models=models,
        requests=requests,
        seconds=seconds,
        time_basis=basis,
        price_before=_sum_price(old, release.name) if before else 0,
        price_after=_sum_price(new, release.name) if after else 0,
        dangers=tuple(_list_dangers(effect, forecast, is_risky=is_risky)),
    )
    strategy = (last or {}).get("spec", {}).get("upgradeStrategy", {}).get("type", "NewCluster")
    is_queued = QUEUE_LABEL in ((last or {}).get("metadata", {}).get("labels") or {})
    return report.model_copy(update={"advice": tuple(advise_release(report, strategy, is_queued=is_queued))})


def _forecast(
    before: SideRelease | None, first: Object | None, last: Object | None, old: Side, new: Side, release: SideRelease
) -> Forecast:
    known = versions().kuberay.default
    version = new.kuberay.get(release.cluster) or old.kuberay.get(release.cluster) or known
    earlier = old.kuberay.get(release.cluster) or version
    if last is None or first is None:
        found, _ = (
            forecast_service(LiveService({"spec": {}}, None), last, Surroundings(version))
            if last
            else (Forecast("nothing"), None)
        )
        return found
    assert before
    live = before.live or install(first, earlier)
    return forecast_service(live, last, Surroundings(version, restarts=earlier != version))[0]


def _pick_effect(
    before: SideRelease | None,
    after: SideRelease | None,
    forecast: Forecast,
    change: ServeChange,
    objects: Mapping[str, tuple[str, ...]],
) -> ReleaseEffect:
    if after is None:
        return "uninstall"
    if forecast.effect in ("refused", "invalid", "suspended"):
        return _EFFECTS[forecast.effect]
    if before is None:
        return "install"
    if forecast.effect in _EFFECTS:
        return _EFFECTS[forecast.effect]
    if forecast.config_changes and (change.restarted or change.added or change.removed or not change.scaled):
        return "serve config"
    if forecast.config_changes:
        return "replicas"
    if forecast.at_next_switch:
        return "bounds at next switch"
    return "objects only" if any(objects.values()) or forecast.effect == "beside" else "nothing"


def _compare_serve(first: Object | None, last: Object | None) -> ServeChange:
    return compare_serve_configs(_read_config(first), _read_config(last))


def _read_config(service: Object | None) -> dict[str, Any]:
    return parse_serve_config(str((service or {}).get("spec", {}).get("serveConfigV2", "")))


def _list_models(
    effect: ReleaseEffect,
    change: ServeChange,
    service: str,
    first: Object | None,
    last: Object | None,
    old: Side,
    new: Side,
) -> Iterator[ModelReport]:
    if effect in ("refused", "invalid"):
        return
    plans = {**_index_plans(old, service), **_index_plans(new, service)}
    there = list_replicas(_read_config(last))
    for model in sorted(list_replicas(_read_config(first)).keys() | there.keys()):
        kind = _classify_model(model, effect, change, is_there=model in there)
        if kind:
            plan = plans.get(model)
            traffic = _find_traffic(plan, new) or _find_traffic(plan, old)
            seconds = plan.scaling.load_s if plan and kind in ("loaded", "restarted", "added") else None
            yield ModelReport(model=model, change=kind, load_seconds=seconds, requests_per_second=traffic)


def _find_shared_names(models: Sequence[ModelReport], release: SideRelease, old: Side, new: Side) -> dict[str, str]:
    """Return the name that clients send, by removed model, where another service of the cluster serves it before and
    after the change."""
    kept = set[str]()
    if old.rendered and new.rendered:
        kept = _list_names_elsewhere(old, release) & _list_names_elsewhere(new, release)
    plans = _index_plans(old, release.name)
    removed = [each.model for each in models if each.change == "removed"]
    return {model: plans[model].served_as for model in removed if model in plans and plans[model].served_as in kept}


def _list_names_elsewhere(side: Side, release: SideRelease) -> set[str]:
    """Return the names that clients send of all models in other services of the cluster of a release."""
    assert side.rendered
    names = [each.name for each in side.releases.values() if each.cluster == release.cluster and each != release]
    return {plan.served_as for name in names if name != release.name for plan in side.rendered.plan.of_service(name)}


def _classify_model(model: str, effect: ReleaseEffect, change: ServeChange, *, is_there: bool) -> Any:
    if not is_there or effect in ("uninstall", "suspended"):
        return "removed"
    if model in change.added:
        return "added"
    if effect in _LOADING:
        return "loaded"
    if model in change.all_restarted:
        return "restarted"
    return "scaled" if model in change.scaled else None


def _index_plans(side: Side, service: str) -> dict[str, ModelPlan]:
    if side.rendered is None:
        return {}
    found = side.rendered.plan.of_service(service)
    return {name: plan for plan in found for name in (plan.application, plan.served_as, plan.model)}


def _find_traffic(plan: ModelPlan | None, side: Side) -> float | None:
    model = side.rendered.plan.declared.models.get(plan.model) if plan and side.rendered else None
    return model.traffic.requests_per_second * plan.load_share if plan and model and model.traffic else None


def _sum_price(side: Side, service: str) -> float | None:
    plans = side.rendered.plan.of_service(service) if side.rendered else ()
    prices = [plan.price_per_hour for plan in plans]
    return sum(price for price in prices if price is not None) if prices and None not in prices else None


def _list_dangers(effect: ReleaseEffect, forecast: Forecast, *, is_risky: bool) -> Iterator[Danger]:
    if effect in ("new cluster", "new cluster, waiting"):
        yield "new-cluster"
    if effect == "new cluster, waiting":
        yield "held-back"
    if effect == "held back":
        yield "held-back"
    if effect in ("refused", "invalid"):
        yield "refused"
    if effect in ("uninstall", "suspended"):
        yield "removed"
    if is_risky:
        yield "requests-at-risk"
    if effect == "in place" and forecast.is_absorbed:
        yield "absorbed"


def _describe_gateway(release: SideRelease, effect: ReleaseEffect, first: list[Object], last: list[Object]) -> str:
    from rayhelm.check.diff.requests import load_measured_failures

    if release.chart != "gateway" or effect != "objects only":
        return ""
    pods = [[item["spec"]["template"] for item in items if item["kind"] == "Deployment"] for items in (first, last)]
    maps = [[item.get("data") for item in items if item["kind"] == "ConfigMap"] for items in (first, last)]
    if not first or pods[0] != pods[1]:
        return f"none expected if its pods are replaced; {load_measured_failures()['gateway rolled']}"
    return "none: no pod is replaced" + (f"; {_LIVE_MAPS}" if maps[0] != maps[1] else "")


def _add(totals: _Totals, release: SideRelease, effect: ReleaseEffect, before: GpuCount, after: GpuCount) -> None:
    meanwhile, later = sum_meanwhile(effect, before, after), sum_after(effect, before, after)
    totals.gpus["before"] += before
    totals.gpus["meanwhile"] += meanwhile
    totals.gpus["after"] += later
    totals.by_namespace[release.cluster, release.namespace] += meanwhile
    place = (release.cluster, release.namespace, release.name)
    totals.changes.append(GpuChange(*place, before, meanwhile, later))
