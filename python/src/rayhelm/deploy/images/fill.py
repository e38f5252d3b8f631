"""Write the digests of images into the text of a fleet file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayhelm.deploy.images.collect import ImageOfFleet
from rayhelm.deploy.images.fleet_keys import ImageKey
from rayhelm.deploy.images.reference import ImageReference
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.edit_text import set_text

__all__ = ["fill_digests", "list_left_out", "list_without_digest"]


def list_without_digest(images: Sequence[ImageOfFleet]) -> list[ImageReference]:
    """Return the images by tag alone that get a digest from a key of the fleet file."""
    return [each.image for each in _list_open(images) if any(_has_digest(key) for key in each.keys)]


def list_left_out(images: Sequence[ImageOfFleet]) -> list[str]:
    """Return the keys of images by tag alone that get no digest: those of NVIDIA's operator."""
    return [".".join(key.path) for each in _list_open(images) for key in each.keys if not _has_digest(key)]


def _list_open(images: Sequence[ImageOfFleet]) -> list[ImageOfFleet]:
    return [each for each in images if each.image.tag and not each.image.digest]


def _has_digest(key: ImageKey) -> bool:
    """The operator has one field for tag or digest, and adds the operating system of the nodes to the driver's tag."""
    return key.form != "operand"


def fill_digests(
    text: str, file: str, images: Sequence[ImageOfFleet], digests: Mapping[ImageReference, str]
) -> tuple[str, list[str]]:
    """Return the text with the digests, and the keys that have changed. Raises FleetError for a key whose text other
    values share."""
    changed = []
    for each in images:
        if each.image in digests:
            for key in filter(_has_digest, each.keys):
                text = _fill(text, file, key, digests[each.image])
                changed.append(".".join(key.path))
    return text, changed


def _fill(text: str, file: str, key: ImageKey, digest: str) -> str:
    value = replace(key, image=replace(key.image, digest=digest)).format_value(key.image.repository)
    if not isinstance(value, dict):
        return set_text(text, file, key.path, value)
    data = parse_document(text, file).data
    for step in key.path:
        data = data.get(step) if isinstance(data, dict) else None
    before = data if isinstance(data, dict) else {}
    for name, part in value.items():
        # What the fleet file has stays; the tag stays too, so that a bot can follow it.
        if name not in before or name == "digest":
            text = set_text(text, file, (*key.path, name), part)
    return text
