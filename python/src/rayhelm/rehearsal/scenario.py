"""Who plays in a rehearsal, and what happens to them."""

from dataclasses import dataclass, replace

from rayhelm.errors import FleetError, Problem, UsageError
from rayhelm.kube.kubectl import Kubectl
from rayhelm.rehearsal.capacity import list_pod_requests
from rayhelm.rehearsal.change import ChangeStep, mirror_edits, plan_steps
from rayhelm.rehearsal.checks import ClusterFacts, inspect_cluster, refuse_other_rehearsal, render_objects
from rayhelm.rehearsal.external import remove_external
from rayhelm.rehearsal.load_client import LoadTarget
from rayhelm.rehearsal.without_gpus import StandInSet, build_stand_ins
from rayhelm.render.files import Rendered
from rayhelm.render.releases import Release
from rayhelm.standin.cluster import StandInCluster
from rayhelm.values.ray_service.image import RayImage

__all__ = [
    "RehearsalOptions",
    "Scenario",
    "build_scenario",
    "list_releases",
    "refuse_identical",
    "select_cluster",
    "select_releases",
]

NODE_GATEWAY_IMAGE = "rayhelm.local/ray:haproxy"
"""HAProxy's image on `make node`, which pulls nothing."""
_ORDER = ("platform", "tenant", "ray-service", "gateway")


@dataclass(frozen=True)
class RehearsalOptions:
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
class Scenario:
    """Who plays, and what happens to them."""

    found: ClusterFacts
    old: StandInSet
    new: StandInSet
    steps: list[ChangeStep]
    kept_targets: list[LoadTarget]
    """Models that are called all the time."""
    added_targets: list[LoadTarget]
    """And those that the change brings."""


def select_cluster(rendered: Rendered, wanted: str) -> str:
    """The fleet's cluster to rehearse. Raises FleetError where that is not clear."""
    known = list(dict.fromkeys(release.cluster for release in rendered.releases))
    if wanted in known:
        return wanted
    if wanted or len(known) > 1:
        what = f"no cluster `{wanted}` in this fleet" if wanted else f"the fleet has {len(known)} clusters"
        raise FleetError(Problem(f"{what}: {', '.join(known)}", fix=f"--cluster {known[0]}"))
    return known[0]


def refuse_identical(old: Rendered, new: Rendered, options: RehearsalOptions) -> None:
    """Raises FleetError where there is nothing to rehearse, or nothing to compare."""
    if old.plan.fleet != new.plan.fleet:
        fix = f"fleet: {old.plan.fleet}"
        raise FleetError(Problem(f"another fleet: {new.plan.fleet}, not {old.plan.fleet}", fix=fix))
    if select_releases(old, options) == select_releases(new, options):
        raise FleetError(Problem("nothing to rehearse: both render the same values", fix="--change NEW.yaml, edited"))


def build_scenario(kubectl: Kubectl, old: Rendered, new: Rendered | None, options: RehearsalOptions) -> Scenario:
    """Raises RayhelmError where the cluster or the fleet is not one for it."""
    repository, tag = _parts("--image", options.image)
    if options.gateway_image:
        _parts("--gateway-image", options.gateway_image)
    found = inspect_cluster(kubectl)
    refuse_other_rehearsal(kubectl)
    place = StandInCluster(
        kuberay=found.kuberay,
        image=RayImage(repository=repository, tag=tag, includes_rayhelm=True),
        haproxy=options.gateway_image or (NODE_GATEWAY_IMAGE if NODE_GATEWAY_IMAGE in found.images() else ""),
        api_servers=found.api_servers,
    )
    first = remove_external(build_stand_ins(old, place, cluster=options.cluster, services=options.services))
    if not first.targets:
        raise FleetError(Problem("nobody can be stood in for", fix="\n".join(first.notes)))
    if new is None:
        return Scenario(found, first, first, [], *_called(first, first))
    then = remove_external(build_stand_ins(new, place, cluster=options.cluster, services=options.services))
    before, after, edits = mirror_edits(first, then)
    return Scenario(found, before, after, plan_steps(before, after, edits), *_called(before, after))


def list_releases(scenario: Scenario) -> tuple[list[Release], list[list[dict[str, object]]], list[dict[str, object]]]:
    """Every release that is there at some time, its objects, and those of the largest service that is there twice."""
    comes = [step.release for step in scenario.steps if step.effect == "install"]
    changes = [step.release for step in scenario.steps if step.effect not in ("install", "uninstall")]
    render_objects(changes)  # what the charts refuse is refused before anything is made
    releases = sorted([*scenario.old.releases, *comes], key=lambda each: _ORDER.index(each.chart))
    twice = render_objects([step.release for step in scenario.steps if step.effect == "new cluster"])
    largest = max(twice, key=lambda each: sum(room.memory for room in list_pod_requests(each)), default=[])
    return releases, render_objects(releases), largest


def select_releases(rendered: Rendered, options: RehearsalOptions) -> list[Release]:
    """As the fleet has them, of those that are wished for."""
    return [
        replace(release, file="", about="")
        for release in rendered.releases
        if release.cluster == options.cluster
        and not (release.chart == "ray-service" and options.services and release.name not in options.services)
    ]


def _parts(option: str, name: str) -> tuple[str, str]:
    """Repository and tag; a port is none."""
    repository, _, tag = name.rpartition(":")
    if not repository or not tag or "/" in tag:
        raise UsageError(f"{option} is {name}, which is not REPOSITORY:TAG")
    return repository, tag


def _called(old: StandInSet, new: StandInSet) -> tuple[list[LoadTarget], list[LoadTarget]]:
    """Models that are there before and after, which bear the load; and those that come."""
    before, after = ({target.name: target for target in stand_ins.targets} for stand_ins in (old, new))
    stay = [target for name, target in before.items() if after.get(name) == target]
    if not stay:
        raise FleetError(Problem("no model is there before the change and after it, at one address: nobody to call"))
    return stay, [target for name, target in after.items() if before.get(name) != target]
