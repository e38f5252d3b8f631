"""The releases and steps of a rehearsal."""

from dataclasses import dataclass, replace

from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.ray_service.image import RayImage
from rayhelm.errors import Fix, FleetError, Problem, UsageError
from rayhelm.fleet.nearest import did_you_mean
from rayhelm.live.cluster.kubectl import Kubectl
from rayhelm.run.rehearsal.capacity import list_pod_requests
from rayhelm.run.rehearsal.change import ChangeStep, mirror_edits, plan_steps
from rayhelm.run.rehearsal.checks import ClusterFacts, inspect_cluster, refuse_other_rehearsal, render_objects
from rayhelm.run.rehearsal.external import remove_external
from rayhelm.run.rehearsal.load_client import LoadTarget
from rayhelm.run.rehearsal.without_gpus import StandInSet, build_stand_ins
from rayhelm.run.standin.cluster import StandInCluster

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
"""HAProxy's image on the node of `make node`, which cannot pull images."""
_ORDER = ("platform", "tenant", "ray-service", "gateway")


@dataclass(frozen=True)
class RehearsalOptions:
    """Options of the command."""

    cluster: str
    """Cluster of the fleet."""
    image: str
    services: tuple[str, ...] = ()
    gateway_image: str = ""
    with_gpus: bool = False
    allow_existing: bool = False
    keep: bool = False
    seconds: float = 30


@dataclass(frozen=True)
class Scenario:
    """Stand-ins before and after, and the steps between them."""

    found: ClusterFacts
    old: StandInSet
    new: StandInSet
    steps: list[ChangeStep]
    kept_targets: list[LoadTarget]
    """Models that receive load during the whole rehearsal."""
    added_targets: list[LoadTarget]
    """Models that the change adds."""


def select_cluster(rendered: Rendered, wanted: str) -> str:
    """Return the cluster of the fleet to rehearse. Raises UsageError if it is not unique."""
    known = list(dict.fromkeys(release.cluster for release in rendered.releases))
    if wanted in known:
        return wanted
    if wanted or len(known) > 1:
        if wanted:
            raise UsageError(f"`--cluster`: the fleet has no cluster `{wanted}`; {did_you_mean(wanted, known)}")
        raise UsageError(
            f"the fleet has {len(known)} clusters: choose one, for example `--cluster {known[0]}`: {', '.join(known)}"
        )
    return known[0]


def refuse_identical(old: Rendered, new: Rendered, options: RehearsalOptions) -> None:
    """Raise FleetError if the fleets have different names or equal values."""
    if old.plan.fleet != new.plan.fleet:
        fix = Fix("fleet", old.plan.fleet)
        raise FleetError(Problem(f"the changed fleet is `{new.plan.fleet}`, not `{old.plan.fleet}`", fix=fix))
    if select_releases(old, options) == select_releases(new, options):
        raise FleetError(
            Problem(
                "nothing to rehearse: both fleets have the same values",
                fix=Fix.advice("edit the fleet file of `--change`"),
            )
        )


def build_scenario(kubectl: Kubectl, old: Rendered, new: Rendered | None, options: RehearsalOptions) -> Scenario:
    """Build the scenario. Raises RayhelmError if the cluster or the fleet cannot be rehearsed."""
    repository, tag = _split_image("--image", options.image)
    if options.gateway_image:
        _split_image("--gateway-image", options.gateway_image)
    found = inspect_cluster(kubectl)
    refuse_other_rehearsal(kubectl)
    stand_in_cluster = StandInCluster(
        kuberay=found.kuberay,
        image=RayImage(repository=repository, tag=tag, includes_rayhelm=True),
        haproxy=options.gateway_image or (NODE_GATEWAY_IMAGE if NODE_GATEWAY_IMAGE in found.list_images() else ""),
        api_servers=found.api_servers,
        operator_namespace=found.operator_namespace,
    )
    first = remove_external(build_stand_ins(old, stand_in_cluster, cluster=options.cluster, services=options.services))
    if not first.targets:
        raise FleetError(Problem("no model of this fleet has a CPU stand-in:\n" + "\n".join(first.notes)))
    if new is None:
        return Scenario(found, first, first, [], *_select_targets(first, first))
    then = remove_external(build_stand_ins(new, stand_in_cluster, cluster=options.cluster, services=options.services))
    before, after, edits = mirror_edits(first, then)
    return Scenario(found, before, after, plan_steps(before, after, edits), *_select_targets(before, after))


def list_releases(scenario: Scenario) -> tuple[list[Release], list[list[dict[str, object]]], list[dict[str, object]]]:
    """Return every release of the rehearsal, its objects, and the objects of the largest service that is replaced."""
    added = [step.release for step in scenario.steps if step.effect == "install"]
    changes = [step.release for step in scenario.steps if step.effect not in ("install", "uninstall")]
    render_objects(changes)  # a chart refuses its values before anything is created
    releases = sorted([*scenario.old.releases, *added], key=lambda each: _ORDER.index(each.chart))
    replaced = render_objects([step.release for step in scenario.steps if step.effect == "new cluster"])
    largest = max(replaced, key=lambda each: sum(pod.memory for pod in list_pod_requests(each)), default=[])
    return releases, render_objects(releases), largest


def select_releases(rendered: Rendered, options: RehearsalOptions) -> list[Release]:
    """Return the fleet's own releases of the selected cluster and services."""
    return [
        replace(release, file="", about="")
        for release in rendered.releases
        if release.cluster == options.cluster
        and not (release.chart == "ray-service" and options.services and release.name not in options.services)
    ]


def _split_image(option: str, name: str) -> tuple[str, str]:
    """Return repository and tag; a port is not a tag."""
    repository, _, tag = name.rpartition(":")
    if not repository or not tag or "/" in tag:
        raise UsageError(f"{option} is `{name}`; REPOSITORY:TAG is needed")
    return repository, tag


def _select_targets(old: StandInSet, new: StandInSet) -> tuple[list[LoadTarget], list[LoadTarget]]:
    """Return the models before and after the change, which receive the load, and the added ones."""
    before, after = ({target.name: target for target in stand_ins.targets} for stand_ins in (old, new))
    kept = [target for name, target in before.items() if after.get(name) == target]
    if not kept:
        raise FleetError(
            Problem("no model exists before and after the change at the same address: nothing can receive the load")
        )
    return kept, [target for name, target in after.items() if before.get(name) != target]
