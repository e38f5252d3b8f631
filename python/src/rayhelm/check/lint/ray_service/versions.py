"""ImageVersions of a RayService: rayVersion, and Ray and Python in the images of head and workers."""

from collections.abc import Iterator

from rayhelm.check.lint.ray_service.source import CLUSTER, ImageVersions, RayService, as_map
from rayhelm.deploy.serve_models import find_llm_builder
from rayhelm.errors import Fix, Problem
from rayhelm.facts.versions import versions

__all__ = ["check_versions", "find_ray_version"]


def find_ray_version(service: RayService) -> str:
    """Return the version of Ray that the head's image has, else `rayVersion`; empty if neither says it."""
    images = [ImageVersions.of_image(image) for _, image in service.list_images()]
    return next((each.ray for each in images if each.ray), str(service.cluster.get("rayVersion") or ""))


def check_versions(service: RayService) -> Iterator[Problem]:
    """Yield versions that contradict each other, and images without vLLM."""
    images = [(path, image, ImageVersions.of_image(image)) for path, image in service.list_images()]
    known = [each for each in images if each[2].ray]
    if not known:
        return
    head_path, head_image, head = known[0]
    problem_at = service.document.problem
    stated = service.cluster.get("rayVersion")
    if stated is not None and str(stated) != head.ray:
        message = f"is {stated}, and the image {head_image} has Ray {head.ray}"
        yield problem_at((*CLUSTER, "rayVersion"), message, Fix("", head.ray), "ray-version")
    for path, image, found in known[1:]:
        for what, one, other in (("Ray", head.ray, found.ray), ("Python", head.python, found.python)):
            if one and other and one != other:
                message = (
                    f"{image} has {what} {other}, and the image of {_name(head_path)} has {what} {one}:"
                    " Ray refuses a worker with another version"
                )
                fix = Fix("", head_image if found.name == head.name else image.replace(found.tag, head.tag))
                yield problem_at(path, message, fix, "ray-version")
                break
    if _needs_vllm(service):
        yield from _check_vllm(service)


def _name(path: tuple[str | int, ...]) -> str:
    return "the head" if "headGroupSpec" in path else "another group"


def _needs_vllm(service: RayService) -> bool:
    """Return whether an application uses Ray Serve LLM, and none installs packages at run time."""
    applications = [application for _, application in service.list_applications()]
    installs = any({"pip", "uv", "conda", "image_uri"} & set(as_map(each.get("runtime_env"))) for each in applications)
    return not installs and any(find_llm_builder(str(each.get("import_path"))) for each in applications)


def _check_vllm(service: RayService) -> Iterator[Problem]:
    ours = versions().images["ray"]
    for path, image in service.list_images():
        found = ImageVersions.of_image(image)
        if found.name != "ray":
            continue
        message = f"{image} has no vLLM, which ray.serve.llm needs; the images rayproject/ray-llm have it"
        is_known = found.ray == versions().ray
        fix = Fix("", f"{ours.repository}:{ours.tag}") if is_known else Fix.advice(f"rayproject/ray-llm:{found.ray}-…")
        yield service.document.problem(path, message, fix, "ray-image")
