"""Images of the pools used by a plan: each runs on the GPUs of one vendor."""

import re
from collections.abc import Iterator, Sequence

from rayhelm.errors import Fix, Problem
from rayhelm.facts.gpu import Vendor
from rayhelm.facts.versions import versions
from rayhelm.fleet.labels import FleetImage
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["find_wrong_images"]

_ARM_TAG = re.compile(r"(?:^|-)(?:aarch64|arm64)(?:-|$)")
_PLATFORMS = {"nvidia": "CUDA", "amd": "ROCm", "intel": "XPU"}
_PLATFORM_OF_RESOURCE = {"habana.ai/gaudi": "HPU"}
"""Accelerators of a vendor that need another platform than its GPUs."""


def find_wrong_images(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each used pool whose image is for GPUs of another vendor, the stock image or one that a pool
    of another vendor runs too; or for processors of another architecture."""
    stock = versions().images["ray"]
    used = sorted({model.pool for model in plan.models.values()})
    vendors = {name: _find_vendor(plan.declared.pools[name], plan) for name in used}
    images = {name: _find_image(name, plan) for name in used}
    for name in used:
        vendor, image = vendors[name], images[name]
        if vendor not in _PLATFORMS:
            continue
        if image is None and vendor not in stock.vendors:
            has = " and ".join(_PLATFORMS[each] for each in stock.vendors)
            why = f"the default image {stock.repository}:{stock.tag} is for {has}"
            yield _build_problem(name, vendor, why, plan)
        elif image and vendor != "nvidia" and (other := _find_other_vendor(name, images, vendors, plan)):
            why = f"{image.repository} is also the image of pool `{other}`, whose GPUs are of {vendors[other]}"
            yield _build_problem(name, vendor, why, plan)
        elif problem := _find_wrong_architecture(name, image, used, plan):
            yield problem


def _find_wrong_architecture(name: str, image: FleetImage | None, used: Sequence[str], plan: Plan) -> Problem | None:
    """Return the problem of a pool on processors that a build of Ray does not run on. Of other images nothing is
    known."""
    stock, wanted = versions().images["ray"], _find_architecture(name, plan)
    is_stock = image is None or (
        image.repository.removeprefix("docker.io/") == stock.repository and not _ARM_TAG.search(image.tag or "")
    )
    if not is_stock or not stock.architectures or wanted in stock.architectures:
        return None
    cluster = plan.declared.pools[name].cluster
    together = [each for each in used if plan.declared.pools[each].cluster == cluster]
    is_for_all = all(_find_architecture(each, plan) == wanted for each in together)
    has_own = plan.declared.pools[name].image is not None
    tag = f"{versions().ray}-py{versions().python.image.replace('.', '')}"
    built = {"repository": f"registry.example/ray-vllm-{wanted}", "tag": tag}
    return problem_at(
        ("pools", name),
        f"the nodes of pool `{name}` have {wanted} processors, and {image.repository if image else stock.repository} is"
        f" built for {' and '.join(stock.architectures)}",
        Fix(
            f"/clusters.{cluster}.image" if is_for_all and not has_own else "image",
            built,
            f"one that you build for linux/{wanted}, with Ray {versions().ray} and vLLM {versions().vllm}",
        ),
    )


def _find_architecture(name: str, plan: Plan) -> str:
    """Return the architecture of the nodes; `arm64` for a pool with both, because its image has to be for both."""
    pool = plan.declared.pools[name]
    return min(
        (plan.facts.gpu(gpu).host_architecture for gpu in ([pool.gpu] if pool.gpu else [h.gpu for h in pool.hosts])),
        key=lambda architecture: architecture != "arm64",
    )


def _find_vendor(pool: Pool, plan: Plan) -> Vendor:
    return plan.facts.gpu(pool.gpu or pool.hosts[0].gpu).vendor


def _find_image(name: str, plan: Plan) -> FleetImage | None:
    """Return the image that the fleet file sets for a pool; None for the stock image."""
    pool = plan.declared.pools[name]
    return pool.image or plan.declared.clusters[pool.cluster].image


def _find_other_vendor(name: str, images: dict[str, FleetImage | None], vendors: dict[str, Vendor], plan: Plan) -> str:
    """Return a pool of another vendor in the same cluster that runs the same image; empty if there is none."""
    cluster = plan.declared.pools[name].cluster
    return next(
        (
            other
            for other, image in images.items()
            if image == images[name]
            and vendors[other] != vendors[name]
            and plan.declared.pools[other].cluster == cluster
        ),
        "",
    )


def _build_problem(name: str, vendor: Vendor, why: str, plan: Plan) -> Problem:
    pool = plan.declared.pools[name]
    resource = plan.facts.gpu(pool.gpu or pool.hosts[0].gpu).resource
    platform = _PLATFORM_OF_RESOURCE.get(resource, _PLATFORMS[vendor])
    image = {"repository": f"registry.example/ray-vllm-{platform.lower()}", "tag": f"{versions().ray}-py312"}
    return problem_at(
        ("pools", name),
        f"the GPUs of pool `{name}` are of {vendor} and need an image for {platform}, and {why}",
        Fix("image", image, f"one that you build, with Ray {versions().ray} and vLLM {versions().vllm}"),
    )
