"""Build the report of a rehearsal."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.planner.plan import ModelPlan
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.cluster_session import ClusterSession
from rayhelm.run.rehearsal.load import LoadResult
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.rehearsal.report import ChangeReport, PoolUsage, Report, RequestSummary, ServiceReport, list_failures
from rayhelm.run.rehearsal.scenario import RehearsalOptions, Scenario, select_releases
from rayhelm.run.rehearsal.usage import GpuUsage, UsageMonitor, count_gpus, count_pool_gpus
from rayhelm.run.rehearsal.without_gpus import DELETION_DELAY, LOAD_CLIENT

__all__ = ["Measurements", "build_report"]


@dataclass(frozen=True)
class Measurements:
    """What was measured."""

    outcome: LoadResult
    """Results of all requests."""
    moment: float
    """Start of the change, in seconds since the epoch."""
    changes: Sequence[ChangeReport]
    """Completed steps."""
    error: str
    """Why the next step failed; empty if none did."""
    before: GpuUsage
    after: GpuUsage
    monitor: UsageMonitor


def build_report(
    session: ClusterSession,
    scenario: Scenario,
    old: Rendered,
    new: Rendered | None,
    options: RehearsalOptions,
    measured: Measurements,
    targets: Sequence[LoadTarget],
) -> Report:
    done = {(each.chart, each.name) for each in measured.changes}
    rest = [
        ChangeReport(chart=step.release.chart, name=step.release.name, effect=step.effect, details=step.details)
        for step in scenario.steps
        if (step.release.chart, step.release.name) not in done
    ]
    first_requests, then = _split_requests(measured.outcome, measured.moment if scenario.steps else None)
    pools = _summarize_pools(new or old, options.cluster, measured)
    return Report(
        fleet=old.plan.fleet,
        file=old.plan.source.file,
        change=new.plan.source.file if new else "",
        cluster=options.cluster,
        server=scenario.found.server,
        context=scenario.found.context,
        kuberay=scenario.found.kuberay,
        services=tuple(_build_service_report(release, session) for release in _list_services(scenario)),
        changes=(*measured.changes, *rest),
        gpus=pools,
        peak_clusters=measured.monitor.peak_clusters,
        peak_pods=measured.monitor.peak_pods,
        peak_memory_gib=round(measured.monitor.peak_requests.memory / 2**30, 1),
        before=first_requests,
        during=then,
        failures=list_failures(measured.outcome.failed),
        error=measured.error,
        warnings=(*_list_warnings(pools, scenario), *_list_restarts(scenario, new or old)),
        notes=tuple(
            dict.fromkeys(
                [
                    *_list_notes(scenario),
                    *_list_scaled_services(scenario, new or old),
                    *_list_invisible_changes(scenario, old, new or old, options),
                ]
            )
        ),
        kept=tuple(_list_commands(session, targets)) if options.keep else (),
    )


def _split_requests(outcome: LoadResult, moment: float | None) -> tuple[RequestSummary, RequestSummary | None]:
    """Summarize the requests that ended before `moment` and after it."""
    if moment is None:
        return RequestSummary.summarize(outcome.answered, outcome.failed), None
    then = outcome.after(moment)
    late = {id(result) for result in (*then.answered, *then.failed)}
    answered, failed = (
        [result for result in kind if id(result) not in late] for kind in (outcome.answered, outcome.failed)
    )
    return RequestSummary.summarize(answered, failed), RequestSummary.summarize(then.answered, then.failed)


def _list_services(scenario: Scenario) -> list[Release]:
    both = {release.name: release for stand_ins in (scenario.old, scenario.new) for release in stand_ins.releases}
    return [release for release in both.values() if isinstance(release.values, RayServiceValues)]


def _build_service_report(release: Release, session: ClusterSession) -> ServiceReport:
    assert isinstance(release.values, RayServiceValues)
    serve = release.values.serve
    models = [name for application in serve.applications.values() for name in application.models]
    models += serve.custom_applications
    return ServiceReport(name=release.name, models=tuple(models), ready_seconds=session.seconds.get(release.name))


def _summarize_pools(rendered: Rendered, cluster: str, measured: Measurements) -> tuple[PoolUsage, ...]:
    capacity, pools = count_pool_gpus(rendered, cluster), rendered.plan.pools
    return tuple(
        PoolUsage(
            pool=pool,
            gpu=pools[pool].gpu if pool in pools else "",
            resource=resource,
            before=measured.before[pool, resource],
            peak=measured.monitor.peak[pool, resource],
            after=measured.after[pool, resource],
            capacity=capacity[pool, resource],
        )
        for pool, resource in sorted({*capacity, *measured.monitor.peak})
    )


def _list_warnings(pools: Collection[PoolUsage], scenario: Scenario) -> list[str]:
    short = [
        f"pool {each.pool}: {each.peak} {each.resource} are needed at the same time and the pool has {each.capacity}:"
        " on the real cluster pods would stay Pending, and the change would wait"
        for each in pools
        if each.peak > each.capacity
    ]
    held_back = [
        f"service {step.release.name}: its pods change, but `upgrade.strategy: None` prevents a new cluster"
        for step in scenario.steps
        if step.effect == "held back"
    ]
    return short + held_back


def _list_restarts(scenario: Scenario, rendered: Rendered) -> Iterator[str]:
    """Warn of models whose only replica restarts. Requests wait in the ingress, which Serve replaces too."""
    for step in scenario.steps:
        if step.effect != "serve config":
            continue
        for plan in rendered.plan.of_service(step.release.name):
            if plan.served_as in step.restarted and _count_fewest(plan) <= 1:
                kind = "prefill or decode " if plan.prefill_decode else ""
                yield (
                    f"{plan.served_as}: Serve restarts its only {kind}replica in place. Requests wait until the weights"
                    f" are loaded (about {plan.scaling.load_s:.0f} s for the real model), and some may get 503. An edit"
                    " of the pods in the same change creates a new cluster instead, which takes over when it is ready"
                )


def _count_fewest(plan: ModelPlan) -> int:
    """Return the smallest number of replicas; of the kind with fewer of them, because a request needs both."""
    roles = plan.prefill_decode
    return min(roles.prefill.min_replicas, roles.decode.min_replicas) if roles else plan.min_replicas


def _list_notes(scenario: Scenario) -> list[str]:
    notes = [
        "times are those of tiny models on CPUs; real weights take longer to load, and the answers have no meaning"
    ]
    if any(step.effect == "new cluster" for step in scenario.steps):
        notes.append(f"a replaced cluster is deleted after at most {DELETION_DELAY} s; the real fleet may wait longer")
    if any(step.release.chart == "platform" for step in scenario.steps) or scenario.old.releases[0].chart == "platform":
        notes.append("priority classes and admission policies of chart platform applied to the whole cluster")
    removed = {target.name for target in scenario.old.targets} - {target.name for target in scenario.new.targets}
    notes += [f"{name}: the change removes it, so it received no load" for name in sorted(removed)]
    return [*scenario.old.notes, *scenario.new.notes, *notes]


def _list_scaled_services(scenario: Scenario, rendered: Rendered) -> Iterator[str]:
    """Describe services that use more GPUs at the planned load than with the minimum of workers."""
    for name, values in scenario.new.services.items():
        least = sum(count_gpus(name, rendered, values).values())
        planned = sum(rendered.plan.services[name].gpu_resources.values())
        if planned > least:
            yield f"{name}: counted with {least} GPUs for its minimum of workers; at the planned load it uses {planned}"


def _list_invisible_changes(
    scenario: Scenario, old: Rendered, new: Rendered, options: RehearsalOptions
) -> Iterator[str]:
    """Describe releases whose change has no effect on the stand-ins."""
    old_values = {(each.chart, each.name): each.values for each in select_releases(old, options)}
    changed = {(step.release.chart, step.release.name) for step in scenario.steps}
    for release in select_releases(new, options):
        key = (release.chart, release.name)
        if key in old_values and key not in changed and old_values[key] != release.values:
            yield f"{release.chart} {release.name}: its change has no effect without GPUs"


def _list_commands(session: ClusterSession, targets: Sequence[LoadTarget]) -> list[str]:
    gateway = next((each for each in session.installed.values() if isinstance(each.values, GatewayValues)), None)
    lines = []
    if gateway:
        lines.append(f"kubectl --namespace {gateway.namespace} port-forward service/{gateway.name} 8000:80 &")
        body = f'{{"model": "{targets[0].model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
        header = f"-H 'Authorization: Bearer {session.keys[LOAD_CLIENT]}' -H 'Content-Type: application/json'"
        lines.append(f"curl http://localhost:8000/v1/chat/completions {header} -d '{body}'")
    return [*lines, str(record.CLEAN)]
