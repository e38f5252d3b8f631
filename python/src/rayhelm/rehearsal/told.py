"""Puts a rehearsal's report together."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rayhelm.rehearsal import record
from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.held import Cards, Watch, cards_of, has
from rayhelm.rehearsal.load import Outcome
from rayhelm.rehearsal.play import Play, Wish, own_releases
from rayhelm.rehearsal.report import CardsHeld, Change, Report, Requests, Service, lost_of
from rayhelm.rehearsal.stage import Stage
from rayhelm.rehearsal.without_cards import CALLER, DELETION_DELAY
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.ray_service import RayServiceValues

__all__ = ["Happened", "report_of"]


@dataclass(frozen=True)
class Happened:
    """What was seen."""

    outcome: Outcome
    """Of all callers."""
    moment: float
    """When the change began; seconds since the epoch."""
    changes: Sequence[Change]
    """Those that came to their end."""
    failed: str
    """Why the next one did not."""
    before: Cards
    after: Cards
    watch: Watch


def report_of(
    stage: Stage, play: Play, old: Rendered, new: Rendered | None, wish: Wish, seen: Happened, targets: Sequence[Target]
) -> Report:
    done = {(each.chart, each.name) for each in seen.changes}
    rest = [
        Change(chart=step.release.chart, name=step.release.name, does=step.does, says=step.says)
        for step in play.steps
        if (step.release.chart, step.release.name) not in done
    ]
    first_requests, then = _split(seen.outcome, seen.moment if play.steps else None)
    held = _held(new or old, wish.cluster, seen)
    return Report(
        fleet=old.plan.fleet,
        file=old.loaded.document.file,
        change=new.loaded.document.file if new else "",
        cluster=wish.cluster,
        server=play.found.server,
        context=play.found.context,
        kuberay=play.found.kuberay,
        services=tuple(_service(release, stage) for release in _services(play)),
        changes=(*seen.changes, *rest),
        cards=held,
        clusters_at_most=seen.watch.clusters_at_most,
        pods_at_most=seen.watch.pods_at_most,
        memory_gib_at_most=round(seen.watch.room_at_most.memory / 2**30, 1),
        before=first_requests,
        during=then,
        lost=lost_of(seen.outcome.lost),
        failed=seen.failed,
        warnings=(*_warnings(held, play), *_started_again(play, new or old)),
        notes=tuple(dict.fromkeys([*_notes(play), *_more(play, new or old), *_unseen(play, old, new or old, wish)])),
        kept=tuple(_kept(stage, targets)) if wish.keep else (),
    )


def _split(outcome: Outcome, moment: float | None) -> tuple[Requests, Requests | None]:
    """Before and after that moment, by their ends."""
    if moment is None:
        return Requests.of(outcome.answered, outcome.lost), None
    then = outcome.after(moment)
    late = {id(seen) for seen in (*then.answered, *then.lost)}
    answered, lost = ([seen for seen in kind if id(seen) not in late] for kind in (outcome.answered, outcome.lost))
    return Requests.of(answered, lost), Requests.of(then.answered, then.lost)


def _services(play: Play) -> list[Release]:
    both = {release.name: release for cast in (play.old, play.new) for release in cast.releases}
    return [release for release in both.values() if isinstance(release.values, RayServiceValues)]


def _service(release: Release, stage: Stage) -> Service:
    assert isinstance(release.values, RayServiceValues)
    models = [name for application in release.values.serve.applications.values() for name in application.models]
    return Service(name=release.name, models=tuple(models), ready_seconds=stage.seconds.get(release.name))


def _held(rendered: Rendered, cluster: str, seen: Happened) -> tuple[CardsHeld, ...]:
    there, pools = has(rendered, cluster), rendered.plan.pools
    return tuple(
        CardsHeld(
            pool=pool,
            gpu=pools[pool].gpu if pool in pools else "",
            resource=resource,
            before=seen.before[pool, resource],
            most=seen.watch.most[pool, resource],
            after=seen.after[pool, resource],
            has=there[pool, resource],
        )
        for pool, resource in sorted({*there, *seen.watch.most})
    )


def _warnings(held: Collection[CardsHeld], play: Play) -> list[str]:
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


def _started_again(play: Play, rendered: Rendered) -> Iterator[str]:
    """Requests wait in the ingress, which is replaced, too; what that ends with, the gateway tries again."""
    for step in play.steps:
        if step.does != "serve config":
            continue
        for plan in rendered.plan.of_service(step.release.name):
            if plan.answers_to in step.again and plan.min_replicas <= 1:
                yield (
                    f"{plan.answers_to}: its one replica is started again in place; requests that come meanwhile wait"
                    f" until its weights are loaded, the real ones for some {plan.scaling.load_s:.0f} s, and some may"
                    " get 503. Together with an edit of its pods it would be a new cluster, which is waited for"
                )


def _notes(play: Play) -> list[str]:
    notes = ["times are those of tiny models on CPUs: real weights take longer to load, and answers mean nothing"]
    if any(step.does == "new cluster" for step in play.steps):
        notes.append(f"a cluster that was replaced lives on for {DELETION_DELAY} s at most, longer on the real cluster")
    if any(step.release.chart == "platform" for step in play.steps) or play.old.releases[0].chart == "platform":
        notes.append("priority classes and admission policies of chart platform held in the whole cluster meanwhile")
    gone = {target.name for target in play.old.targets} - {target.name for target in play.new.targets}
    notes += [f"{name}: goes away with the change, and was not called" for name in sorted(gone)]
    return [*play.old.notes, *play.new.notes, *notes]


def _more(play: Play, rendered: Rendered) -> Iterator[str]:
    """Cards are counted at the least number of workers."""
    for name, values in play.new.services.items():
        least = sum(cards_of(name, rendered, values).values())
        planned = sum(rendered.plan.services[name].cards.values())
        if planned > least:
            yield f"{name}: {least} cards are those of its least workers; at the planned load a cluster holds {planned}"


def _unseen(play: Play, old: Rendered, new: Rendered, wish: Wish) -> Iterator[str]:
    """Releases that the change edits in nothing that the stand-ins show."""
    there = {(each.chart, each.name): each.values for each in own_releases(old, wish)}
    seen = {(step.release.chart, step.release.name) for step in play.steps}
    for release in own_releases(new, wish):
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
