"""Run a rehearsal: check the cluster, write the record, install, send load, change, and remove everything."""

import time
from collections.abc import Sequence
from dataclasses import replace

from rayhelm.deploy.charts.helm import find_helm
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.gateway.pod import HaproxyImage
from rayhelm.errors import Fix, FleetError, Problem, RayhelmError
from rayhelm.run.rehearsal import record
from rayhelm.run.rehearsal.change import ChangeStep
from rayhelm.run.rehearsal.checks import check_reachable, list_namespaces, refuse_obstacles
from rayhelm.run.rehearsal.cluster_session import READY, ClusterSession
from rayhelm.run.rehearsal.load import LoadResult, check_gateway_image, check_image, run_load
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.rehearsal.report import ChangeReport, Report
from rayhelm.run.rehearsal.report_builder import Measurements, build_report
from rayhelm.run.rehearsal.scenario import RehearsalOptions, Scenario, build_scenario, list_releases
from rayhelm.run.rehearsal.usage import GpuUsage, UsageMonitor, count_gpus
from rayhelm.run.rehearsal.without_gpus import LOAD_CLIENT, StandInSet

__all__ = ["clean", "rehearse"]

AFTER = 10.0
"""Seconds of load after the change."""


def rehearse(session: ClusterSession, old: Rendered, new: Rendered | None, options: RehearsalOptions) -> Report:
    """Run the rehearsal and return its report. Removes everything that it created, also after an error."""
    find_helm()
    scenario = build_scenario(session.kubectl, old, new, options)
    releases, objects, twice = list_releases(scenario)
    refuse_obstacles(
        session.kubectl,
        scenario.found,
        releases,
        objects,
        twice=twice,
        with_gpus=options.with_gpus,
        allow_existing=options.allow_existing,
    )
    created = record.create_record(old.plan.fleet, releases, list_namespaces(releases, objects))
    record.write(session.kubectl, created)
    try:
        report = _run(session, scenario, old, new, options)
    except BaseException as error:
        _finish(session, created, options, error)
        raise
    _finish(session, created, options)
    return report


def clean(session: ClusterSession) -> int | None:
    """Remove what an earlier rehearsal left; returns the number of releases, None if there is no rehearsal.

    Raises FleetError if the rehearsal is running.
    """
    check_reachable(session.kubectl)
    if not record.is_left_behind(session.kubectl):
        return None
    earlier = record.read(session.kubectl)
    if earlier and earlier.is_running:
        fix = Fix.advice("stop it with Ctrl-C, or kill -INT")
        raise FleetError(Problem(f"{earlier} is running on this cluster", fix=fix))
    return record.remove_all(session, earlier)


def _run(
    session: ClusterSession, scenario: Scenario, old: Rendered, new: Rendered | None, options: RehearsalOptions
) -> Report:
    check_image(session.kubectl, options.image)
    for values in (release.values for release in scenario.old.releases):
        if isinstance(values, GatewayValues):
            check_gateway_image(session.kubectl, _name_image(values.image))
    session.install_all(scenario.old.releases)
    namespaces = {release.namespace for release in (*scenario.old.releases, *scenario.new.releases)}
    monitor = UsageMonitor(
        session.kubectl,
        _count_service_gpus(scenario.old, old),
        _count_service_gpus(scenario.new, new or old),
        namespaces,
    )
    targets = _add_keys(scenario.kept_targets, session)
    error, changes = "", []
    with monitor, run_load(session.kubectl, options.image, targets, timeout=READY) as generator:
        session.report_progress(f"constant load for {options.seconds:.0f} s")
        time.sleep(options.seconds)
        before = monitor.observe()
        monitor.mark_change()
        moment = time.time()
        try:
            for step in scenario.steps:
                changes.append(_make_step(session, step, monitor))
            time.sleep(AFTER if scenario.steps else 0)
        except RayhelmError as failure:
            error = str(failure)
        after = monitor.observe()
    outcome = generator.outcome
    if scenario.added_targets and not error:
        added = _add_keys(scenario.added_targets, session)
        with run_load(session.kubectl, options.image, added, timeout=READY, clients=1, name="added-models") as first:
            pass
        outcome = LoadResult(outcome.answered + first.outcome.answered, outcome.failed + first.outcome.failed)
    measurements = Measurements(outcome, moment, changes, error, before, after, monitor)
    return build_report(session, scenario, old, new, options, measurements, targets)


def _name_image(image: HaproxyImage) -> str:
    return f"{image.repository}@{image.digest}" if image.digest else f"{image.repository}:{image.tag}"


def _make_step(session: ClusterSession, step: ChangeStep, monitor: UsageMonitor) -> ChangeReport:
    """Make one step, and wait until it is complete."""
    release, begin, switched = step.release, time.monotonic(), None
    session.report_progress(f"{release.chart} {release.name}: {step.effect}")
    if step.effect == "uninstall":
        _uninstall(session, release)
    elif step.effect == "install":
        session.install_all([release])
    else:
        before = session.list_ray_clusters(release) if release.chart == "ray-service" else set[str]()
        if step.effect == "in place":
            monitor.in_place.add(release.name)
        session.install(release)
        if step.effect == "new cluster":
            session.wait_for_switch(release, before)
            switched = time.monotonic() - begin
            session.wait_until_removed(release, before)
        if release.chart == "ray-service":
            session.wait_until_reconciled(release)
        if release.chart == "gateway":
            session.wait_for_rollout(release)
    return ChangeReport(
        chart=release.chart,
        name=release.name,
        effect=step.effect,
        details=step.details,
        switched_seconds=switched,
        seconds=time.monotonic() - begin,
    )


def _uninstall(session: ClusterSession, release: Release) -> None:
    session.run_helm("uninstall", release.name, f"--namespace={release.namespace}", "--ignore-not-found")
    if release.chart == "ray-service":
        is_removed = lambda: not session.list_ray_clusters(release)  # noqa: E731
        session.wait(is_removed, f"the removal of {release.name}", release.namespace)


def _finish(
    session: ClusterSession,
    created: record.RehearsalRecord,
    options: RehearsalOptions,
    error: BaseException | None = None,
) -> None:
    """Remove everything, or keep it. A second Ctrl-C stops the removal; the record stays for `--clean`."""
    if options.keep:
        record.mark_kept(session.kubectl, created)
        if error:
            raise RayhelmError(f"{str(error) or 'interrupted'}\nthe releases are kept\n    {record.CLEAN}") from error
        return
    try:
        if isinstance(error, KeyboardInterrupt):
            session.report_progress("interrupted: removing what was created")
        record.remove_all(session, created)
    except KeyboardInterrupt:
        raise RayhelmError(
            f"interrupted: what the rehearsal created is still on the cluster\n    {record.CLEAN}"
        ) from None
    except RayhelmError as left:
        first = f"{error}\n" if isinstance(error, RayhelmError) else ""
        raise RayhelmError(f"{first}not everything could be removed: {left}\n    {record.CLEAN}") from error


def _add_keys(targets: Sequence[LoadTarget], session: ClusterSession) -> list[LoadTarget]:
    return [replace(target, key=session.keys.get(LOAD_CLIENT, "")) for target in targets]


def _count_service_gpus(stand_ins: StandInSet, rendered: Rendered) -> dict[str, GpuUsage]:
    return {name: count_gpus(name, rendered, values) for name, values in stand_ins.services.items()}
