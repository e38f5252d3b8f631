"""Images that Kubernetes objects name."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["list_images_of"]

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def list_images_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the images of the pods that an object has or makes, and those that operators take from it."""
    yield from _list_pod_images(item)
    spec = item.get("spec") or {}
    if item["kind"] == "ClusterPolicy":
        for part in spec.values():
            if isinstance(part, Mapping) and {"repository", "image", "version"} <= part.keys():
                separator = "@" if str(part["version"]).startswith("sha256:") else ":"
                yield f"{part['repository']}/{part['image']}{separator}{part['version']}"
    if item["kind"] == "GpuDevicePlugin":
        yield str(spec["image"])


def _list_pod_images(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _list_pod_images(each)
    if not isinstance(node, Mapping):
        return
    for key, value in node.items():
        if key in _CONTAINERS and isinstance(value, list):
            yield from (str(container["image"]) for container in value if container.get("image"))
        if key == "volumes" and isinstance(value, list):
            yield from (str(volume["image"]["reference"]) for volume in value if volume.get("image"))
        if key == "autoscalerOptions" and isinstance(value, Mapping) and value.get("image"):
            yield str(value["image"])
        yield from _list_pod_images(value)
