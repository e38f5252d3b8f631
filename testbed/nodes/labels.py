"""Labels of each vendor's feature discovery: templates in `labels/`, filled with facts of the GPU from the catalog."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from rayhelm.facts.closed import Closed
from rayhelm.facts.gpu import GpuKind

__all__ = ["Labeler", "SpotMark", "facts_of", "labeler", "labels_of", "spot_marks"]

FOLDER = Path(__file__).with_name("labels")


class Labeler(Closed):
    """One file of `labels/`."""

    labels: dict[str, str]
    """Keys and values with `{facts}`. A label with an unknown fact is omitted, as the labeler does."""
    by_compute: dict[str, dict[str, str]] = {}
    """Facts of all GPUs of a compute capability."""
    mig: dict[str, str] = {}
    """Labels for each MIG profile. GPUs with MIG are not time-sliced."""
    sliced: dict[str, str] = {}
    """Labels with other values if the GPUs are time-sliced."""
    gpus: dict[str, dict[str, str]]
    """Facts of a GPU by its id in the catalog; `source` has their origin or the rule that they are derived by."""


class SpotMark(Closed):
    """Label of a provider for spot nodes."""

    key: str
    value: str
    tainted: bool
    """The provider also sets a taint with this key."""


def labels_of(gpu_kind: GpuKind, count: int, mig: Mapping[str, int] | None = None, slices: int = 0) -> dict[str, str]:
    """Return the labels of a host with `count` such GPUs, as its vendor's feature discovery writes them; none without a
    file.

    `mig`: MIG instances of each GPU by profile. `slices`: pods that each GPU is offered to."""
    known = labeler(gpu_kind.vendor)
    facts = facts_of(gpu_kind, count)
    labels: dict[str, str] = {}
    for key, value in known.labels.items() if known else ():
        try:
            labels[key.format_map(facts)] = value.format_map(facts)
        except KeyError:
            continue
    for profile, each in (mig or {}).items():
        mine = facts | {"profile": profile, "instances": str(each * count)}
        labels |= {key.format_map(mine): value.format_map(mine) for key, value in known.mig.items()} if known else {}
    if slices and known:
        labels |= {key: value.format(slices=slices) for key, value in known.sliced.items()}
    return labels


def facts_of(gpu_kind: GpuKind, count: int) -> dict[str, str]:
    """Return the facts of a GPU for its labels. The product label of the catalog overrides the one of the labeler's
    file."""
    facts = {"count": str(count), "mig": str(bool(gpu_kind.mig)).lower()}
    if known := labeler(gpu_kind.vendor):
        facts |= known.by_compute.get(gpu_kind.compute or "", {}) | known.gpus.get(gpu_kind.id, {})
    if gpu_kind.product_label:
        facts["product"] = gpu_kind.product_label
    if gpu_kind.compute and "." in gpu_kind.compute:
        facts["compute_major"], _, facts["compute_minor"] = gpu_kind.compute.partition(".")
    return facts


@cache
def labeler(vendor: str) -> Labeler | None:
    path = FOLDER / f"{vendor}.yaml"
    return Labeler.model_validate(yaml.safe_load(path.read_text())) if path.is_file() else None


@cache
def spot_marks() -> dict[str, SpotMark]:
    """Return the spot labels by provider."""
    marks = yaml.safe_load((FOLDER / "spot.yaml").read_text())
    return {provider: SpotMark.model_validate(mark) for provider, mark in marks.items()}
