"""GPU types that Ray knows by name."""

from typing import Literal

__all__ = ["AcceleratorType"]

AcceleratorType = Literal[
    "V100",
    "P100",
    "T4",
    "P4",
    "K80",
    "A10G",
    "L4",
    "L40S",
    "A100",
    "A100-40G",
    "A100-80G",
    "H100",
    "H200",
    "H20",
    "B200",
    "B300",
    "GB200",
    "GB300",
    "RTX-PRO-6000",
    "AMD-Instinct-MI100",
    "AMD-Instinct-MI210",
    "AMD-Instinct-MI250X",
    "AMD-Instinct-MI250X-MI250",
    "AMD-Instinct-MI300A",
    "AMD-Instinct-MI300X-OAM",
    "AMD-Instinct-MI300X-HF",
    "AMD-Instinct-MI308X",
    "AMD-Instinct-MI325X-OAM",
    "AMD-Instinct-MI350X-OAM",
    "AMD-Instinct-MI355X-OAM",
    "AMD-Radeon-R9-200-HD-7900",
    "AMD-Radeon-HD-7900",
    "Intel-GPU-Max-1100",
    "Intel-GPU-Max-1550",
    "Intel-GAUDI",
]
"""Names in Ray's `util.accelerators` of GPUs that vLLM runs on. Ray Serve LLM refuses any other."""
