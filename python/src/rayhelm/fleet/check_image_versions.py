"""Versions of Ray and vLLM in the images of a cluster, which have to be those of the plan."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.ray_images import FleetRayImage
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["check_image_versions", "warn_image_versions"]


def check_image_versions(fleet: Fleet) -> Iterator[Problem]:
    """Yield images whose tag says another version than the plan has, and those of pools that their head cannot use."""
    for path, image, head_ray in _list_images(fleet):
        is_pool = path[0] == "pools"
        ray, vllm = image.ray_of_tag, image.vllm_of_tag
        if is_pool and (image.ray or ray or head_ray) != head_ray:
            message = (
                f"the image has Ray {image.ray or ray}, and the head of its cluster has Ray {head_ray}: a worker with"
                " another version cannot join"
            )
            yield problem_at(path, message, _build_fix(image, image.ray or ray, head_ray, "ray"))
        elif not is_pool and image.ray is None and ray and ray != versions().ray:
            yield problem_at(path, *_describe(image, "Ray", ray, versions().ray))
        if image.vllm is None and vllm and vllm != versions().vllm:
            yield problem_at(path, *_describe(image, "vLLM", vllm, versions().vllm))


def warn_image_versions(fleet: Fleet) -> Iterator[str]:
    """Yield a warning for each image whose versions the fleet file says to be others than those of the plan."""
    for path, image, _ in _list_images(fleet):
        pairs = ("Ray", image.ray, versions().ray), ("vLLM", image.vllm, versions().vllm)
        if other := [f"{name} {own}, and not {ours}" for name, own, ours in pairs if own and own != ours]:
            yield (
                f"`{'.'.join(map(str, path))}` has {'; '.join(other)}: charts, Serve config, memory and speed are"
                " those of the plan's versions, and nothing was tested with yours"
            )


def _list_images(fleet: Fleet) -> Iterator[tuple[Path, FleetRayImage, str]]:
    """Yield path and image of clusters and pools, with the version of Ray that the head of the cluster has."""
    heads = {name: (each.image.ray if each.image else None) or versions().ray for name, each in fleet.clusters.items()}
    for name, cluster in fleet.clusters.items():
        if cluster.image:
            yield ("clusters", name, "image"), cluster.image, heads[name]
    for name, pool in fleet.pools.items():
        if pool.image and pool.cluster in heads:
            yield ("pools", name, "image"), pool.image, heads[pool.cluster]


def _describe(image: FleetRayImage, name: str, found: str, ours: str) -> tuple[str, Fix, str, tuple[Fix, ...]]:
    key = name.lower()
    message = f"tag `{image.tag}` is of {name} {found}, and the plan is for {name} {ours}"
    why = f"if the image has {name} {found}: the plan stays for {ours}, and warns"
    written = image.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    return message, _build_fix(image, found, ours, key), "", (Fix("", {**written, key: found}, why),)


def _build_fix(image: FleetRayImage, found: str, wanted: str, key: str) -> Fix:
    """Return the image with the wanted version: the stock image of Ray for one of its builds, else one to build."""
    stock = versions().images["ray"]
    written = image.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    if key in written:
        written[key] = wanted
    if image.tag:
        is_stock = image.repository.removeprefix("docker.io/") == stock.repository and wanted == versions().ray
        written["tag"] = stock.tag if is_stock else image.tag.replace(found, wanted)
    # The digest is that of the other image.
    written = {name: value for name, value in written.items() if name != "digest" or not image.tag}
    return Fix("", written, "" if image.repository.endswith(stock.repository) else "one that you build")
