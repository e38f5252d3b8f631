"""What a fleet has outside of itself, and a rehearsal goes without. Pure."""

from dataclasses import dataclass, replace

from rayhelm.rehearsal.without_gpus import StandInSet
from rayhelm.render.releases import Release
from rayhelm.values.gateway import GatewayValues
from rayhelm.values.gateway.exposure import Exposure
from rayhelm.values.gateway.operations import PodMonitor as DoorMonitor
from rayhelm.values.ray_service import RayServiceValues
from rayhelm.values.ray_service.cluster import GcsFaultTolerance, Ray
from rayhelm.values.ray_service.operations import PodMonitor

__all__ = ["remove_external"]


@dataclass
class _Left:
    """Notes on what is left out, each once."""

    notes: dict[str, None]

    def out(self, there: object, usual: object, note: str) -> None:
        if there != usual:
            self.notes[note] = None


def remove_external(stand_ins: StandInSet) -> StandInSet:
    """The same without its Redis, its Prometheus, its ways in from outside and names in foreign namespaces."""
    left = _Left({})
    releases = tuple(_alone(release, left) for release in stand_ins.releases)
    return replace(stand_ins, releases=releases, notes=(*stand_ins.notes, *left.notes))


def _alone(release: Release, left: _Left) -> Release:
    match release.values:
        case RayServiceValues() as values:
            return replace(release, values=_service(values, left))
        case GatewayValues() as values:
            return replace(release, values=_gateway(values, left))
    return release


def _service(values: RayServiceValues, left: _Left) -> RayServiceValues:
    redis = values.gcs_fault_tolerance.enabled
    left.out(redis, False, "no Redis: a head that dies takes its cluster with it here")
    left.out(values.pod_monitor.enabled, False, "nobody scrapes it: PodMonitors are left out")
    left.out(values.aliases, {}, "names of services in other namespaces are left out")
    left.out(values.ray.version, Ray().version, f"Ray {Ray().version} stands in for {values.ray.version}")
    return values.model_copy(
        update={
            "gcs_fault_tolerance": GcsFaultTolerance(),
            "pod_monitor": PodMonitor(),
            "aliases": {},
            "ray": Ray(),
        }
    )


def _gateway(values: GatewayValues, left: _Left) -> GatewayValues:
    left.out(values.exposure, Exposure(), "called from within: the way in from outside and its TLS are left out")
    left.out(values.pod_monitor.enabled, False, "nobody scrapes it: PodMonitors are left out")
    return values.model_copy(update={"exposure": Exposure(), "pod_monitor": DoorMonitor()})
