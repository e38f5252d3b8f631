"""Every image of a fleet: those of the objects that its releases render, with the keys that decide them."""

from dataclasses import dataclass

from rayhelm.deploy.compose.planned_values import Key
from rayhelm.deploy.images.fleet_keys import ImageKey, list_image_keys
from rayhelm.deploy.images.objects import list_images_of
from rayhelm.deploy.images.reference import ImageReference, parse_reference
from rayhelm.deploy.render.files import Rendered
from rayhelm.deploy.values.common.globals import read_registry
from rayhelm.deploy.values.emit import select_changed
from rayhelm.errors import UsageError

__all__ = ["ImageOfFleet", "collect_images"]


@dataclass(frozen=True)
class ImageOfFleet:
    """An image, and what uses it."""

    image: ImageReference
    releases: tuple[str, ...]
    """Releases as `chart/name`, with the cluster before them if there are several."""
    keys: tuple[ImageKey, ...]
    """Keys of the fleet file that name it."""


def collect_images(rendered: Rendered, cluster: str = "") -> tuple[ImageOfFleet, ...]:
    """Render the releases, of one cluster if it is named, and return their images by name. Raises FleetError for a
    broken rule, UsageError for an unknown cluster, MissingError without helm."""
    from rayhelm.deploy.charts import helm

    known = rendered.plan.declared.clusters
    if cluster and cluster not in known:
        raise UsageError(f"there is no cluster `{cluster}` (known: {', '.join(known)})")
    uses: dict[ImageReference, dict[str, None]] = {}
    keys: dict[ImageReference, dict[Key, ImageKey]] = {}
    for release in rendered.releases:
        if cluster and release.cluster != cluster:
            continue
        objects = helm.template(
            release.chart,
            release.name,
            release.namespace,
            select_changed(release.values),
            kube_version=release.kubernetes,
        )
        named = {key.path: key for key in list_image_keys(release, rendered.plan)}
        # The chart renders the digest alone, or the tag alone, in the registry of its globals.
        registry = read_registry(release.values)
        by_text = {_format_rendered(key.image.move(registry)): key.image for key in named.values()}
        for text in dict.fromkeys(text for item in objects for text in list_images_of(item)):
            image = by_text.get(text) or parse_reference(text)
            where = f"{release.chart}/{release.name}"
            uses.setdefault(image, {})[f"{release.cluster}: {where}" if len(known) > 1 else where] = None
            keys.setdefault(image, {}).update({path: key for path, key in named.items() if key.image == image})
    return tuple(ImageOfFleet(image, tuple(uses[image]), tuple(keys[image].values())) for image in sorted(uses))


def _format_rendered(image: ImageReference) -> str:
    return str(ImageReference(image.repository, "" if image.digest else image.tag, image.digest))
