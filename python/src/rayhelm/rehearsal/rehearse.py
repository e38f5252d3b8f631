"""The sequence of a rehearsal: look, write down what will be made, make it, load, change, and take it away again."""

import time
from collections.abc import Sequence
from dataclasses import replace

from rayhelm.charts.helm import find_helm
from rayhelm.errors import FleetError, Problem, RayhelmError
from rayhelm.rehearsal import record
from rayhelm.rehearsal.change import ChangeStep
from rayhelm.rehearsal.checks import check_reachable, list_namespaces, refuse_obstacles
from rayhelm.rehearsal.cluster_session import READY, ClusterSession
from rayhelm.rehearsal.load import LoadResult, check_gateway_image, check_image, run_load
from rayhelm.rehearsal.load_client import LoadTarget
from rayhelm.rehearsal.report import ChangeReport, Report
from rayhelm.rehearsal.report_builder import Measurements, build_report
from rayhelm.rehearsal.scenario import RehearsalOptions, Scenario, build_scenario, list_releases
from rayhelm.rehearsal.usage import GpuUsage, UsageMonitor, count_gpus
from rayhelm.rehearsal.without_gpus import LOAD_CLIENT, StandInSet
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.pod import Image

__all__ = ["clean", "rehearse"]

AFTER = 10.0
"""Seconds of load behind the change."""


def rehearse(session: ClusterSession, old: Rendered, new: Rendered | None, options: RehearsalOptions) -> Report:
    """Raises RayhelmError for whatever stands in the way; what was made is taken away again then, too."""
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
    made = record.create_record(old.plan.fleet, releases, list_namespaces(releases, objects))
    record.write(session.kubectl, made)
    try:
        report = _played(session, scenario, old, new, options)
    except BaseException as error:
        _end(session, made, options, error)
        raise
    _end(session, made, options)
    return report


def clean(session: ClusterSession) -> int | None:
    """Takes away what an earlier rehearsal left; None where there is nothing. Refuses one that runs right now."""
    check_reachable(session.kubectl)
    if not record.is_left_behind(session.kubectl):
        return None
    there = record.read(session.kubectl)
    if there and there.runs:
        raise FleetError(Problem(f"{there} runs on this cluster right now", fix="end it: Ctrl-C, or kill -INT"))
    return record.remove_all(session, there)


def _played(
    session: ClusterSession, scenario: Scenario, old: Rendered, new: Rendered | None, options: RehearsalOptions
) -> Report:
    check_image(session.kubectl, options.image)
    for door in (each.values for each in scenario.old.releases):
        if isinstance(door, GatewayValues):
            check_gateway_image(session.kubectl, _name(door.image))
    session.install_all(scenario.old.releases)
    where = {release.namespace for release in (*scenario.old.releases, *scenario.new.releases)}
    watch = UsageMonitor(session.kubectl, _cards(scenario.old, old), _cards(scenario.new, new or old), where)
    targets = _with_keys(scenario.kept_targets, session)
    failed, changes = "", []
    with watch, run_load(session.kubectl, options.image, targets, patience=READY) as calls:
        session.report_progress(f"steady load for {options.seconds:.0f} s")
        time.sleep(options.seconds)
        before = watch.observe()
        watch.mark_change()
        moment = time.time()
        try:
            for step in scenario.steps:
                changes.append(_done(session, step, watch))
            time.sleep(AFTER if scenario.steps else 0)
        except RayhelmError as error:
            failed = str(error)
        after = watch.observe()
    outcome = calls.outcome
    if scenario.added_targets and not failed:
        come = _with_keys(scenario.added_targets, session)
        with run_load(session.kubectl, options.image, come, patience=READY, callers=1, name="newcomers") as first:
            pass
        outcome = LoadResult(outcome.answered + first.outcome.answered, outcome.failed + first.outcome.failed)
    seen = Measurements(outcome, moment, changes, failed, before, after, watch)
    return build_report(session, scenario, old, new, options, seen, targets)


def _name(image: Image) -> str:
    return f"{image.repository}@{image.digest}" if image.digest else f"{image.repository}:{image.tag}"


def _done(session: ClusterSession, step: ChangeStep, watch: UsageMonitor) -> ChangeReport:
    """Makes one step, and waits for all that it does."""
    release, begin, switched = step.release, time.monotonic(), None
    session.report_progress(f"{release.chart} {release.name}: {step.effect}")
    if step.effect == "uninstall":
        _uninstall(session, release)
    elif step.effect == "install":
        session.install_all([release])
    else:
        before = session.list_ray_clusters(release) if release.chart == "ray-service" else set[str]()
        if step.effect == "in place":
            watch.in_place.add(release.name)
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
        gone = lambda: not session.list_ray_clusters(release)  # noqa: E731
        session.wait(gone, f"the end of {release.name}", release.namespace)


def _end(
    session: ClusterSession, made: record.RehearsalRecord, options: RehearsalOptions, error: BaseException | None = None
) -> None:
    """Takes all of it away, or says that it stays. A second Ctrl-C leaves it as it is: the record has what there is."""
    if options.keep:
        record.mark_kept(session.kubectl, made)
        if error:
            raise RayhelmError(
                f"{str(error) or 'interrupted'}\nit is kept as it is\n    {record.CLEAN_COMMAND}"
            ) from error
        return
    try:
        if isinstance(error, KeyboardInterrupt):
            session.report_progress("interrupted: taking away what was made")
        record.remove_all(session, made)
    except KeyboardInterrupt:
        raise RayhelmError(f"interrupted: what the rehearsal made is still there\n    {record.CLEAN_COMMAND}") from None
    except RayhelmError as left:
        first = f"{error}\n" if isinstance(error, RayhelmError) else ""
        raise RayhelmError(f"{first}not everything could be taken away: {left}\n    {record.CLEAN_COMMAND}") from error


def _with_keys(targets: Sequence[LoadTarget], session: ClusterSession) -> list[LoadTarget]:
    return [replace(target, key=session.keys.get(LOAD_CLIENT, "")) for target in targets]


def _cards(stand_ins: StandInSet, rendered: Rendered) -> dict[str, GpuUsage]:
    return {name: count_gpus(name, rendered, values) for name, values in stand_ins.services.items()}
