"""Faults that the check `measured-plan` finds."""

from typing import Any

from rayhelm.fleet.measurements import CONFIG_MAP, KEY
from shared.plant import Plant


def _plant(text: str) -> dict[str, Any]:
    metadata = {"name": CONFIG_MAP, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}


_SLOW = """\
pools:
  lab:
    gpu: RTX-A5000-24GB+RTX-A4000-16GB
    measured_at: 2026-11-01T12:00:00Z
    pairs:
      - {nodes: [a5000, a4000], backend: nccl, gb_per_s: 0.11, latency_us: 5200, spread: 0.04}
"""

PLANTS = (
    Plant(
        "The network was measured too slow for the pipeline of the plan",
        r"with these measurements, the fleet has no plan",
        "ConfigMap default/rayhelm-measurements",
        create=(_plant(_SLOW),),
    ),
)
