"""GPU tables of chart platform: MIG layouts, and the fields that DCGM exports."""

from rayhelm.facts import load_catalog
from rayhelm.facts.operators import load_nvidia

__all__ = ["counters", "mig_layouts"]


def mig_layouts() -> dict[str, object]:
    """Map each GPU with MIG to its table, and each table to its largest layouts."""
    facts = load_catalog()
    tables = {gpu.id: table for gpu in facts.gpus() if (table := facts.mig(gpu))}
    return {
        "gpus": {gpu: table.id for gpu, table in tables.items()},
        "layouts": {table.id: table.largest for table in tables.values()},
    }


def counters() -> dict[str, object]:
    return load_nvidia().model_dump(include={"counters", "profiling"})
