"""Puts a rehearsal's report together."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rayhelm.rehearsal import record
from rayhelm.rehearsal.cluster_session import ClusterSession
from rayhelm.rehearsal.load import LoadResult
from rayhelm.rehearsal.load_client import LoadTarget
from rayhelm.rehearsal.report import ChangeReport, PoolUsage, Report, RequestSummary, ServiceReport, list_failures
from rayhelm.rehearsal.scenario import RehearsalOptions, Scenario, select_releases
from rayhelm.rehearsal.usage import GpuUsage, UsageMonitor, count_gpus, count_pool_gpus
from rayhelm.rehearsal.without_gpus import DELETION_DELAY, LOAD_CLIENT
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.ray_service import RayServiceValues

__all__ = ["Measurements", "build_report"]


@dataclass(frozen=True)
class Measurements:
    """What was seen."""

    outcome: LoadResult
    """Of all callers."""
    moment: float
    """When the change began; seconds since the epoch."""
    changes: Sequence[ChangeReport]
    """Those that came to their end."""
    error: str
    """Why the next one did not."""
    before: GpuUsage
    after: GpuUsage
    watch: UsageMonitor


def build_report(
    session: ClusterSession,
    scenario: Scenario,
    old: Rendered,
    new: Rendered | None,
    options: RehearsalOptions,
    seen: Measurements,
    targets: Sequence[LoadTarget],
) -> Report:
    done = {(each.chart, each.name) for each in seen.changes}
    rest = [
        ChangeReport(chart=step.release.chart, name=step.release.name, effect=step.effect, details=step.details)
        for step in scenario.steps
        if (step.release.chart, step.release.name) not in done
    ]
    first_requests, then = _split(seen.outcome, seen.moment if scenario.steps else None)
    held = _held(new or old, options.cluster, seen)
    return Report(
        fleet=old.plan.fleet,
        file=old.loaded.document.file,
        change=new.loaded.document.file if new else "",
        cluster=options.cluster,
        server=scenario.found.server,
        context=scenario.found.context,
        kuberay=scenario.found.kuberay,
        services=tuple(_service(release, session) for release in _services(scenario)),
        changes=(*seen.changes, *rest),
        gpus=held,
        peak_clusters=seen.watch.peak_clusters,
        peak_pods=seen.watch.peak_pods,
        peak_memory_gib=round(seen.watch.peak_requests.memory / 2**30, 1),
        before=first_requests,
        during=then,
        failures=list_failures(seen.outcome.failed),
        error=seen.error,
        warnings=(*_warnings(held, scenario), *_started_again(scenario, new or old)),
        notes=tuple(
            dict.fromkeys(
                [*_notes(scenario), *_more(scenario, new or old), *_unseen(scenario, old, new or old, options)]
            )
        ),
        kept=tuple(_kept(session, targets)) if options.keep else (),
    )


def _split(outcome: LoadResult, moment: float | None) -> tuple[RequestSummary, RequestSummary | None]:
    """Before and after that moment, by their ends."""
    if moment is None:
        return RequestSummary.of(outcome.answered, outcome.failed), None
    then = outcome.after(moment)
    late = {id(seen) for seen in (*then.answered, *then.failed)}
    answered, lost = ([seen for seen in kind if id(seen) not in late] for kind in (outcome.answered, outcome.failed))
    return RequestSummary.of(answered, lost), RequestSummary.of(then.answered, then.failed)


def _services(scenario: Scenario) -> list[Release]:
    both = {release.name: release for stand_ins in (scenario.old, scenario.new) for release in stand_ins.releases}
    return [release for release in both.values() if isinstance(release.values, RayServiceValues)]


def _service(release: Release, session: ClusterSession) -> ServiceReport:
    assert isinstance(release.values, RayServiceValues)
    models = [name for application in release.values.serve.applications.values() for name in application.models]
    return ServiceReport(name=release.name, models=tuple(models), ready_seconds=session.seconds.get(release.name))


def _held(rendered: Rendered, cluster: str, seen: Measurements) -> tuple[PoolUsage, ...]:
    there, pools = count_pool_gpus(rendered, cluster), rendered.plan.pools
    return tuple(
        PoolUsage(
            pool=pool,
            gpu=pools[pool].gpu if pool in pools else "",
            resource=resource,
            before=seen.before[pool, resource],
            peak=seen.watch.peak[pool, resource],
            after=seen.after[pool, resource],
            capacity=there[pool, resource],
        )
        for pool, resource in sorted({*there, *seen.watch.peak})
    )


def _warnings(held: Collection[PoolUsage], scenario: Scenario) -> list[str]:
    short = [
        f"pool {each.pool}: {each.peak} of {each.resource} were needed at once, and it has {each.capacity}: on the real"
        " cluster pods would wait for room, and the change with them"
        for each in held
        if each.peak > each.capacity
    ]
    held_back = [
        f"service {step.release.name}: the edit of its pods does nothing under `upgrade.strategy: None`"
        for step in scenario.steps
        if step.effect == "held back"
    ]
    return short + held_back


def _started_again(scenario: Scenario, rendered: Rendered) -> Iterator[str]:
    """Requests wait in the ingress, which is replaced, too; what that ends with, the gateway tries again."""
    for step in scenario.steps:
        if step.effect != "serve config":
            continue
        for plan in rendered.plan.of_service(step.release.name):
            if plan.served_as in step.restarted and plan.min_replicas <= 1:
                yield (
                    f"{plan.served_as}: its one replica is started again in place; requests that come meanwhile wait"
                    f" until its weights are loaded, the real ones for some {plan.scaling.load_s:.0f} s, and some may"
                    " get 503. Together with an edit of its pods it would be a new cluster, which is waited for"
                )


def _notes(scenario: Scenario) -> list[str]:
    notes = ["times are those of tiny models on CPUs: real weights take longer to load, and answers mean nothing"]
    if any(step.effect == "new cluster" for step in scenario.steps):
        notes.append(f"a cluster that was replaced lives on for {DELETION_DELAY} s at most, longer on the real cluster")
    if any(step.release.chart == "platform" for step in scenario.steps) or scenario.old.releases[0].chart == "platform":
        notes.append("priority classes and admission policies of chart platform held in the whole cluster meanwhile")
    gone = {target.name for target in scenario.old.targets} - {target.name for target in scenario.new.targets}
    notes += [f"{name}: goes away with the change, and was not called" for name in sorted(gone)]
    return [*scenario.old.notes, *scenario.new.notes, *notes]


def _more(scenario: Scenario, rendered: Rendered) -> Iterator[str]:
    """Cards are counted at the least number of workers."""
    for name, values in scenario.new.services.items():
        least = sum(count_gpus(name, rendered, values).values())
        planned = sum(rendered.plan.services[name].gpu_resources.values())
        if planned > least:
            yield f"{name}: {least} cards are those of its least workers; at the planned load a cluster holds {planned}"


def _unseen(scenario: Scenario, old: Rendered, new: Rendered, options: RehearsalOptions) -> Iterator[str]:
    """Releases that the change edits in nothing that the stand-ins show."""
    there = {(each.chart, each.name): each.values for each in select_releases(old, options)}
    seen = {(step.release.chart, step.release.name) for step in scenario.steps}
    for release in select_releases(new, options):
        key = (release.chart, release.name)
        if key in there and key not in seen and there[key] != release.values:
            yield f"{release.chart} {release.name}: what the change edits of it cannot be seen without cards"


def _kept(session: ClusterSession, targets: Sequence[LoadTarget]) -> list[str]:
    door = next((each for each in session.installed.values() if isinstance(each.values, GatewayValues)), None)
    lines = []
    if door:
        lines.append(f"kubectl --namespace {door.namespace} port-forward service/{door.name} 8000:80 &")
        body = f'{{"model": "{targets[0].model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
        header = f"-H 'Authorization: Bearer {session.keys[LOAD_CLIENT]}' -H 'Content-Type: application/json'"
        lines.append(f"curl http://localhost:8000/v1/chat/completions {header} -d '{body}'")
    return [*lines, record.CLEAN_COMMAND]
