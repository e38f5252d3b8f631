"""The sequence of a rehearsal: look, write down what will be made, make it, load, change, and take it away again."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from rayhelm.charts.helm import find_helm
from rayhelm.errors import FleetError, Problem, RayhelmError
from rayhelm.fleet_files import Rendered
from rayhelm.kubectl import Kubectl
from rayhelm.rehearsal import record
from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.change import Step, mirrored, steps
from rayhelm.rehearsal.checks import (
    Found,
    answering,
    find,
    namespaces_of,
    objects_of,
    refuse_another,
    refuse_what_is_there,
)
from rayhelm.rehearsal.held import Cards, Watch, cards_of, has
from rayhelm.rehearsal.load import Outcome, load, runs
from rayhelm.rehearsal.outside import on_its_own
from rayhelm.rehearsal.report import CardsHeld, Change, Report, Requests, Service, lost_of
from rayhelm.rehearsal.room import asked
from rayhelm.rehearsal.stage import READY, Stage
from rayhelm.rehearsal.without_cards import CALLER, DELETION_DELAY, Cast, cast_of
from rayhelm.releases import Release
from rayhelm.serving.stand_in_cluster import Place
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.image import Image

__all__ = ["AT_HAND", "Wish", "clean", "cluster_of", "refuse_the_same", "rehearse"]

AT_HAND = "rayhelm.local/ray:haproxy"
"""HAProxy's image on `make node`, which pulls nothing."""
AFTER = 10.0
"""Seconds of load behind the change."""


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    cluster: str
    """Of the fleet."""
    image: str
    services: tuple[str, ...] = ()
    gateway_image: str = ""
    with_gpus: bool = False
    beside_others: bool = False
    keep: bool = False
    seconds: float = 30


@dataclass(frozen=True)
class _Play:
    """Who plays, and what happens to them."""

    found: Found
    old: Cast
    new: Cast
    steps: list[Step]
    stay: list[Target]
    """Models that are called all the time."""
    come: list[Target]
    """And those that the change brings."""


def cluster_of(rendered: Rendered, wanted: str) -> str:
    """The fleet's cluster to rehearse. Raises FleetError where that is not clear."""
    known = list(dict.fromkeys(release.cluster for release in rendered.releases))
    if wanted in known:
        return wanted
    if wanted or len(known) > 1:
        what = f"no cluster `{wanted}` in this fleet" if wanted else f"the fleet has {len(known)} clusters"
        raise FleetError(Problem(f"{what}: {', '.join(known)}", mend=f"--cluster {known[0]}"))
    return known[0]


def refuse_the_same(old: Rendered, new: Rendered, wish: Wish) -> None:
    """Raises FleetError where there is nothing to rehearse, or nothing to compare."""
    if old.plan.fleet != new.plan.fleet:
        mend = f"fleet: {old.plan.fleet}"
        raise FleetError(Problem(f"another fleet: {new.plan.fleet}, not {old.plan.fleet}", mend=mend))
    if _plays(old, wish) == _plays(new, wish):
        raise FleetError(Problem("nothing to rehearse: both render the same values", mend="--change NEW.yaml, edited"))


