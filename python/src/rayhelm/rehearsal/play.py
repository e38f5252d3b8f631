"""Who plays in a rehearsal, and what happens to them."""

from dataclasses import dataclass, replace

from rayhelm.errors import FleetError, Problem, UsageError
from rayhelm.kube.kubectl import Kubectl
from rayhelm.rehearsal.caller import Target
from rayhelm.rehearsal.change import Step, mirrored, steps
from rayhelm.rehearsal.checks import Found, find, objects_of, refuse_another
from rayhelm.rehearsal.outside import on_its_own
from rayhelm.rehearsal.room import asked
from rayhelm.rehearsal.without_cards import Cast, cast_of
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import Place
from rayhelm.values.ray_service.image import Image

__all__ = ["Play", "Wish", "all_of", "cluster_of", "own_releases", "play_of", "refuse_the_same"]

AT_HAND = "rayhelm.local/ray:haproxy"
"""HAProxy's image on `make node`, which pulls nothing."""
_ORDER = ("platform", "tenant", "ray-service", "gateway")


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    cluster: str
    """Of the fleet."""
    image: str
    services: tuple[str, ...] = ()
    gateway_image: str = ""
    with_gpus: bool = False
    allow_existing: bool = False
    keep: bool = False
    seconds: float = 30


@dataclass(frozen=True)
class Play:
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
        raise FleetError(Problem(f"{what}: {', '.join(known)}", fix=f"--cluster {known[0]}"))
    return known[0]


def refuse_the_same(old: Rendered, new: Rendered, wish: Wish) -> None:
    """Raises FleetError where there is nothing to rehearse, or nothing to compare."""
    if old.plan.fleet != new.plan.fleet:
        fix = f"fleet: {old.plan.fleet}"
        raise FleetError(Problem(f"another fleet: {new.plan.fleet}, not {old.plan.fleet}", fix=fix))
    if own_releases(old, wish) == own_releases(new, wish):
        raise FleetError(Problem("nothing to rehearse: both render the same values", fix="--change NEW.yaml, edited"))


def play_of(kubectl: Kubectl, old: Rendered, new: Rendered | None, wish: Wish) -> Play:
    """Raises RayhelmError where the cluster or the fleet is not one for it."""
    repository, tag = _parts("--image", wish.image)
    if wish.gateway_image:
        _parts("--gateway-image", wish.gateway_image)
    found = find(kubectl)
    refuse_another(kubectl)
    place = Place(
        kuberay=found.kuberay,
        image=Image(repository=repository, tag=tag, rayhelm=True),
        haproxy=wish.gateway_image or (AT_HAND if AT_HAND in found.images() else ""),
        api_servers=found.api_servers,
    )
    first = on_its_own(cast_of(old, place, cluster=wish.cluster, services=wish.services))
    if not first.targets:
        raise FleetError(Problem("nobody can be stood in for", fix="\n".join(first.notes)))
    if new is None:
        return Play(found, first, first, [], *_called(first, first))
    then = on_its_own(cast_of(new, place, cluster=wish.cluster, services=wish.services))
    before, after, edits = mirrored(first, then)
    return Play(found, before, after, steps(before, after, edits), *_called(before, after))


def all_of(play: Play) -> tuple[list[Release], list[list[dict[str, object]]], list[dict[str, object]]]:
    """Every release that is there at some time, its objects, and those of the largest service that is there twice."""
    comes = [step.release for step in play.steps if step.does == "install"]
    changes = [step.release for step in play.steps if step.does not in ("install", "uninstall")]
    objects_of(changes)  # what the charts refuse is refused before anything is made
    releases = sorted([*play.old.releases, *comes], key=lambda each: _ORDER.index(each.chart))
    twice = objects_of([step.release for step in play.steps if step.does == "new cluster"])
    largest = max(twice, key=lambda each: sum(room.memory for room in asked(each)), default=[])
    return releases, objects_of(releases), largest


def own_releases(rendered: Rendered, wish: Wish) -> list[Release]:
    """As the fleet has them, of those that are wished for."""
    return [
        replace(release, file="", about="")
        for release in rendered.releases
        if release.cluster == wish.cluster
        and not (release.chart == "ray-service" and wish.services and release.name not in wish.services)
    ]


def _parts(option: str, name: str) -> tuple[str, str]:
    """Repository and tag; a port is none."""
    repository, _, tag = name.rpartition(":")
    if not repository or not tag or "/" in tag:
        raise UsageError(f"{option} is {name}, which is not REPOSITORY:TAG")
    return repository, tag


def _called(old: Cast, new: Cast) -> tuple[list[Target], list[Target]]:
    """Models that are there before and after, which bear the load; and those that come."""
    before, after = ({target.name: target for target in cast.targets} for cast in (old, new))
    stay = [target for name, target in before.items() if after.get(name) == target]
    if not stay:
        raise FleetError(Problem("no model is there before the change and after it, at one address: nobody to call"))
    return stay, [target for name, target in after.items() if before.get(name) != target]
