"""What the rendered values leave open: images without digest, claims without storage class, gateways without host.

`plan`, `render` and `lint` report these alike. Values that were not read from a registry stay empty, so a person has to
write them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.planned_values import get_value
from rayhelm.deploy.compose.release_names import GATEWAY
from rayhelm.deploy.values.ray_service.serve import Serve
from rayhelm.errors import Fix, Problem, Rewrite
from rayhelm.facts.versions import PinnedImage, versions
from rayhelm.fleet.ingress_annotations import build_nginx_ingress
from rayhelm.fleet.labels import FleetImage
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.sources import is_downloaded
from rayhelm.fleet.yaml_nodes import Path, dotted_whole
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = [
    "OpenImage",
    "find_assumed_storage",
    "find_open_gateways",
    "find_open_images",
    "find_short_timeouts",
    "find_single_node_claims",
    "list_warnings",
]


@dataclass(frozen=True)
class OpenImage:
    """An image whose tag can be moved to other content, because it has no digest."""

    repository: str
    tag: str
    file: str
    """The fleet file, or the chart whose values the user has to extend: `render` overwrites the files that it wrote."""
    key: str
    """Key of the digest in `file`."""

    def as_dict(self) -> dict[str, str]:
        return {
            "image": self.repository,
            "tag": self.tag,
            "file": self.file,
            "key": self.key,
            "command": f"crane digest {self.repository}:{self.tag}",
        }


def list_warnings(plan: Plan) -> tuple[str, ...]:
    """All of them as texts: one table of images, and one text for each cluster with such claims and each gateway."""
    images = find_open_images(plan)
    problems = (
        *find_assumed_storage(plan),
        *find_single_node_claims(plan),
        *find_open_gateways(plan),
        *find_short_timeouts(plan),
    )
    return (*([_table(images)] if images else []), *(str(plan.source.locate(problem)) for problem in problems))


def find_open_images(plan: Plan) -> tuple[OpenImage, ...]:
    """The images of all releases that have no digest."""
    return tuple(dict.fromkeys([*_ray_images(plan), *_gateway_images(plan)]))


def _ray_images(plan: Plan) -> Iterator[OpenImage]:
    """Images of head and workers: those of the fleet file, else the default one."""
    for name, service in plan.services.items():
        origins = Origins("ray-service", name, service.cluster, plan)
        declared: FleetImage | PinnedImage = plan.declared.clusters[service.cluster].image or versions().images["ray"]
        if not declared.digest:
            yield _build_open(declared.repository, declared.tag, origins.find_setting("image.digest"), plan)
        for group, worker in service.workers.items():
            image = plan.declared.pools[worker.pool].image if worker.pool else None
            if image and not image.digest:
                path = origins.find_setting(f"workerGroups.{group}.image")
                yield _build_open(image.repository, image.tag, path, plan)


def _gateway_images(plan: Plan) -> Iterator[OpenImage]:
    """The fleet file names the image of a gateway by an override of its chart's values."""
    image = versions().images["haproxy"]
    if image.digest:
        return
    for cluster in plan.gateways:
        declared = plan.declared.clusters[cluster].gateway.values.get("image")
        named = declared if isinstance(declared, dict) else {}
        if not named.get("digest"):
            path = _gateway_origins(cluster, plan).find_setting("image")
            yield _build_open(named.get("repository", image.repository), named.get("tag", image.tag), path, plan)


def _build_open(repository: str, tag: str | None, path: Path, plan: Plan) -> OpenImage:
    """`path`: where the fleet file has the image."""
    return OpenImage(repository, tag or "", plan.source.file, dotted_whole((*path, "digest")))


def _gateway_origins(cluster: str, plan: Plan) -> Origins:
    return Origins(GATEWAY, GATEWAY, cluster, plan)


def find_assumed_storage(plan: Plan) -> Iterator[Problem]:
    """Yield each cluster whose default storage class has to offer ReadWriteMany, which no one stated."""
    for name, cluster in plan.declared.clusters.items():
        if cluster.weights.storage_class or cluster.weights.access_mode:
            continue
        services = _list_spread_claims(name, plan)
        if not services:
            continue
        named = " and ".join(f"`{service}`" for service in services)
        message = (
            f"pods on several nodes read the weights of {named}, so the claim is ReadWriteMany, and cluster `{name}`"
            " names no storage class: it is the default one, which on most clouds is block storage without this mode."
            " The workers would wait for the volume"
        )
        path: Path = ("clusters", name)
        named_class = _extend((*path, "weights"), {"storageClass": "shared-nvme"})
        fix = Fix("weights", rewrite=named_class, why="with your name: kubectl get storageclass")
        stated_mode = _extend((*path, "weights"), {"accessMode": "ReadWriteMany"})
        states = Fix("weights", rewrite=stated_mode, why="if the default class has this mode")
        yield problem_at(path, message, fix, alternatives=[states])


def find_single_node_claims(plan: Plan) -> Iterator[Problem]:
    """Yield each cluster that pins ReadWriteOnce, although pods on several nodes mount the claim of a service."""
    for name, cluster in plan.declared.clusters.items():
        if cluster.weights.access_mode != "ReadWriteOnce":
            continue
        services = _list_spread_claims(name, plan)
        if not services:
            continue
        named = " and ".join(f"`{service}`" for service in services)
        message = (
            f"`weights.accessMode` is ReadWriteOnce, and pods on several nodes read the weights of {named}:"
            " those on other nodes would wait for the volume"
        )
        shared = {"storageClass": "shared-nvme", "accessMode": "ReadWriteMany"}
        path: Path = ("clusters", name)
        fix = Fix("weights", rewrite=_extend((*path, "weights"), shared), why="with your name of the class")
        yield problem_at(path, message, fix)


