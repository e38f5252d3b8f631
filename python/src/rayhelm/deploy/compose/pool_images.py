"""Images of the pools used by a plan: each runs on the GPUs of one vendor."""

from collections.abc import Iterator

from rayhelm.errors import Fix, Problem
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import Vendor
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet
from rayhelm.fleet.labels import FleetImage
from rayhelm.fleet.pools import Pool
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["find_wrong_images"]

_PLATFORMS = {"nvidia": "CUDA", "amd": "ROCm", "intel": "XPU"}


def find_wrong_images(plan: Plan, fleet: Fleet, facts: Catalog) -> Iterator[Problem]:
    """Yield a problem for each used pool whose image is for GPUs of another vendor: the stock image, or one that a pool
    of another vendor runs too."""
    stock = versions().images["ray"]
    used = sorted({model.pool for model in plan.models.values()})
    vendors = {name: _find_vendor(fleet.pools[name], facts) for name in used}
    images = {name: _find_image(name, fleet) for name in used}
    for name in used:
        vendor, image = vendors[name], images[name]
        if vendor not in _PLATFORMS:
            continue
        if image is None and vendor not in stock.vendors:
            has = " and ".join(_PLATFORMS[each] for each in stock.vendors)
            why = f"the default image {stock.repository}:{stock.tag} is for {has}"
            yield _build_problem(name, vendor, why)
        elif image and vendor != "nvidia" and (other := _find_other_vendor(name, images, vendors, fleet)):
            why = f"{image.repository} is also the image of pool `{other}`, whose GPUs are of {vendors[other]}"
            yield _build_problem(name, vendor, why)


def _find_vendor(pool: Pool, facts: Catalog) -> Vendor:
    return facts.gpu(pool.gpu or pool.hosts[0].gpu).vendor


def _find_image(name: str, fleet: Fleet) -> FleetImage | None:
    """Return the image that the fleet file sets for a pool; None for the stock image."""
    pool = fleet.pools[name]
    return pool.image or fleet.clusters[pool.cluster].image


def _find_other_vendor(
    name: str, images: dict[str, FleetImage | None], vendors: dict[str, Vendor], fleet: Fleet
) -> str:
    """Return a pool of another vendor in the same cluster that runs the same image; empty if there is none."""
    cluster = fleet.pools[name].cluster
    return next(
        (
            other
            for other, image in images.items()
            if image == images[name] and vendors[other] != vendors[name] and fleet.pools[other].cluster == cluster
        ),
        "",
    )


def _build_problem(name: str, vendor: Vendor, why: str) -> Problem:
    image = {"repository": f"registry.example/ray-vllm-{_PLATFORMS[vendor].lower()}", "tag": f"{versions().ray}-py312"}
    return problem_at(
        ("pools", name),
        f"the GPUs of pool `{name}` are of {vendor} and need an image for {_PLATFORMS[vendor]}, and {why}",
        Fix("image", image, f"one that you build, with Ray {versions().ray} and vLLM {versions().vllm}"),
    )
