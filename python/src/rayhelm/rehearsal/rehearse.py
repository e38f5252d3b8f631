"""The sequence of a rehearsal: look, write down what will be made, make it, load, change, and take it away again."""

import time
from collections.abc import Sequence
from dataclasses import replace

from rayhelm.charts.helm import find_helm
from rayhelm.errors import FleetError, Problem, RayhelmError
from rayhelm.rehearsal import record
from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.change import Step
from rayhelm.rehearsal.checks import answering, namespaces_of, refuse_what_is_there
from rayhelm.rehearsal.held import Cards, Watch, cards_of
from rayhelm.rehearsal.load import Outcome, load, opens, runs
from rayhelm.rehearsal.play import Play, Wish, all_of, play_of
from rayhelm.rehearsal.report import Change, Report
from rayhelm.rehearsal.stage import READY, Stage
from rayhelm.rehearsal.told import Happened, report_of
from rayhelm.rehearsal.without_cards import CALLER, Cast
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.pod import Image

__all__ = ["clean", "rehearse"]

AFTER = 10.0
"""Seconds of load behind the change."""


def rehearse(stage: Stage, old: Rendered, new: Rendered | None, wish: Wish) -> Report:
    """Raises RayhelmError for whatever stands in the way; what was made is taken away again then, too."""
    find_helm()
    play = play_of(stage.kubectl, old, new, wish)
    releases, objects, twice = all_of(play)
    refuse_what_is_there(
        stage.kubectl,
        play.found,
        releases,
        objects,
        twice=twice,
        with_gpus=wish.with_gpus,
        allow_existing=wish.allow_existing,
    )
    made = record.record_of(old.plan.fleet, releases, namespaces_of(releases, objects))
    record.write(stage.kubectl, made)
    try:
        report = _played(stage, play, old, new, wish)
    except BaseException as error:
        _end(stage, made, wish, error)
        raise
    _end(stage, made, wish)
    return report


def clean(stage: Stage) -> int | None:
    """Takes away what an earlier rehearsal left; None where there is nothing. Refuses one that runs right now."""
    answering(stage.kubectl)
    if not record.left_behind(stage.kubectl):
        return None
    there = record.read(stage.kubectl)
    if there and there.runs:
        raise FleetError(Problem(f"{there} runs on this cluster right now", fix="end it: Ctrl-C, or kill -INT"))
    return record.clear(stage, there)


def _played(stage: Stage, play: Play, old: Rendered, new: Rendered | None, wish: Wish) -> Report:
    runs(stage.kubectl, wish.image)
    for door in (each.values for each in play.old.releases):
        if isinstance(door, GatewayValues):
            opens(stage.kubectl, _name(door.image))
    stage.raise_all(play.old.releases)
    where = {release.namespace for release in (*play.old.releases, *play.new.releases)}
    watch = Watch(stage.kubectl, _cards(play.old, old), _cards(play.new, new or old), where)
    targets = _with_keys(play.stay, stage)
    failed, changes = "", []
    with watch, load(stage.kubectl, wish.image, targets, patience=READY) as calls:
        stage.say(f"steady load for {wish.seconds:.0f} s")
        time.sleep(wish.seconds)
        before = watch.look()
        watch.begin()
        moment = time.time()
        try:
            for step in play.steps:
                changes.append(_done(stage, step, watch))
            time.sleep(AFTER if play.steps else 0)
        except RayhelmError as error:
            failed = str(error)
        after = watch.look()
    outcome = calls.outcome
    if play.come and not failed:
        come = _with_keys(play.come, stage)
        with load(stage.kubectl, wish.image, come, patience=READY, callers=1, name="newcomers") as first:
            pass
        outcome = Outcome(outcome.answered + first.outcome.answered, outcome.lost + first.outcome.lost)
    seen = Happened(outcome, moment, changes, failed, before, after, watch)
    return report_of(stage, play, old, new, wish, seen, targets)


def _name(image: Image) -> str:
    return f"{image.repository}@{image.digest}" if image.digest else f"{image.repository}:{image.tag}"


def _done(stage: Stage, step: Step, watch: Watch) -> Change:
    """Makes one step, and waits for all that it does."""
    release, begin, switched = step.release, time.monotonic(), None
    stage.say(f"{release.chart} {release.name}: {step.does}")
    if step.does == "uninstall":
        _uninstall(stage, release)
    elif step.does == "install":
        stage.raise_all([release])
    else:
        before = stage.ray_clusters(release) if release.chart == "ray-service" else set[str]()
        if step.does == "in place":
            watch.in_place.add(release.name)
        stage.install(release)
        if step.does == "new cluster":
            stage.switched(release, before)
            switched = time.monotonic() - begin
            stage.left(release, before)
        if release.chart == "ray-service":
            stage.settled(release)
        if release.chart == "gateway":
            stage.rolled(release)
    return Change(
        chart=release.chart,
        name=release.name,
        does=step.does,
        says=step.says,
        switched_seconds=switched,
        seconds=time.monotonic() - begin,
    )


def _uninstall(stage: Stage, release: Release) -> None:
    stage.helm("uninstall", release.name, f"--namespace={release.namespace}", "--ignore-not-found")
    if release.chart == "ray-service":
        gone = lambda: not stage.ray_clusters(release)  # noqa: E731
        stage.wait(gone, f"the end of {release.name}", release.namespace)


def _end(stage: Stage, made: record.Record, wish: Wish, error: BaseException | None = None) -> None:
    """Takes all of it away, or says that it stays. A second Ctrl-C leaves it as it is: the record has what there is."""
    if wish.keep:
        record.keep(stage.kubectl, made)
        if error:
            raise RayhelmError(f"{str(error) or 'interrupted'}\nit is kept as it is\n    {record.CLEAN}") from error
        return
    try:
        if isinstance(error, KeyboardInterrupt):
            stage.say("interrupted: taking away what was made")
        record.clear(stage, made)
    except KeyboardInterrupt:
        raise RayhelmError(f"interrupted: what the rehearsal made is still there\n    {record.CLEAN}") from None
    except RayhelmError as left:
        first = f"{error}\n" if isinstance(error, RayhelmError) else ""
        raise RayhelmError(f"{first}not everything could be taken away: {left}\n    {record.CLEAN}") from error


def _with_keys(targets: Sequence[Target], stage: Stage) -> list[Target]:
    return [replace(target, key=stage.keys.get(CALLER, "")) for target in targets]


def _cards(cast: Cast, rendered: Rendered) -> dict[str, Cards]:
    return {name: cards_of(name, rendered, values) for name, values in cast.services.items()}