def _list_spread_claims(cluster: str, plan: Plan) -> list[str]:
    """List the services with a claim of their own for downloaded weights, which pods on several nodes can mount."""
    return [
        service
        for service, planned in plan.services.items()
        if planned.cluster == cluster
        and planned.claim
        and planned.claim.needs_several_nodes
        and any(is_downloaded(model.source, model.revision) for model in plan.of_service(service))
        and not _has_own_claim(service, plan)
    ]


def _has_own_claim(service: str, plan: Plan) -> bool:
    """Return whether an override of the service names an existing claim."""
    declared = plan.declared.services.get(service)
    weights = declared.values.get("weights") if declared else None
    claim = weights.get("claim") if isinstance(weights, dict) else None
    return isinstance(claim, dict) and bool(claim.get("existingClaim"))


def find_open_gateways(plan: Plan) -> tuple[Problem, ...]:
    """Gateways that only pods of their cluster can reach."""
    return tuple(_find_open_gateways(plan))


def _find_open_gateways(plan: Plan) -> Iterator[Problem]:
    for cluster, gateway in plan.gateways.items():
        if plan.declared.clusters[cluster].gateway.host:
            continue
        path: Path = ("clusters", cluster, "gateway")
        clients = plan.declared.clusters[cluster].gateway.allowed_clients
        exposed = {
            "host": "ai.example.com",
            "ingress": build_nginx_ingress(),
            "allowedClients": list(dict.fromkeys([*clients, "ingress-nginx"])),
        }
        message = (
            f"the gateway of cluster `{cluster}` has no `host`: it gets no Ingress, no HTTPRoute and no TLS, so only"
            f" pods of the cluster reach it, at {gateway.url}. No change is needed if all clients are in the cluster"
        )
        fix = Fix(rewrite=_extend(path, exposed), why="or `httpRoute` for the Gateway API, or `tls`; with your names")
        yield problem_at(path, message, fix)


def find_short_timeouts(plan: Plan) -> Iterator[Problem]:
    """Yield each service and gateway that gives up before a model that scaled to zero is loaded."""
    zero = [model for model in plan.models.values() if not model.min_replicas]
    if not zero:
        return
    from rayhelm.deploy.values.gateway.limits import Timeouts

    for service in dict.fromkeys(model.service for model in zero):
        slowest = max((model for model in zero if model.service == service), key=lambda model: model.scaling.load_s)
        declared = plan.declared.services.get(service)
        written = declared.values if declared else {}
        seconds = _read_number(written, ("serve", "requestTimeoutSeconds"), Serve().request_timeout_seconds)
        if slowest.scaling.load_s >= seconds:
            enough = _add_margin(slowest.scaling.load_s)
            origins = Origins("ray-service", service, slowest.cluster, plan)
            fix = Fix("/" + dotted_whole(origins.find_setting("serve.requestTimeoutSeconds")), enough)
            yield problem_at(slowest.path, _describe_wait(slowest, "Serve", seconds), fix)
    for cluster in plan.gateways:
        here = [model for model in zero if model.cluster == cluster]
        if not here:
            continue
        slowest = max(here, key=lambda model: model.scaling.load_s)
        path = _gateway_origins(cluster, plan).values_path
        written = plan.declared.clusters[cluster].gateway.values
        seconds = _read_number(written, ("timeouts", "serverSeconds"), Timeouts().server_seconds)
        if slowest.scaling.load_s >= seconds:
            # Above that of Serve, so that clients get Serve's own error. A pod that stops waits as long.
            enough = _add_margin(slowest.scaling.load_s) + 60
            longer = _extend(path, {"timeouts": {"serverSeconds": enough}, "drain": {"seconds": enough}})
            fix = Fix("/" + dotted_whole(path), rewrite=longer)
            message = _describe_wait(slowest, f"the gateway of cluster `{cluster}`", seconds)
            yield problem_at(slowest.path, message, fix)


def _describe_wait(model: ModelPlan, who: str, seconds: float) -> str:
    return (
        f"the first request after a scale to zero waits {model.scaling.load_s:g} s until `{model.model}` is loaded, and"
        f" {who} ends it after {seconds:g} s"
    )


def _add_margin(seconds: float) -> int:
    """Return a timeout for a load time, which is an assumption."""
    return ceil(1.5 * seconds / 60) * 60


def _read_number(values: Mapping[str, Any], key: tuple[str, ...], default: float) -> float:
    found = get_value(values, key)
    return float(found) if isinstance(found, int | float) else default


def _extend(place: Path, more: Mapping[str, Any]) -> Rewrite:
    """Keep what the fleet file has at a place, and set further keys."""
    return Rewrite(place, lambda written: {**(written or {}), **more})


def _table(images: Sequence[OpenImage]) -> str:
    rows = [("image", "tag", "file", "key"), *((each.repository, each.tag, each.file, each.key) for each in images)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    count = "1 image has" if len(images) == 1 else f"{len(images)} images have"
    first = images[0]
    return "\n".join(
        [
            f"{count} no digest: the content of a tag can change without notice. Write the digest:",
            *(f"    {line}" for line in lines),
            "  fix:",
            f"    crane digest {first.repository}:{first.tag}   # prints the digest of the first one",
        ]
    )
