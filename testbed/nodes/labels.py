"""Labels that each vendor's own discovery writes: `labels/`, filled with what the catalog knows of the card."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from rayhelm.catalog.gpu import GpuKind
from rayhelm.closed import Closed

__all__ = ["Labeller", "SpotMark", "facts_of", "labeller", "labels_of", "spot_marks"]

FOLDER = Path(__file__).with_name("labels")


class Labeller(Closed):
    """One file of `labels/`."""

    labels: dict[str, str]
    """Keys and values, with `{facts}`; one whose fact is unknown is left out, as the labeller itself does."""
    by_compute: dict[str, dict[str, str]] = {}
    """Facts of all cards of a compute capability."""
    mig: dict[str, str] = {}
    """Labels for each MIG profile of the cards, which then are not shared otherwise."""
    sliced: dict[str, str] = {}
    """Labels that are others where cards are offered to several pods."""
    cards: dict[str, dict[str, str]]
    """Facts of a card by its id in the catalog; `source` says who saw them, or by which rule they are derived."""


class SpotMark(Closed):
    """How a provider marks nodes that may be taken away."""

    key: str
    value: str
    tainted: bool
    """Whether the label is a taint as well."""


def labels_of(card: GpuKind, count: int, mig: Mapping[str, int] | None = None, slices: int = 0) -> dict[str, str]:
    """Labels of a host with `count` such cards, as its vendor's discovery writes them; none where it has none here.

    `mig`: MIG instances of each card by profile. `slices`: pods that each card is offered to."""
    known = labeller(card.vendor)
    facts = facts_of(card, count)
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


def facts_of(card: GpuKind, count: int) -> dict[str, str]:
    """What labels can tell of a card; the catalog's product label wins over the labeller's file."""
    facts = {"count": str(count), "mig": str(bool(card.mig)).lower()}
    if known := labeller(card.vendor):
        facts |= known.by_compute.get(card.compute or "", {}) | known.cards.get(card.id, {})
    if card.product_label:
        facts["product"] = card.product_label
    if card.compute and "." in card.compute:
        facts["compute_major"], _, facts["compute_minor"] = card.compute.partition(".")
    return facts


@cache
def labeller(vendor: str) -> Labeller | None:
    path = FOLDER / f"{vendor}.yaml"
    return Labeller.model_validate(yaml.safe_load(path.read_text())) if path.is_file() else None


@cache
def spot_marks() -> dict[str, SpotMark]:
    """By provider."""
    marks = yaml.safe_load((FOLDER / "spot.yaml").read_text())
    return {provider: SpotMark.model_validate(mark) for provider, mark in marks.items()}
