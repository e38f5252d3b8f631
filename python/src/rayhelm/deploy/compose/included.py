"""Images of a fleet that lack the Python package rayhelm, and what needs it."""

from collections.abc import Iterable, Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.fleet.labels import FleetImage
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import ModelPlan, Plan

__all__ = ["find_images_without_rayhelm", "find_missing_for_adapters"]


def find_images_without_rayhelm(models: Iterable[ModelPlan], plan: Plan) -> Iterator[tuple[str, Fix]]:
    """Return each cluster and pool of `models` whose image lacks rayhelm, with the fix."""
    models = list(models)
    for name in dict.fromkeys(model.cluster for model in models):
        image = plan.declared.clusters[name].image
        if not (image and image.includes_rayhelm):
            yield f"cluster `{name}`", _include_rayhelm(f"/clusters.{name}.image", image)
    for pool in dict.fromkeys(model.pool for model in models):
        if (image := plan.declared.pools[pool].image) and not image.includes_rayhelm:
            yield f"pool `{pool}`", _include_rayhelm(f"/pools.{pool}.image", image)


def find_missing_for_adapters(plan: Plan) -> Iterator[Problem]:
    """Return a problem for each image without rayhelm that serves adapters or aliases."""
    for model in plan.models.values():
        key = "adapters" if model.adapters else "aliases" if model.aliases else ""
        if key:
            for what, fix in find_images_without_rayhelm(plan.of_service(model.service), plan):
                why = f"{key} need the ingress of rayhelm, and the image of {what} lacks rayhelm"
                yield problem_at((*model.path, key), why, fix)


def _include_rayhelm(path: str, image: FleetImage | None) -> Fix:
    """Return the fix that sets `includesRayhelm` at `path`, for `image` or, without one, for an example."""
    image = image or FleetImage(repository="registry.example/team/ray-vllm", tag="2.60.0-py312")
    named = image.model_copy(update={"includes_rayhelm": True})
    return Fix(
        path, named.model_dump(by_alias=True, exclude_none=True), why="build the image with the package rayhelm first"
    )
