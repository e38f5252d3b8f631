"""`rayhelm lint` of a RayService: the checks of this package, and what they cannot know."""

from collections.abc import Iterator, Sequence
from functools import partial

from rayhelm.check.admission.manifests import Manifest
from rayhelm.check.lint.fleet import Checked, NotChecked
from rayhelm.check.lint.ray_service.applications import check_applications, list_models
from rayhelm.check.lint.ray_service.capacity import ClusterGpus, check_demand, check_replicas, list_capacity_warnings
from rayhelm.check.lint.ray_service.data_path import check_data_path
from rayhelm.check.lint.ray_service.demand import Demand, list_demands
from rayhelm.check.lint.ray_service.pods import is_autoscaled, list_pods
from rayhelm.check.lint.ray_service.serve_keys import IGNORED
from rayhelm.check.lint.ray_service.source import ImageVersions, RayService, as_list, as_map, read_ray_service
from rayhelm.check.lint.ray_service.versions import check_versions, find_ray_version
from rayhelm.deploy.serve_models import find_llm_builder
from rayhelm.errors import Diagnostics, Problem
from rayhelm.facts.versions import versions

__all__ = ["RULES", "check_ray_services"]

RULES = (
    "ray-config",
    "ray-data-path",
    "ray-gpus",
    "ray-image",
    "ray-import-path",
    "ray-llm-config",
    "ray-version",
    "vllm-argument",
)
"""Rules of this package: what Ray and vLLM refuse. The others are of the policies."""

_OF_VERSION = ("vllm-argument", "ray-llm-config")
"""Rules that hold for the versions of `data/versions.yaml`."""


def check_ray_services(manifests: Sequence[Manifest]) -> Checked:
    """Check every RayService among the objects."""
    checked, found = Checked(), Diagnostics()
    for manifest in manifests:
        if manifest.item["kind"] != "RayService" or not str(manifest.item["apiVersion"]).startswith("ray.io/"):
            continue
        if service := found.run(partial(read_ray_service, manifest)):
            checked.add(_check(service))
    checked.problems += found.problems
    return checked


def _check(service: RayService) -> Checked:
    name = f"{service.document.file}: RayService {service.name}"
    checked = Checked()
    ray = find_ray_version(service)
    is_known = ray in ("", versions().ray)
    for problem in (*check_applications(service), *check_versions(service), *check_data_path(service)):
        if problem.rule == IGNORED:
            checked.warnings.append(f"{problem.location}: {problem.path}: {problem.message}. Serve ignores it")
        elif is_known or problem.rule not in _OF_VERSION:
            checked.problems.append(problem)
        else:
            checked.warnings.append(f"{problem.location}: {problem.path}: {problem.message}. Ray here is {ray}")
    capacity = ClusterGpus(list(list_pods(service)), is_autoscaled(service))
    demands = [demand for demand in list_demands(service) if not demand.unknown]
    has_models = any(True for _ in list_models(service))
    if capacity.is_known:
        found = [*_check_gpus(service, demands, capacity)]
        checked.problems += found
        checked.warnings += [] if found else [f"{name}: {each}" for each in list_capacity_warnings(demands, capacity)]
    checked.not_checked = [NotChecked(f"{name}: not checked: {what}") for what in _list_unknown(service, ray, capacity)]
    if not checked.problems:
        parts = ["import paths", *["engine arguments"] * (is_known and has_models), "versions"]
        parts += ["GPUs"] * capacity.is_known
        checked.done.append(f"{name}: no problem in {', '.join(parts)}")
    return checked


def _check_gpus(service: RayService, demands: Sequence[Demand], capacity: ClusterGpus) -> Iterator[Problem]:
    found = [problem for demand in demands for problem in check_demand(service, demand, capacity)]
    yield from found or check_replicas(service, demands, capacity)


def _list_unknown(service: RayService, ray: str, capacity: ClusterGpus) -> Iterator[str]:
    """Yield what was not checked, with the reason."""
    ours = versions()
    has_models = any(True for _ in list_models(service))
    if has_models and ray and ray != ours.ray:
        yield f"engine arguments of the vLLM of Ray {ray}: those of vLLM {ours.vllm} of Ray {ours.ray} are known"
    elif has_models and not any(ImageVersions.of_image(image).ray for _, image in service.list_images()):
        yield f"versions in the image, whose tag does not say them: Ray {ours.ray} with vLLM {ours.vllm} is assumed"
    for path, application in service.list_applications():
        name, written = application.get("name", path[-1]), str(application.get("import_path") or "")
        if written and not find_llm_builder(written) and not written.startswith("ray.serve.llm"):
            yield f"`{written}` (application {name}): its code is in the image or in working_dir"
        if any(isinstance(each, str) for each in as_list(as_map(application.get("args")).get("llm_configs"))):
            yield f"models of application {name} that are in files of the image"
    demands = list(list_demands(service))
    for demand in demands:
        if demand.unknown:
            yield f"GPUs of {demand.name}: {demand.unknown}"
    if any(demand.bundles for demand in demands) and all(group.gpus == 0 for group in capacity.groups):
        yield "GPUs: no group has `nvidia.com/gpu` in the limits of its first container, or `num-gpus`"
    for group in capacity.groups:
        if group.gpus is None:
            yield f"GPUs: group {group.name} has accelerators that KubeRay does not report to Ray as GPUs"
