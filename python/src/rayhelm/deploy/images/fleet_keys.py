"""Keys of the fleet file that decide the images of a release."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rayhelm.deploy.images.reference import ImageReference, parse_reference
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.sources import IMAGE

__all__ = ["ImageKey", "list_image_keys"]

Path = tuple[str, ...]


@dataclass(frozen=True)
class ImageKey:
    """A key of the fleet file, and the image that it names."""

    path: Path
    image: ImageReference
    form: str
    """`image`: a map with repository, tag and digest; `text`; `operand`: a map of the operator of NVIDIA; `source`: a
    URL of weights."""
    includes_rayhelm: bool = False
    folder: str = ""
    """Folder of the image that has the weights, with a slash before it."""

    def format_value(self, repository: str) -> Any:
        """Return the value that names the same image in another repository."""
        moved = ImageReference(repository, self.image.tag, self.image.digest)
        if self.form == "text":
            return str(moved)
        if self.form == "source":
            return f"oci://{moved}{self.folder}"
        if self.form == "operand":
            above, _, name = repository.rpartition("/")
            return {"repository": above, "image": name, "version": self.image.digest or self.image.tag}
        found = {"repository": repository, "tag": self.image.tag, "digest": self.image.digest}
        return {key: value for key, value in found.items() if value} | (
            {"includesRayhelm": True} if self.includes_rayhelm else {}
        )


def list_image_keys(release: Release, fleet: Fleet) -> Iterator[ImageKey]:
    """Yield the keys of a release, also of images that its objects do not use."""
    match release.values:
        case RayServiceValues() as service:
            yield from _list_service_keys(service, release, fleet)
        case GatewayValues() as gateway:
            path = ("clusters", release.cluster, "gateway", "values", "image")
            yield _build_key(path, gateway.image)
        case PlatformValues() as platform:
            yield from _list_platform_keys(platform, release.cluster)


def _list_service_keys(values: RayServiceValues, release: Release, fleet: Fleet) -> Iterator[ImageKey]:
    yield _build_key(("clusters", release.cluster, "image"), values.image)
    for pool in sorted({fleet_pool for fleet_pool, each in fleet.pools.items() if each.image}):
        image = fleet.pools[pool].image
        if image and fleet.pools[pool].cluster == release.cluster:
            yield _build_key(("pools", pool, "image"), image)
    for path, text in {("weights", "download"): values.weights.download.image, ("test",): values.test.image}.items():
        if text:
            yield ImageKey(("services", release.name, "values", *path, "image"), parse_reference(text), "text")
    for model in fleet.models_of(release.name):
        if found := IMAGE.fullmatch(fleet.models[model].source):
            weights = parse_reference(found["reference"])
            yield ImageKey(("models", model, "source"), weights, "source", folder=found["folder"] or "")


def _list_platform_keys(values: PlatformValues, cluster: str) -> Iterator[ImageKey]:
    above = ("clusters", cluster, "values")
    yield _build_key((*above, "metrics", "adapter", "image"), values.metrics.adapter.image)
    yield _build_key((*above, "doctor", "image"), values.doctor.image)
    yield _build_key(("clusters", cluster, "probe", "image"), values.probe.image)
    yield ImageKey((*above, "intel", "image"), parse_reference(values.intel.image), "text")
    for name, operand in values.nvidia.cluster_policy.operands.model_dump(by_alias=True).items():
        version = operand["version"]
        is_digest = version.startswith("sha256:")
        image = ImageReference(
            f"{operand['repository']}/{operand['image']}", "" if is_digest else version, version if is_digest else ""
        )
        yield ImageKey((*above, "nvidia", "clusterPolicy", "operands", name), image, "operand")


def _build_key(path: Path, image: Any) -> ImageKey:
    reference = ImageReference(image.repository, image.tag or "", image.digest or "")
    return ImageKey(path, reference, "image", getattr(image, "includes_rayhelm", False))
