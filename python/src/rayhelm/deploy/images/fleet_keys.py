"""Keys of the fleet file that decide the images of a release."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.planned_values import Key
from rayhelm.deploy.images.reference import ImageReference, parse_reference
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.gateway import GatewayValues
from rayhelm.deploy.values.platform import PlatformValues
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.fleet.sources import IMAGE
from rayhelm.planner.plan import Plan

__all__ = ["ImageKey", "list_image_keys"]


@dataclass(frozen=True)
class ImageKey:
    """A key of the fleet file, and the image that it names."""

    path: Key
    image: ImageReference
    form: str
    """`image`: a map with repository, tag and digest; `text`; `operand`: a map of the operator of NVIDIA; `source`: a
    URL of weights."""
    includes_rayhelm: bool = False
    versions: tuple[tuple[str, str], ...] = ()
    """`ray` and `vllm` of the fleet file."""
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
        return (
            {key: value for key, value in found.items() if value}
            | ({"includesRayhelm": True} if self.includes_rayhelm else {})
            | dict(self.versions)
        )


def list_image_keys(release: Release, plan: Plan) -> Iterator[ImageKey]:
    """Yield the keys of a release, also of images that its objects do not use."""
    origins = Origins(release.chart, release.name, release.cluster, plan)
    match release.values:
        case RayServiceValues() as service:
            yield from _list_service_keys(service, origins)
        case GatewayValues() as gateway:
            yield _build_key(origins.find_setting("image"), gateway.image)
        case PlatformValues() as platform:
            yield from _list_platform_keys(platform, origins)


def _list_service_keys(values: RayServiceValues, origins: Origins) -> Iterator[ImageKey]:
    declared = origins.plan.declared
    image = declared.clusters[origins.cluster].image or values.image
    yield _build_key(origins.find_setting("image.repository"), image)
    for name, pool in declared.pools.items():
        if pool.image and pool.cluster == origins.cluster:
            yield _build_key(origins.find_setting("workerGroups.*.image", pool=name), pool.image)
    for key, text in {"weights.download.image": values.weights.download.image, "test.image": values.test.image}.items():
        if text:
            yield ImageKey(origins.find_setting(key), parse_reference(text), "text")
    for model in origins.plan.of_service(origins.name):
        if found := IMAGE.fullmatch(model.source):
            weights = parse_reference(found["reference"])
            path = origins.find_setting("serve.applications.*.models.*.source", model=model.written)
            yield ImageKey(path, weights, "source", folder=found["folder"] or "")


def _list_platform_keys(values: PlatformValues, origins: Origins) -> Iterator[ImageKey]:
    yield _build_key(origins.find_setting("metrics.adapter.image"), values.metrics.adapter.image)
    yield _build_key(origins.find_setting("doctor.image"), values.doctor.image)
    yield _build_key(origins.find_setting("probe.image.repository"), values.probe.image)
    yield ImageKey(origins.find_setting("intel.image"), parse_reference(values.intel.image), "text")
    for name, operand in values.nvidia.cluster_policy.operands.model_dump(by_alias=True).items():
        version = operand["version"]
        is_digest = version.startswith("sha256:")
        image = ImageReference(
            f"{operand['repository']}/{operand['image']}", "" if is_digest else version, version if is_digest else ""
        )
        yield ImageKey(origins.find_setting(f"nvidia.clusterPolicy.operands.{name}"), image, "operand")


def _build_key(path: Key, image: Any) -> ImageKey:
    reference = ImageReference(image.repository, image.tag or "", image.digest or "")
    said = tuple((key, version) for key in ("ray", "vllm") if (version := getattr(image, key, None)))
    return ImageKey(path, reference, "image", getattr(image, "includes_rayhelm", False), said)