def rehearse(stage: Stage, old: Rendered, new: Rendered | None, wish: Wish) -> Report:
    """Raises RayhelmError for whatever stands in the way; what was made is taken away again then, too."""
    find_helm()
    play = _play(stage.kubectl, old, new, wish)
    releases, objects, twice = _all(play)
    refuse_what_is_there(
        stage.kubectl,
        play.found,
        releases,
        objects,
        twice=twice,
        with_gpus=wish.with_gpus,
        beside_others=wish.beside_others,
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
        raise FleetError(Problem(f"{there} runs on this cluster right now", mend="end it: Ctrl-C, or kill -INT"))
    return record.clear(stage, there)


def _plays(rendered: Rendered, wish: Wish) -> list[Release]:
    return [
        replace(release, file="", about="")
        for release in rendered.releases
        if release.cluster == wish.cluster
        and not (release.chart == "ray-service" and wish.services and release.name not in wish.services)
    ]


def _play(kubectl: Kubectl, old: Rendered, new: Rendered | None, wish: Wish) -> _Play:
    found = find(kubectl)
    refuse_another(kubectl)
    repository, _, tag = wish.image.rpartition(":")
    place = Place(
        kuberay=found.kuberay,
        image=Image(repository=repository, tag=tag, rayhelm=True),
        haproxy=wish.gateway_image or (AT_HAND if AT_HAND in found.images() else ""),
        api_servers=found.api_servers,
    )
    first = on_its_own(cast_of(old, place, cluster=wish.cluster, services=wish.services))
    if not first.targets:
        raise FleetError(Problem("nobody can be stood in for", mend="\n".join(first.notes)))
    if new is None:
        return _Play(found, first, first, [], *_called(first, first))
    then = on_its_own(cast_of(new, place, cluster=wish.cluster, services=wish.services))
    before, after, edits = mirrored(first, then)
    return _Play(found, before, after, steps(before, after, edits), *_called(before, after))


def _all(play: _Play) -> tuple[list[Release], list[list[dict[str, object]]], list[dict[str, object]]]:
    """Every release that is there at some time, its objects, and those of the largest service that is there twice."""
    comes = [step.release for step in play.steps if step.does == "install"]
    changes = [step.release for step in play.steps if step.does not in ("install", "uninstall")]
    objects_of(changes)  # what the charts refuse is refused before anything is made
    releases = sorted([*play.old.releases, *comes], key=lambda each: _ORDER.index(each.chart))
    twice = objects_of([step.release for step in play.steps if step.does == "new cluster"])
    largest = max(twice, key=lambda each: sum(room.memory for room in asked(each)), default=[])
    return releases, objects_of(releases), largest


_ORDER = ("platform", "tenant", "ray-service", "gateway")


def _played(stage: Stage, play: _Play, old: Rendered, new: Rendered | None, wish: Wish) -> Report:
    runs(stage.kubectl, wish.image)
    stage.raise_all(play.old.releases)
    watch = Watch(stage.kubectl, _cards(play.old, old), _cards(play.new, new or old))
    targets = _with_keys(play.stay, stage)
    failed, changes, moment = "", [], 0.0
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
    lost = calls.outcome.lost
    if play.come and not failed:
        come = _with_keys(play.come, stage)
        with load(stage.kubectl, wish.image, come, patience=READY, callers=1, name="newcomers") as first:
            pass
        lost += first.outcome.lost
    done = {(each.chart, each.name) for each in changes}
    rest = [
        Change(chart=step.release.chart, name=step.release.name, does=step.does, says=step.says)
        for step in play.steps
        if (step.release.chart, step.release.name) not in done
    ]
    first_requests, then = _split(calls.outcome, moment if play.steps else None)
    held = _held(new or old, wish.cluster, before, watch.most, after)
    return Report(
        fleet=old.plan.fleet,
        file=old.loaded.document.file,
        change=new.loaded.document.file if new else "",
        cluster=wish.cluster,
        server=play.found.server,
        context=play.found.context,
        kuberay=play.found.kuberay,
        services=tuple(_service(release, stage) for release in _services(play)),
        changes=(*changes, *rest),
        cards=held,
        clusters_at_most=watch.clusters_at_most,
        pods_at_most=watch.pods_at_most,
        memory_gib_at_most=round(watch.room_at_most.memory / 2**30, 1),
        before=first_requests,
        during=then,
        lost=lost_of(lost),
        failed=failed,
        warnings=tuple(_warnings(held, play)),
        notes=tuple(
            dict.fromkeys([*play.old.notes, *play.new.notes, *_notes(play), *_unseen(play, old, new or old, wish)])
        ),
        kept=tuple(_kept(stage, targets)) if wish.keep else (),
    )


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


def _called(old: Cast, new: Cast) -> tuple[list[Target], list[Target]]:
    """Models that are there before and after, which bear the load; and those that come."""
    before, after = ({target.name: target for target in cast.targets} for cast in (old, new))
    stay = [target for name, target in before.items() if after.get(name) == target]
    if not stay:
        raise FleetError(Problem("no model is there before the change and after it, at one address: nobody to call"))
    return stay, [target for name, target in after.items() if before.get(name) != target]


def _with_keys(targets: Sequence[Target], stage: Stage) -> list[Target]:
    return [replace(target, key=stage.keys.get(CALLER, "")) for target in targets]


def _split(outcome: Outcome, moment: float | None) -> tuple[Requests, Requests | None]:
    """Before and after that moment, by their ends."""
    if moment is None:
        return Requests.of(outcome.answered, outcome.lost), None
    then = outcome.after(moment)
    late = {id(seen) for seen in (*then.answered, *then.lost)}
    answered, lost = ([seen for seen in kind if id(seen) not in late] for kind in (outcome.answered, outcome.lost))
    return Requests.of(answered, lost), Requests.of(then.answered, then.lost)


def _services(play: _Play) -> list[Release]:
    both = {release.name: release for cast in (play.old, play.new) for release in cast.releases}
    return [release for release in both.values() if isinstance(release.values, RayServiceValues)]


def _service(release: Release, stage: Stage) -> Service:
    assert isinstance(release.values, RayServiceValues)
    models = [name for application in release.values.serve.applications.values() for name in application.models]
    return Service(name=release.name, models=tuple(models), ready_seconds=stage.seconds.get(release.name))


def _cards(cast: Cast, rendered: Rendered) -> dict[str, Cards]:
    return {name: cards_of(name, rendered, values) for name, values in cast.services.items()}


def _held(rendered: Rendered, cluster: str, before: Cards, most: Cards, after: Cards) -> tuple[CardsHeld, ...]:
    there, pools = has(rendered, cluster), rendered.plan.pools
    return tuple(
        CardsHeld(
            pool=pool,
            gpu=pools[pool].gpu if pool in pools else "",
            resource=resource,
            before=before[pool, resource],
            most=most[pool, resource],
            after=after[pool, resource],
            has=there[pool, resource],
        )
        for pool, resource in sorted({*there, *most})
    )


def _warnings(held: Collection[CardsHeld], play: _Play) -> list[str]:
    short = [
        f"pool {each.pool}: {each.most} of {each.resource} were needed at once, and it has {each.has}: on the real"
        " cluster pods would wait for room, and the change with them"
        for each in held
        if each.most > each.has
    ]
    held_back = [
        f"service {step.release.name}: the edit of its pods does nothing under `upgrade.strategy: None`"
        for step in play.steps
        if step.does == "held back"
    ]
    return short + held_back


def _notes(play: _Play) -> list[str]:
    notes = ["times are those of tiny models on CPUs: real weights take longer to load, and answers mean nothing"]
    if any(step.does == "new cluster" for step in play.steps):
        notes.append(f"a cluster that was replaced lives on for {DELETION_DELAY} s at most, longer on the real cluster")
    if any(step.release.chart == "platform" for step in play.steps) or play.old.releases[0].chart == "platform":
        notes.append("priority classes and admission policies of chart platform held in the whole cluster meanwhile")
    gone = {target.name for target in play.old.targets} - {target.name for target in play.new.targets}
    notes += [f"{name}: goes away with the change, and was not called" for name in sorted(gone)]
    return [*play.old.notes, *play.new.notes, *notes]


def _unseen(play: _Play, old: Rendered, new: Rendered, wish: Wish) -> Iterator[str]:
    """Releases that the change edits in nothing that the stand-ins show."""
    there = {(each.chart, each.name): each.values for each in _plays(old, wish)}
    seen = {(step.release.chart, step.release.name) for step in play.steps}
    for release in _plays(new, wish):
        key = (release.chart, release.name)
        if key in there and key not in seen and there[key] != release.values:
            yield f"{release.chart} {release.name}: what the change edits of it cannot be seen without cards"


def _kept(stage: Stage, targets: Sequence[Target]) -> list[str]:
    door = next((each for each in stage.installed.values() if isinstance(each.values, GatewayValues)), None)
    lines = []
    if door:
        lines.append(f"kubectl --namespace {door.namespace} port-forward service/{door.name} 8000:80 &")
        body = f'{{"model": "{targets[0].model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
        header = f"-H 'Authorization: Bearer {stage.keys[CALLER]}' -H 'Content-Type: application/json'"
        lines.append(f"curl http://localhost:8000/v1/chat/completions {header} -d '{body}'")
    return [*lines, record.CLEAN]
