"""Images of the workers of each pool, as pods name them."""

from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import Fleet

__all__ = ["name_worker_image"]


def name_worker_image(fleet: Fleet, pool: str) -> str:
    """Return the image of a pool's workers: its own, that of its cluster, or the stock image."""
    declared = fleet.pools[pool]
    image = declared.image or fleet.clusters[declared.cluster].image
    stock = versions().images["ray"]
    repository, tag, digest = (
        (image.repository, image.tag or "", image.digest or "")
        if image
        else (stock.repository, stock.tag, stock.digest)
    )
    return f"{repository}@{digest}" if digest else f"{repository}:{tag}"
