"""Labels that each vendor's own discovery writes: `labels/`, filled with what the catalog knows of the GPU."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from rayhelm.catalog.gpu import GpuKind
from rayhelm.closed import Closed

__all__ = ["Labeler", "SpotMark", "facts_of", "labeler", "labels_of", "spot_marks"]

FOLDER = Path(__file__).with_name("labels")


class Labeler(Closed):
    """One file of `labels/`."""

    labels: dict[str, str]
    """Keys and values, with `{facts}`; one whose fact is unknown is left out, as the labeler itself does."""
    by_compute: dict[str, dict[str, str]] = {}
    """Facts of all GPUs of a compute capability."""
    mig: dict[str, str] = {}
    """Labels for each MIG profile of the GPUs, which then are not shared otherwise."""
    sliced: dict[str, str] = {}
    """Labels that are others where GPUs are offered to several pods."""
    gpus: dict[str, dict[str, str]]
    """Facts of a GPU by its id in the catalog; `source` says who saw them, or by which rule they are derived."""


class SpotMark(Closed):
    """How a provider marks nodes that may be taken away."""

    key: str
    value: str
    tainted: bool
    """Whether the label is a taint as well."""


def labels_of(gpu_kind: GpuKind, count: int, mig: Mapping[str, int] | None = None, slices: int = 0) -> dict[str, str]:
    """Return the labels of a host with `count` such GPUs, as its vendor's discovery writes them; none where it has none
    here.

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
    """What labels can tell of a GPU; the catalog's product label wins over the labeler's file."""
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
    """By provider."""
    marks = yaml.safe_load((FOLDER / "spot.yaml").read_text())
    return {provider: SpotMark.model_validate(mark) for provider, mark in marks.items()}
