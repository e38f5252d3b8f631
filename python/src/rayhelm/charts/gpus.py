"""What the chart platform looks up of GPUs: how cards can be cut, and what DCGM can be asked for."""

from rayhelm.catalog import load_catalog
from rayhelm.catalog.operators import load_nvidia

__all__ = ["counters", "mig_layouts"]


def mig_layouts() -> dict[str, object]:
    """Table of each card that MIG can cut, and of each table the largest layouts."""
    known = load_catalog()
    tables = {gpu.id: table for gpu in known.gpus() if (table := known.mig(gpu))}
    return {
        "gpus": {card: table.id for card, table in tables.items()},
        "layouts": {table.id: table.largest for table in tables.values()},
    }


def counters() -> dict[str, object]:
    return load_nvidia().model_dump(include={"counters", "profiling"})
